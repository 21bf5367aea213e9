//go:build lab && linux

package lab_test

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/test/lab"
)

var restarts = flag.Int("restarts", 20, "how many retests to run right after a restart of the DaemonSet")

// TestHealthy retests on a healthy site, twice, so that the second one has a
// finished canary to delete.
func TestHealthy(t *testing.T) {
	for _, name := range []string{"no canary yet", "healthy"} {
		t.Run(name, func(t *testing.T) {
			l := open(t)
			r := retest(t.Context(), t, l, "--filename", l.CanaryManifest())
			t.Logf("%s in %s", r.document.Status.Message, r.took.Round(100*time.Millisecond))
			r.expect(t, "pass", "ok")
			checkRecord(t, l, r)
			healthy := scenario{name: "healthy", verdict: "pass", cause: "ok"}
			switch {
			case t.Failed():
				r.explain(t.Context(), t, l)
			case *capture && name == healthy.name:
				healthy.save(t, r)
			default:
				healthy.kept(t)
			}
		})
	}
	if err := open(t).Reset(t.Context()); err != nil {
		t.Error(err)
	}
}

// checkRecord checks that the verdict speaks of the Pod that is there, by its
// UID: its annotations and its events.
func checkRecord(t *testing.T, l *lab.Lab, r result) {
	t.Helper()
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	pod, err := clients.Kube.CoreV1().Pods(lab.Namespace).Get(t.Context(), lab.CanaryName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.document.UID != pod.UID {
		t.Errorf("the verdict is of UID %s, the Pod there has %s", r.document.UID, pod.UID)
	}
	if got := pod.Annotations[canary.VerdictAnnot]; got != "pass" {
		t.Errorf("annotation %s is %q, want pass", canary.VerdictAnnot, got)
	}
	if status := pod.Annotations[nadv1.NetworkStatusAnnot]; !strings.Contains(status, `"net1"`) {
		t.Errorf("network-status has no net1: %s", status)
	}
	events, err := clients.Kube.CoreV1().Events(lab.Namespace).List(t.Context(),
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == "AddedInterface" && strings.HasPrefix(event.Message, "Add net1 ") {
			return
		}
	}
	t.Errorf("none of the %d events of UID %s is of net1", len(events.Items), pod.UID)
}

// TestRightAfterRestart is the promise: a retest started in the moment that the
// DaemonSet restarts is never wrong. The manual runbook runs in the same loop;
// how often it is wrong is counted, not judged.
func TestRightAfterRestart(t *testing.T) {
	l, n := open(t), *restarts
	if testing.Short() {
		n = min(n, 5)
	}
	// However it ends: a rollout or the runbook may be cut short.
	t.Cleanup(func() { scenario{}.putBack(t, l, result{}) })
	var wrong, falseFailures int
	for i := range n {
		restart(t, l)
		r := retest(t.Context(), t, l, "--filename", l.CanaryManifest())
		if r.document.Status.Verdict != "pass" {
			wrong++
			t.Errorf("retest %d: %s/%s (exit code %d): %s", i+1, r.document.Status.Verdict, r.document.Status.Cause, r.code, r.document.Status.Message)
			r.explain(t.Context(), t, l)
		}
		restart(t, l)
		start := time.Now()
		phase, late := runbook(t, l)
		if phase != corev1.PodSucceeded {
			falseFailures++
		}
		t.Logf("%2d: retest %s in %4.1f s; runbook's canary %s in %4.1f s (the conf was there %s after rollout status)",
			i+1, r.document.Status.Verdict, r.took.Seconds(), phase, time.Since(start).Seconds(), late.Round(10*time.Millisecond))
	}
	t.Logf("retest: %d of %d right; manual runbook: %d of %d false failures", n-wrong, n, falseFailures, n)
}

// restart begins a rollout and does not wait for anything.
func restart(t *testing.T, l *lab.Lab) {
	t.Helper()
	if _, err := l.Kubectl(t.Context(), "rollout", "restart", "--namespace", lab.SystemNamespace, "daemonset/"+lab.DaemonSetName); err != nil {
		t.Fatal(err)
	}
}

// runbook is what people do by hand: wait for the rollout, delete, apply, look
// how it ends. It tells as well how much later than the rollout the conf was
// there: how many canaries fail falsely depends on who is faster.
func runbook(t *testing.T, l *lab.Lab) (phase corev1.PodPhase, late time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	kubectl := func(args ...string) {
		if _, err := l.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("rollout", "status", "--namespace", lab.SystemNamespace, "daemonset/"+lab.DaemonSetName)
	rolledOut := time.Now()
	written := make(chan time.Duration, 1)
	go func() {
		_ = l.WaitConf(ctx)
		written <- time.Since(rolledOut)
	}()
	kubectl("delete", "--filename", l.CanaryManifest(), "--ignore-not-found")
	kubectl("apply", "--filename", l.CanaryManifest())
	phase, err := l.CanaryEnd(ctx)
	if err != nil {
		t.Logf("the runbook's canary does not end: %v", err)
	}
	return phase, <-written
}
