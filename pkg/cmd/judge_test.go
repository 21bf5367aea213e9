package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// realEvidence is what one scenario of a real node has left.
func realEvidence(t *testing.T, name string) evidence.Evidence {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "test", "cases", name, "evidence.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	e, err := evidence.Load(file, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What waiting may change is no verdict on a canary that is there; saved evidence
// is judged as it stands.
func TestJudgeOfAnAttemptThatGoesOn(t *testing.T) {
	t.Parallel()
	e := realEvidence(t, "lab-wrong-master")
	// The first failure alone, a moment after it.
	failed := slices.IndexFunc(e.Events, func(event corev1.Event) bool { return event.Reason == "FailedCreatePodSandBox" })
	if failed < 0 {
		t.Fatal("the case has no failure")
	}
	first := e.Events[failed]
	first.Count, first.LastTimestamp = 1, first.FirstTimestamp
	e.Events = []corev1.Event{first}
	e.CollectedAt = evidence.EventTime(&first).Add(time.Second)
	if v := (&JudgeOptions{}).judge(&e); v.Outcome != verdict.Fail || v.Cause != verdict.MasterLinkMissing {
		t.Errorf("saved evidence: %s/%s", v.Outcome, v.Cause)
	}
	v := (&JudgeOptions{Live: true}).judge(&e)
	if v.Outcome != verdict.Inconclusive || v.Cause != verdict.AttemptInProgress || !strings.Contains(v.Message, "so far: fail (master-link-missing)") {
		t.Errorf("of now: %s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
	e.CollectedAt = e.CollectedAt.Add(time.Minute)
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Outcome != verdict.Fail {
		t.Errorf("a minute later: %s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
}

// Of a Pod that is finished, what its retest noted outlives its events.
func TestJudgeHeedsTheRecord(t *testing.T) {
	t.Parallel()
	e := realEvidence(t, "lab-address-already-answered-for")
	e.Events, e.CanaryPod().Status.Phase = nil, corev1.PodFailed
	pod := e.CanaryPod()
	note := func(uid string) {
		pod.Annotations[canary.VerdictAnnot], pod.Annotations[canary.CauseAnnot], pod.Annotations[canary.JudgedAnnot] = "fail", "l2-unreachable", uid
		pod.Annotations[canary.DecidedAtAnnot], pod.Annotations[canary.ConfigurationAnnot] = "2026-01-02T03:04:05Z", "{}"
	}
	note(string(pod.UID))
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Cause != verdict.L2Unreachable {
		t.Errorf("with a record: %s/%s", v.Outcome, v.Cause)
	}
	note("of-another-pod")
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Cause != verdict.DuplicateAddress {
		t.Errorf("with another Pod's record: %s/%s", v.Outcome, v.Cause)
	}
}

// What was recorded under an earlier configuration is no verdict on the present one.
func TestJudgeOfAnOldRecord(t *testing.T) {
	t.Parallel()
	e := realEvidence(t, "lab-healthy")
	pod := e.CanaryPod()
	pod.Annotations[canary.VerdictAnnot], pod.Annotations[canary.CauseAnnot], pod.Annotations[canary.JudgedAnnot] = "pass", "ok", string(pod.UID)
	pod.Annotations[canary.DecidedAtAnnot], pod.Annotations[canary.ConfigurationAnnot] = "2026-01-02T03:04:05Z", "{}"
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Outcome != verdict.Pass {
		t.Fatalf("the case: %s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
	e.Networks[0].CreationTimestamp.Time = e.CollectedAt // created anew
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Outcome != verdict.Inconclusive || v.Cause != verdict.StaleAttempt {
		t.Errorf("the network is another one: %s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
	// The judge cannot tell any more, the record is of another DaemonSet.
	e = realEvidence(t, "lab-healthy")
	pod = e.CanaryPod()
	e.Events = nil
	delete(pod.Annotations, "k8s.v1.cni.cncf.io/network-status")
	pod.Annotations[canary.VerdictAnnot], pod.Annotations[canary.CauseAnnot], pod.Annotations[canary.JudgedAnnot] = "pass", "ok", string(pod.UID)
	pod.Annotations[canary.DecidedAtAnnot], pod.Annotations[canary.ConfigurationAnnot] = "2026-01-02T03:04:05Z", `{"daemonSetUID":"another"}`
	if v := (&JudgeOptions{Live: true}).judge(&e); v.Outcome != verdict.Inconclusive || v.Cause != verdict.StaleAttempt {
		t.Errorf("the DaemonSet is another one: %s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
}
