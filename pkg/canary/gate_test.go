package canary

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// daemonStarted makes the daemon as old as that.
func daemonStarted(ago time.Duration) func(*site) {
	return func(s *site) {
		start := metav1.NewTime(time.Now().Add(-ago))
		s.daemon.Status.Conditions[0].LastTransitionTime = start
		s.daemon.Status.ContainerStatuses[0].State.Running.StartedAt = start
	}
}

// The gate opens when the daemon can attach, and says what it knew that by.
func TestGateOpens(t *testing.T) {
	start := 2 * time.Second // how old the daemon is
	tests := map[string]struct {
		age   time.Duration
		log   func(since time.Time) func() (string, error)
		after time.Duration
		by    string
		says  string
	}{
		"the log says so already": {start, constantLog(readyLog), 0, rollout.ByLog, "has written its CNI conf"},
		"the log says so later": {start, func(began time.Time) func() (string, error) {
			return func() (string, error) {
				if time.Since(began) < 5*time.Second {
					return startingLog, nil
				}
				return readyLog, nil
			}
		}, 5 * time.Second, rollout.ByLog, "is Ready, but has not written its CNI conf yet"},
		"the log does not tell":        {start, constantLog("2026-01-15T12:00:00Z [error] x\n"), 8 * time.Second, rollout.BySettle, "its log does not tell"},
		"the log is empty":             {start, constantLog(""), 8 * time.Second, rollout.BySettle, "its log does not tell"},
		"the log may not be read":      {start, failingLog(apierrors.NewForbidden(podsResource.GroupResource(), "x", nil)), 8 * time.Second, rollout.BySettle, "right missing: get pods/log in namespace kube-system"},
		"the log cannot be read":       {start, failingLog(serverError), 8 * time.Second, rollout.BySettle, "its log cannot be read"},
		"an old daemon, log rotated":   {time.Hour, constantLog(""), 0, rollout.ByAge, "has run for 1h0m0s without a restart"},
		"an old daemon, log forbidden": {time.Hour, failingLog(serverError), 0, rollout.ByAge, "has run for 1h0m0s without a restart"},
		"verbose, and never tells":     {start, constantLog("2026-01-15T12:00:00Z [verbose] multus-daemon started\n"), 3*time.Minute - start, rollout.ByAge, "has not written its CNI conf yet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, daemonStarted(test.age))
				began := time.Now()
				w.says(test.log(began))
				result, err := w.retest().Run(t.Context())
				check(t, err)
				a := result.Attempt
				if result.Verdict.Outcome != verdict.Pass || a.AttachReadyBy != test.by || !w.told(test.says) {
					t.Errorf("by %q, verdict %+v\n%s", a.AttachReadyBy, result.Verdict, w.story())
				}
				// A log that ends is read again after a moment.
				if opened := a.AttachReady.Sub(began); opened < test.after || opened > test.after+logRetry {
					t.Errorf("opened after %s, want %s\n%s", opened, test.after, w.story())
				}
				if len(w.notes) > 20 {
					t.Errorf("told too much:\n%s", w.story())
				}
			})
		})
	}
}

func constantLog(text string) func(time.Time) func() (string, error) {
	return func(time.Time) func() (string, error) { return func() (string, error) { return text, nil } }
}

func failingLog(err error) func(time.Time) func() (string, error) {
	return func(time.Time) func() (string, error) { return func() (string, error) { return "", err } }
}

// A laptop that is ahead does not take a young daemon for an old one.
func TestGateTakesAgesByTheClockOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daemonStarted(2*time.Second))
		began := time.Now()
		w.says(func() (string, error) {
			if time.Since(began) < 20*time.Second {
				return startingLog, nil
			}
			return readyLog, nil
		})
		r := w.retest()
		r.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
		result, err := r.Run(t.Context())
		check(t, err)
		if a := result.Attempt; a.AttachReadyBy != rollout.ByLog || result.Verdict.Outcome != verdict.Pass {
			t.Errorf("ready by %s, verdict %+v\n%s", a.AttachReadyBy, result.Verdict, w.story())
		}
		if !w.told("this machine's clock is 10m0s off the API server's: ages are taken by the server's") {
			t.Errorf("told:\n%s", w.story())
		}
	})
}

