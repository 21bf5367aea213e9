// Package v1alpha1 holds the documents the tool prints with -o json and yaml.
// They look like Kubernetes objects so that the usual printers take them, but
// are never stored in a cluster.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// APIVersion of all documents of this package.
const APIVersion = "vlan50.dev/v1alpha1"

// CanaryVerdict is the judgement of one canary Pod, named by its UID.
type CanaryVerdict struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status CanaryVerdictStatus `json:"status"`
}

// CanaryVerdictStatus is what was found and why.
type CanaryVerdictStatus struct {
	// Verdict is pass, fail or inconclusive.
	Verdict string `json:"verdict"`
	// Cause is a slug of the catalogue (`kubectl vlan50 explain`).
	Cause   string `json:"cause"`
	Message string `json:"message"`
	Next    string `json:"next"`

	// What was attached, empty where nothing was.
	Node      string   `json:"node,omitempty"`
	Network   string   `json:"network,omitempty"`
	Interface string   `json:"interface,omitempty"`
	Addresses []string `json:"addresses,omitempty"`

	Evidence      []EvidenceLine        `json:"evidence,omitempty"`
	Attempt       *Attempt              `json:"attempt,omitempty"`
	Configuration *evidence.Fingerprint `json:"configuration,omitempty"`
}

// EvidenceLine is one fact that decided the verdict, as the cluster said it.
type EvidenceLine struct {
	Time   *metav1.MicroTime `json:"time,omitempty"`
	Source string            `json:"source"`
	Text   string            `json:"text"`
}

// Attempt is when each step of a retest was reached; a step that was not
// reached has no time.
type Attempt struct {
	StartedAt       *metav1.MicroTime `json:"startedAt,omitempty"`
	RolloutReadyAt  *metav1.MicroTime `json:"rolloutReadyAt,omitempty"`
	AttachReadyAt   *metav1.MicroTime `json:"attachReadyAt,omitempty"`
	DeletedAt       *metav1.MicroTime `json:"deletedAt,omitempty"`
	GoneAt          *metav1.MicroTime `json:"goneAt,omitempty"`
	CreatedAt       *metav1.MicroTime `json:"createdAt,omitempty"`
	DecidedAt       *metav1.MicroTime `json:"decidedAt,omitempty"`
	SandboxFailures int               `json:"sandboxFailures"`
	// AttachReadyBy says how attach readiness was known: "log", "age" or
	// "settle" (waited blindly because neither could tell).
	AttachReadyBy string `json:"attachReadyBy,omitempty"`
	// Number counts the attempts of one command, from 1.
	Number int `json:"number,omitempty"`
}

// DeepCopyObject implements runtime.Object. Documents are built once and only
// printed, so sharing what lies behind the pointers is safe.
func (in *CanaryVerdict) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}
