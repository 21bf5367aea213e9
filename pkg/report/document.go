package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// Verdict is the document of one judgement, with every string made harmless.
func Verdict(subject evidence.Ref, v verdict.Verdict) *v1alpha1.CanaryVerdict {
	document := &v1alpha1.CanaryVerdict{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: "CanaryVerdict"},
		ObjectMeta: metav1.ObjectMeta{Namespace: subject.Namespace, Name: subject.Name, UID: subject.UID},
		Status: v1alpha1.CanaryVerdictStatus{
			Verdict: string(v.Outcome), Cause: string(v.Cause), Message: v.Message, Next: v.Next,
			Node: v.Node, Network: v.Network, Interface: v.Interface, Addresses: slices.Clone(v.Addresses),
		},
	}
	for _, line := range v.Lines {
		document.Status.Evidence = append(document.Status.Evidence, v1alpha1.EvidenceLine{
			Time: micro(line.Time), Source: line.Source, Text: line.Text,
		})
	}
	Harmless(document)
	return document
}

// Result is the document of a retest.
func Result(subject evidence.Ref, result canary.Result) *v1alpha1.CanaryVerdict {
	subject.UID = result.UID
	document := Verdict(subject, result.Verdict)
	attempt := result.Attempt
	document.Status.Attempt = &v1alpha1.Attempt{
		StartedAt:       micro(attempt.StartedAt),
		RolloutReadyAt:  micro(attempt.RolloutReady),
		AttachReadyAt:   micro(attempt.AttachReady),
		AttachReadyBy:   attempt.AttachReadyBy,
		DeletedAt:       micro(attempt.Deleted),
		GoneAt:          micro(attempt.Gone),
		CreatedAt:       micro(attempt.Created),
		DecidedAt:       micro(attempt.Decided),
		SandboxFailures: result.Verdict.SandboxFailures,
		Number:          attempt.Number,
	}
	if result.UID != "" {
		configuration := result.Configuration
		document.Status.Configuration = &configuration
	}
	Harmless(document)
	return document
}

func micro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC())
	return &m
}
