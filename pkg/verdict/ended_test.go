package verdict

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How a container ended decides what its words are worth.
func TestHowAGuardEnded(t *testing.T) {
	const silent = "192.0.2.1 does not answer\nReceived 0 response(s)"
	for name, row := range map[string]struct {
		state   corev1.ContainerState
		outcome Outcome
		cause   Cause
	}{
		"by itself":                {ended(1, "Error", silent, 8*time.Second), Fail, L2Unreachable},
		"killed for memory":        {ended(137, "OOMKilled", silent, 8*time.Second), Fail, GuardFailed},
		"killed by a signal":       {ended(137, "Error", silent, 8*time.Second), Fail, GuardFailed},
		"the runtime lost it":      {ended(255, "Unknown", "", 8*time.Second), Inconclusive, NeverPodStranded},
		"the kubelet lost it":      {ended(137, "ContainerStatusUnknown", "", 8*time.Second), Inconclusive, NeverPodStranded},
		"exit code 255, by itself": {ended(255, "Error", "", 8*time.Second), Fail, GuardFailed},
	} {
		t.Run(name, func(t *testing.T) {
			e := build(attached(), canary(func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.InitContainerStatuses[0].State = row.state
			}))
			v := expect(t, e, row.outcome, row.cause)
			if t.Failed() || row.state.Terminated.ExitCode != 137 || row.outcome != Fail {
				return
			}
			if !strings.Contains(v.Message, "it was killed") {
				t.Errorf("it does not say that the guard was killed: %s", v.Message)
			}
		})
	}
}

// A sidecar that has failed and runs again may be what checks the network.
func TestSidecarThatWasRestarted(t *testing.T) {
	policy := corev1.ContainerRestartPolicyAlways
	sidecar := func(restarts int32) change {
		return canary(func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "sidecar", RestartPolicy: &policy})
			status := corev1.ContainerStatus{Name: "sidecar", Ready: true, RestartCount: restarts, State: runs(8 * time.Second)}
			if restarts > 0 {
				status.LastTerminationState = ended(1, "Error", "", 7*time.Second)
			}
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status)
		})
	}
	expect(t, build(attached(), done(), sidecar(0)), Pass, OK)
	if v := Decide(build(attached(), done(), sidecar(1)), start.Add(5*time.Minute)); v.Outcome == Pass {
		t.Errorf("%s/%s: %s", v.Outcome, v.Cause, v.Message)
	}
}