// Where waiting cannot help the run ends at once, and says so.
func TestGateIsBlocked(t *testing.T) {
	tests := map[string]struct {
		changes func(s *site)
		happens func(w *world)
		cause   verdict.Cause
		says    string
	}{
		"the DaemonSet wants no Pod": {
			changes: func(s *site) { s.daemonSet.Status.DesiredNumberScheduled = 0 },
			cause:   verdict.RolloutZeroDesired, says: "DaemonSet kube-system/kube-multus-ds wants no Pod on any node (nodeSelector <none>). Nothing was changed.",
		},
		"OnDelete": {
			changes: func(s *site) {
				s.daemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				s.daemon.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
			},
			cause: verdict.RolloutOnDelete, says: "stays until somebody deletes it. Nothing was changed.",
		},
		"no node has the canary's labels": {
			changes: func(s *site) { s.canary.Spec.NodeSelector = map[string]string{"vlan50": "yes"} },
			cause:   verdict.Unscheduled, says: "no node has the labels of the canary's nodeSelector (vlan50=yes). Nothing was changed.",
		},
		"the node that may only be guessed is not there": {
			changes: func(s *site) { s.canary.Spec.NodeSelector[corev1.LabelHostname] = "gone" },
			happens: func(w *world) {
				w.fail("list", "nodes", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil))
			},
			cause: verdict.Unscheduled, says: "there is no node gone, which the canary asks for. Nothing was changed.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.changes)
				if test.happens != nil {
					test.happens(w)
				}
				began := time.Now()
				result, err := w.retest().Run(t.Context())
				check(t, err)
				v := result.Verdict
				if v.Outcome != verdict.Inconclusive || v.Cause != test.cause || v.Next == "" || !strings.HasSuffix(v.Message, test.says) {
					t.Errorf("verdict: %+v\n%s", v, w.story())
				}
				if result.UID != "" || !w.untouched() || time.Since(began) != 0 {
					t.Errorf("UID %q, after %s: %v", result.UID, time.Since(began), w.writes())
				}
			})
		})
	}
}

// A daemon that is killed again and again is a fault that any attempt would meet.
func TestGateFailsOnADaemonOutOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) {
			s.daemon.Status.Conditions[0].Status = corev1.ConditionFalse
			s.daemon.Status.ContainerStatuses[0] = corev1.ContainerStatus{
				Name: "kube-multus", RestartCount: 5,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}},
			}
		})
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if v := result.Verdict; v.Outcome != verdict.Fail || v.Cause != verdict.DaemonOOM || !w.untouched() {
			t.Errorf("verdict: %+v", v)
		}
	})
}

// The daemon restarts while the old canary is going: the new one is not made
// before the new container has written its conf.
func TestGateIsPassedAgainAfterTheDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var wrote time.Time
		w.deleted = func(pod *corev1.Pod) {
			restarted := time.Now().Add(time.Second)
			time.AfterFunc(time.Second, func() {
				w.says(func() (string, error) {
					if time.Since(restarted) < 5*time.Second {
						return startingLog, nil
					}
					if wrote.IsZero() {
						wrote = time.Now()
					}
					return readyLog, nil
				})
				w.change(podsResource, "kube-system", "kube-multus-ds-x7k2p", func(object any) {
					status := &object.(*corev1.Pod).Status.ContainerStatuses[0]
					status.ContainerID, status.RestartCount = "containerd://again", 1
					status.State.Running.StartedAt = metav1.NewTime(restarted)
				})
			})
			time.AfterFunc(2*time.Second, func() { w.gone(pod.UID) })
		}
		result, err := w.retest().Run(t.Context())
		check(t, err)
		a := result.Attempt
		if result.Verdict.Outcome != verdict.Pass || wrote.IsZero() || a.Created.Before(wrote) {
			t.Errorf("created %v, conf written %v: %+v\n%s", a.Created, wrote, result.Verdict, w.story())
		}
		if a.AttachReady.Before(wrote) {
			t.Errorf("attach ready at %v, the conf was written at %v", a.AttachReady, wrote)
		}
	})
}

// Where the canary may run anywhere, every daemon counts, and the weakest proof.
func TestGateOfACanaryWithoutANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) {
			s.canary.Spec.NodeSelector = nil
			s.daemonSet.Status.DesiredNumberScheduled, s.daemonSet.Status.UpdatedNumberScheduled = 2, 2
			old := metav1.NewTime(time.Now().Add(-time.Hour))
			s.others = []runtime.Object{readyNode("node-b"), daemonPod(s.daemonSet, "kube-multus-ds-b", "node-b", old)}
		})
		w.says(func() (string, error) { return readyLog, nil })
		w.happen("delete", "pods", func() {
			w.change(podsResource, "kube-system", "kube-multus-ds-b", func(object any) {
				object.(*corev1.Pod).Status.Conditions[0].Status = corev1.ConditionFalse
			})
			time.AfterFunc(30*time.Second, func() {
				w.change(podsResource, "kube-system", "kube-multus-ds-b", func(object any) {
					object.(*corev1.Pod).Status.Conditions[0].Status = corev1.ConditionTrue
				})
			})
		})
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if took := result.Attempt.Created.Sub(result.Attempt.Deleted); took != 30*time.Second {
			t.Errorf("created %s after the deletion, the other node's daemon was Ready after 30s\n%s", took, w.story())
		}
		if result.Verdict.Outcome != verdict.Pass {
			t.Errorf("verdict: %+v", result.Verdict)
		}
	})
}

// A DaemonSet that comes later is waited for.
func TestGateWaitsForTheDaemonSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stored, err := w.tracker.Get(daemonSetsResource, "kube-system", "kube-multus-ds")
		check(t, err)
		check(t, w.tracker.Delete(daemonSetsResource, "kube-system", "kube-multus-ds"))
		time.AfterFunc(20*time.Second, func() { check(t, w.tracker.Create(daemonSetsResource, stored, "kube-system")) })
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || !w.told("waiting: the Multus DaemonSet is not there") {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
	})
}
