package scriptednode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testPod(policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy:  policy,
		InitContainers: []corev1.Container{{Name: "guard", Image: "i"}},
		Containers:     []corev1.Container{{Name: "main", Image: "i"}},
	}}
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func TestPhaseAndConditions(t *testing.T) {
	type answer struct {
		Phase                     corev1.PodPhase
		Network, Init, Ready, Why string
	}
	for name, row := range map[string]struct {
		policy corev1.RestartPolicy
		play   func(*runState)
		want   answer
	}{
		"just admitted": {
			corev1.RestartPolicyNever, func(*runState) {},
			answer{corev1.PodPending, "False", "False", "False", "ContainersNotReady"},
		},
		"guard runs": {
			corev1.RestartPolicyNever,
			func(s *runState) { s.sandbox = true; s.run("guard", "u", noon) },
			answer{corev1.PodPending, "True", "False", "False", "ContainersNotReady"},
		},
		"guard failed, sandbox still up": {
			corev1.RestartPolicyNever,
			func(s *runState) {
				s.sandbox, s.stopping = true, true
				s.run("guard", "u", noon)
				s.exit("guard", 1, "", "no", noon)
			},
			answer{corev1.PodPending, "True", "False", "False", "ContainersNotReady"},
		},
		"guard failed, sandbox down": {
			corev1.RestartPolicyNever,
			func(s *runState) { s.run("guard", "u", noon); s.exit("guard", 1, "", "no", noon) },
			answer{corev1.PodFailed, "False", "False", "False", "PodFailed"},
		},
		"main runs": {
			corev1.RestartPolicyNever,
			func(s *runState) {
				s.sandbox = true
				s.run("guard", "u", noon)
				s.exit("guard", 0, "", "", noon)
				s.run("main", "u", noon)
			},
			answer{corev1.PodRunning, "True", "True", "True", ""},
		},
		"main ended well": {
			corev1.RestartPolicyNever,
			func(s *runState) {
				for _, c := range []string{"guard", "main"} {
					s.run(c, "u", noon)
					s.exit(c, 0, "", "", noon)
				}
			},
			answer{corev1.PodSucceeded, "False", "True", "False", "PodCompleted"},
		},
		"main failed": {
			corev1.RestartPolicyNever,
			func(s *runState) {
				for code, c := range []string{"guard", "main"} {
					s.run(c, "u", noon)
					s.exit(c, int32(code), "", "", noon)
				}
			},
			answer{corev1.PodFailed, "False", "True", "False", "PodFailed"},
		},
		"installer fails in a Pod that restarts": {
			corev1.RestartPolicyAlways,
			func(s *runState) {
				s.sandbox = true
				s.run("guard", "u", noon)
				s.exit("guard", 1, "", "", noon)
				s.backoff("guard", "back-off")
			},
			answer{corev1.PodPending, "True", "False", "False", "ContainersNotReady"},
		},
		"daemon waits for its restart": {
			corev1.RestartPolicyAlways,
			func(s *runState) {
				s.sandbox = true
				s.run("guard", "u", noon)
				s.exit("guard", 0, "", "", noon)
				s.run("main", "u", noon)
				s.exit("main", 137, "OOMKilled", "", noon)
				s.backoff("main", "back-off")
			},
			answer{corev1.PodRunning, "True", "True", "False", "ContainersNotReady"},
		},
		"daemon runs and is not ready": {
			corev1.RestartPolicyAlways,
			func(s *runState) {
				s.sandbox = true
				s.run("guard", "u", noon)
				s.exit("guard", 0, "", "", noon)
				s.run("main", "u", noon)
				s.containers["main"].unready = true
			},
			answer{corev1.PodRunning, "True", "True", "False", "ContainersNotReady"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod(row.policy)
			pod.Status.Phase = corev1.PodPending
			s := newRunState(&pod.Spec, noon)
			row.play(s)
			status := s.render(pod, "127.0.0.1", noon)
			got := answer{Phase: status.Phase}
			for _, c := range status.Conditions {
				switch c.Type {
				case corev1.PodReadyToStartContainers:
					got.Network = string(c.Status)
				case corev1.PodInitialized:
					got.Init = string(c.Status)
				case corev1.PodReady:
					got.Ready, got.Why = string(c.Status), c.Reason
				default:
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWaitingReason(t *testing.T) {
	pod := testPod(corev1.RestartPolicyNever)
	if got := newRunState(&pod.Spec, noon).containers["main"].state.Waiting.Reason; got != "PodInitializing" {
		t.Errorf("with init containers: %s", got)
	}
	pod.Spec.InitContainers = nil
	if got := newRunState(&pod.Spec, noon).containers["main"].state.Waiting.Reason; got != "ContainerCreating" {
		t.Errorf("without init containers: %s", got)
	}
}

// A restart is counted when the next run starts, not when the last one ends.
func TestRestartCount(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways)
	s := newRunState(&pod.Spec, noon)
	s.run("main", "u", noon)
	first := s.containers["main"].id
	s.exit("main", 137, "OOMKilled", "", noon.Add(time.Second))
	s.backoff("main", "back-off")
	if got := s.containers["main"].restarts; got != 0 {
		t.Errorf("in the back-off: %d restarts", got)
	}
	s.run("main", "u", noon.Add(2*time.Second))
	c := s.containers["main"]
	if c.restarts != 1 || c.last.Terminated == nil || c.last.Terminated.Reason != "OOMKilled" || c.id == first {
		t.Errorf("after the restart: %d restarts, last %+v, id %s", c.restarts, c.last.Terminated, c.id)
	}
}

func TestTransitionTimeStaysWithTheStatus(t *testing.T) {
	status := &corev1.PodStatus{}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	setCondition(status, ready, noon)
	setCondition(status, ready, noon.Add(time.Minute))
	if got := status.Conditions[0].LastTransitionTime; !got.Equal(&metav1.Time{Time: noon}) {
		t.Errorf("unchanged status moved to %s", got)
	}
	ready.Status = corev1.ConditionFalse
	setCondition(status, ready, noon.Add(2*time.Minute))
	if got := status.Conditions[0].LastTransitionTime; !got.Equal(&metav1.Time{Time: noon.Add(2 * time.Minute)}) || len(status.Conditions) != 1 {
		t.Errorf("changed status: %+v", status.Conditions)
	}
}
