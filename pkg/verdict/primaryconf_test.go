package verdict

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestMissesPrimaryConf: the same last words mean a wrong folder, or a daemon
// that only came too early.
func TestMissesPrimaryConf(t *testing.T) {
	t.Parallel()
	const words = "2026-03-03T09:02:00Z [verbose] multus-daemon started\n2026-03-03T09:02:00Z [error] failed to find the primary CNI plugin: could not find a plugin configuration in /host/etc/cni/net.d\n"
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: words, StartedAt: at(-4 * time.Minute), FinishedAt: at(-2 * time.Minute)}}
	ready := func(since time.Duration, status corev1.ConditionStatus) *corev1.Node {
		n := node(testNode, status)
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastTransitionTime = at(since)
		}
		return &n
	}
	for name, row := range map[string]struct {
		last, state corev1.ContainerState
		node        *corev1.Node
		want        bool
	}{
		"it looks again":                    {ended, runs(-2 * time.Minute), ready(-time.Hour, corev1.ConditionTrue), true},
		"it waits for its next start":       {ended, waits("CrashLoopBackOff", ""), ready(-time.Hour, corev1.ConditionTrue), true},
		"the next one has found the conf":   {ended, runs(-2*time.Minute - SteadyAfter), ready(-time.Hour, corev1.ConditionTrue), false},
		"the node got its network later":    {ended, runs(-2 * time.Minute), ready(-3*time.Minute, corev1.ConditionTrue), false},
		"the node has no network":           {ended, runs(-2 * time.Minute), ready(-time.Hour, corev1.ConditionFalse), false},
		"the node is not known":             {ended, runs(-2 * time.Minute), nil, false},
		"it has never ended":                {corev1.ContainerState{}, runs(-2 * time.Minute), ready(-time.Hour, corev1.ConditionTrue), false},
		"it ended for a reason of its own":  {corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "panic", StartedAt: at(-4 * time.Minute)}}, runs(-2 * time.Minute), ready(-time.Hour, corev1.ConditionTrue), false},
		"it has just ended, for the moment": {corev1.ContainerState{}, ended, ready(-time.Hour, corev1.ConditionTrue), true},
	} {
		t.Run(name, func(t *testing.T) {
			status := corev1.ContainerStatus{Name: "kube-multus", State: row.state, LastTerminationState: row.last}
			if got := MissesPrimaryConf(status, row.node, start); (got != "") != row.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
