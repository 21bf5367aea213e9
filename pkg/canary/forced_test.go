package canary

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// A Pod that goes from the API while it runs was deleted by force: its sandbox
// may still hold the address, so that no other Pod is made.
func TestOldCanaryDeletedByForce(t *testing.T) {
	running := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for name, test := range map[string]struct {
		happens func(w *world)
		refused bool
	}{
		"by somebody else, while it is waited for": {func(w *world) {
			w.deleted = func(pod *corev1.Pod) { time.AfterFunc(time.Second, func() { w.gone(pod.UID) }) }
		}, true},
		"by somebody else, before it was deleted": {func(w *world) {
			log := w.log
			w.log = func() (string, error) { return "", serverError } // the gate waits
			time.AfterFunc(5*time.Second, func() {
				w.gone("old-uid")
				w.log = log
			})
		}, true},
		"by its kubelet": {func(w *world) {
			w.deleted = func(pod *corev1.Pod) {
				time.AfterFunc(time.Second, func() {
					w.update(pod.UID, func(pod *corev1.Pod) { pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended("main", 137)} })
					w.gone(pod.UID)
				})
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(s *site) {
					s.canary.Status.Phase, s.canary.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{running}
				})
				test.happens(w)
				result, err := w.retest().Run(t.Context())
				if !test.refused {
					check(t, err)
					if result.Verdict.Outcome != verdict.Pass {
						t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
					}
					return
				}
				if !isRefusal(err) || !strings.Contains(err.Error(), "container main was running") || !strings.Contains(err.Error(), "crictl pods --name vlan50-canary") {
					t.Errorf("error: %v", err)
				}
				if pod := w.pod("vlan50-canary"); pod != nil {
					t.Errorf("Pod %s was created", pod.UID)
				}
			})
		})
	}
}

func TestStanding(t *testing.T) {
	sandbox := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status}}
	}
	waiting := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	for name, row := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"its image is waited for in a sandbox": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: sandbox(corev1.ConditionTrue), ContainerStatuses: waiting}, "sandbox was standing"},
		"its sandbox was taken down":           {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: sandbox(corev1.ConditionFalse), ContainerStatuses: waiting}, ""},
		"it never had one":                     {corev1.PodStatus{Phase: corev1.PodPending}, ""},
		"it has finished":                      {corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: sandbox(corev1.ConditionTrue)}, ""},
	} {
		if got := standing(&corev1.Pod{Status: row.status}); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
