package canary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func TestCanaryDeletedByOthersIsInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.created = func(pod *corev1.Pod) {
			w.play(pod, time.Second, w.scheduled)
			time.AfterFunc(2*time.Second, func() { w.gone(pod.UID) })
		}
		result, err := w.retest().Run(t.Context())
		check(t, err)
		v := result.Verdict
		if v.Outcome != verdict.Inconclusive || v.Cause != verdict.PodDeletedDuringAdd || !strings.Contains(v.Message, string(result.UID)) || v.Next == "" {
			t.Errorf("verdict: %+v", v)
		}
		// What was seen last is what the verdict rests on.
		if result.Evidence.CanaryPod() == nil || result.Evidence.CanaryPod().UID != result.UID {
			t.Errorf("the evidence has lost the Pod: %+v", result.Evidence.Pods)
		}
		for _, write := range w.writes() {
			if write == "patch pods" {
				t.Error("a Pod that is gone was annotated")
			}
		}
	})
}

// Somebody deletes the canary and creates another a moment later: that is a
// namesake, whatever a watch has shown in between.
func TestCanaryReplacedAMomentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.created = func(pod *corev1.Pod) {
			w.play(pod, time.Second, w.scheduled)
			time.AfterFunc(2*time.Second, func() { w.gone(pod.UID) })
			time.AfterFunc(3*time.Second, func() { w.createdBy("argocd-controller") })
		}
		_, err := w.retest().Run(t.Context())
		if !isRefusal(err) || !strings.Contains(fmt.Sprint(err), "argocd-controller") {
			t.Errorf("got %v\n%s", err, w.story())
		}
	})
}

// A Pod that is gone before a watch has shown it is not waited for.
func TestCanaryDeletedBeforeItWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.created = func(pod *corev1.Pod) { w.gone(pod.UID) }
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if v := result.Verdict; v.Outcome != verdict.Inconclusive || v.Cause != verdict.PodDeletedDuringAdd || strings.Contains(v.Message, "deadline") {
			t.Errorf("verdict: %+v\n%s", v, w.story())
		}
	})
}

// The log endpoint knows names only: what is read while the Pod of that name
// changes is not this canary's.
func TestGuardLogsOfAnotherPodAreDropped(t *testing.T) {
	tests := map[string]struct {
		happens func(w *world)
		logs    int
	}{
		"the same Pod before and after":  {func(*world) {}, 1},
		"another Pod has the name after": {func(w *world) { w.replaced("argocd-controller") }, 0},
		"the Pod is gone after":          {func(w *world) { w.gone(w.pod("vlan50-canary").UID) }, 0},
		"it cannot be read again":        {func(w *world) { w.fail("get", "pods", serverError) }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *site) {
				s.canary.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("guard", 7)}
			})
			w.kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "log" {
					return false, nil, nil
				}
				test.happens(w)
				return true, &runtime.Unknown{Raw: []byte("duplicate address\n")}, nil
			})
			logs, _ := FailedLogs(t.Context(), w.retest().Clients, w.pod("vlan50-canary"))
			if len(logs) != test.logs {
				t.Fatalf("logs: %+v", logs)
			}
			if test.logs == 1 && (logs[0].Log != "duplicate address\n" || logs[0].Container != "guard" || logs[0].Pod.UID != "old-uid") {
				t.Errorf("log: %+v", logs[0])
			}
		})
	}
}

func TestFailedContainers(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{ended("guard", 0), ended("probe", 3)},
		ContainerStatuses:     []corev1.ContainerStatus{ended("main", 137), {Name: "waiting"}},
	}}
	if got := fmt.Sprint(failedContainers(pod)); got != "[probe main]" {
		t.Errorf("got %s", got)
	}
}

// Configuration that may not be read is unknown, and no change.
func TestConfigurationThatMayNotBeReadIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) {
			s.canary.Spec.Volumes = []corev1.Volume{{Name: "script", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "guard"}},
			}}}
		})
		w.nads.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errForbidden })
		w.meta.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errForbidden })
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || len(result.Configuration.Networks) != 0 || len(result.Configuration.ConfigMaps) != 0 {
			t.Errorf("verdict %+v, fingerprint %+v", result.Verdict, result.Configuration)
		}
	})
}

