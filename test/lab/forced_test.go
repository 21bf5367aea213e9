//go:build lab && linux

package lab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/lab"
)

// A running canary is waited for until its kubelet has ended it. One that
// somebody deletes by force meanwhile is followed by no other: its address is
// still held.
func TestRunningCanary(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has each root cause once, and no other delay")
	}
	l := open(t)
	s := scenario{name: "running", canary: func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Command = []string{"sh", "-c", "trap '' TERM; sleep 600"}
		pod.Spec.TerminationGracePeriodSeconds = new(int64(15))
	}}
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	defer cancel()
	var r result
	defer func() { s.putBack(t, l, r) }()
	manifest := s.manifest(t, l)
	for range 2 { // the second one has a running canary to end
		r = retest(ctx, t, l, "--filename", manifest)
		t.Logf("%s in %s", r.document.Status.Message, r.took.Round(100*time.Millisecond))
		r.expect(t, "pass", "ok")
	}
	home := t.TempDir()
	run := startTool(ctx, t, l, home, "canary", "retest", "--filename", manifest)
	run.waitFor(t, "to be gone: the kubelet of node")
	kubectl(ctx, t, l, "delete", "pod", "--namespace", lab.Namespace, lab.CanaryName, "--force", "--grace-period=0", "--wait=false")
	if code := run.wait(t); code != 5 || !strings.Contains(run.said(), "somebody deleted it by force") {
		t.Errorf("exit code %d\n%s", code, run.said())
	}
	// The address is held until the kubelet has ended it. (The brackets keep the search
	// from finding itself.)
	for l.InNode(ctx, "sh", "-c", `! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -q 'sleep [6]00'`) != nil {
		if ctx.Err() != nil {
			t.Fatal("the forced canary lives on")
		}
		time.Sleep(200 * time.Millisecond)
	}
	if out, err := l.Kubectl(ctx, "get", "pod", "--namespace", lab.Namespace, lab.CanaryName); err == nil {
		t.Errorf("another canary was made:\n%s", out)
	}
}