// What could be read before the creation is read again at the end: a server that
// is away for a moment is waited for, and without an answer there is no verdict.
func TestConfigurationThatCannotBeReadAgain(t *testing.T) {
	for name, test := range map[string]struct {
		away    time.Duration
		outcome verdict.Outcome
		cause   verdict.Cause
	}{
		"for a moment": {5 * time.Second, verdict.Pass, verdict.OK},
		"any more":     {time.Hour, verdict.Inconclusive, verdict.EvidenceIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var until atomic.Pointer[time.Time]
				w.nads.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					at := until.Load()
					return at != nil && time.Now().Before(*at), nil, serverError
				})
				passes := w.created
				w.created = func(pod *corev1.Pod) {
					// The end of a canary that passes is some seconds away.
					time.AfterFunc(time.Second, func() { until.Store(new(time.Now().Add(4*time.Second + test.away))) })
					passes(pod)
				}
				start := time.Now()
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if result.Verdict.Outcome != test.outcome || result.Verdict.Cause != test.cause {
					t.Errorf("after %s: %+v\n%s", time.Since(start), result.Verdict, w.story())
				}
			})
		})
	}
}

// Watching is forbidden: the run polls, and comes to the same verdict.
func TestWithoutTheRightToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.forbidWatching()
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
	})
}

// Every path by which a run ends in an error tells what it leaves behind.
func TestExplain(t *testing.T) {
	cancelled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	trouble := errors.New("reading Pod a/b: no route to host")
	interrupt := errors.New("interrupt")
	tests := []struct {
		name    string
		ctx     context.Context
		err     error
		want    string
		refusal bool
		unwraps error
		stopped bool
	}{
		{name: "no error", ctx: t.Context()},
		{name: "no error, though cancelled", ctx: cancelled(interrupt)},
		{name: "a guard", ctx: t.Context(), err: refusef("no"), want: "no", refusal: true},
		{name: "a guard, though cancelled", ctx: cancelled(interrupt), err: refusef("no"), want: "no", refusal: true},
		{name: "trouble", ctx: t.Context(), err: trouble, want: "reading Pod a/b: no route to host (nothing was changed)", unwraps: trouble},
		{name: "trouble at the deadline", ctx: cancelled(ErrDeadline), err: trouble, want: "reading Pod a/b: no route to host (nothing was changed)", unwraps: trouble},
		{name: "interrupted", ctx: cancelled(interrupt), err: trouble, want: "interrupted: nothing was changed", unwraps: interrupt, stopped: true},
		{name: "the lock is lost", ctx: cancelled(errLost{"a/b", "bob"}), err: trouble, want: "the lock was taken over by bob while this run could not renew it; nothing was changed", refusal: true},
		{name: "the lock is gone", ctx: cancelled(errLost{"a/b", ""}), err: trouble, want: "the lock (Lease a/b) was deleted while this run held it; nothing was changed", refusal: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &Retest{state: "nothing was changed"}
			err := r.explain(test.ctx, test.err)
			if errorText(err) != test.want || isRefusal(err) != test.refusal {
				t.Errorf("got %v", err)
			}
			if test.unwraps != nil && !errors.Is(err, test.unwraps) {
				t.Errorf("%v does not wrap %v", err, test.unwraps)
			}
			var interruption *Interruption
			if errors.As(err, &interruption) != test.stopped {
				t.Errorf("interruption: %v", err)
			}
		})
	}
}

func TestHeldBy(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-a"}}
	if got, want := heldBy(pod, nil), "the kubelet of node node-a is stopping it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	event := func(second int64, reason, text string) *corev1.Event {
		return &corev1.Event{Reason: reason, Message: text, LastTimestamp: metav1.NewTime(time.Unix(second, 0))}
	}
	// In any order the newest counts.
	events := []*corev1.Event{event(2, "FailedKillPod", "newer"), event(1, "FailedKillPod", "older"), event(3, "Killing", "other")}
	for range 3 {
		events = append(events[1:], events[0])
		if got, want := heldBy(pod, events), "the kubelet cannot tear it down: newer"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	pod.DeletionGracePeriodSeconds = ptr.To[int64](1)
	if got, want := heldBy(pod, nil), "the kubelet of node node-a is stopping it (grace period 1 s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
