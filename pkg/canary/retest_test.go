package canary

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// TestMain looks for goroutines that outlive the tests. Reflectors report
// through a handler that slows down repeated errors by the real clock, which a
// bubble's clock never reaches.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

// memoryStore is a Store that forgets with the test.
type memoryStore struct {
	manifest *corev1.Pod
	attempts []Result
	// manifestErr and attemptErr are answers of a full disk.
	manifestErr, attemptErr error
}

func (s *memoryStore) SaveManifest(pod *corev1.Pod) (string, error) {
	if s.manifestErr != nil {
		return "", s.manifestErr
	}
	s.manifest = pod.DeepCopy()
	return "/state/manifest.yaml", nil
}

func (s *memoryStore) LoadManifest(evidence.Ref) (*corev1.Pod, string, error) {
	return s.manifest, "/state/manifest.yaml", nil
}

func (s *memoryStore) SaveAttempt(result Result) (string, error) {
	s.attempts = append(s.attempts, result)
	return "/state/attempt", s.attemptErr
}

func TestRetestJudgesTheNewPod(t *testing.T) {
	tests := map[string]struct {
		node    func(w *world) func(*corev1.Pod)
		outcome verdict.Outcome
		cause   verdict.Cause
	}{
		"a canary that passes":  {func(w *world) func(*corev1.Pod) { return w.passes }, verdict.Pass, verdict.OK},
		"a guard that fails":    {func(w *world) func(*corev1.Pod) { return w.guardFails }, verdict.Fail, verdict.GuardFailed},
		"a missing macvlan":     {func(w *world) func(*corev1.Pod) { return w.noMacvlan }, verdict.Fail, verdict.DelegatePluginMissing},
		"no scheduler takes it": {func(*world) func(*corev1.Pod) { return func(*corev1.Pod) {} }, verdict.Inconclusive, verdict.Unscheduled},
		"no kubelet takes it": {func(w *world) func(*corev1.Pod) {
			return func(pod *corev1.Pod) { w.play(pod, time.Second, w.scheduled) }
		}, verdict.Inconclusive, verdict.AttemptInProgress},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.created = test.node(w)
				ctx, end := deadlineIn(t, 2*time.Minute)
				defer end()
				result, err := w.retest().Run(ctx)
				check(t, err)
				if result.Verdict.Outcome != test.outcome || result.Verdict.Cause != test.cause {
					t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
				}
				if result.UID == "" || result.UID == "old-uid" || result.UID != w.pod("vlan50-canary").UID {
					t.Errorf("judged UID %q", result.UID)
				}
			})
		})
	}
}

func TestRetestWritesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		result, err := w.retest().Run(t.Context())
		check(t, err)
		want := []string{"create pods (dry run)", "create leases", "delete pods", "create pods", "patch pods", "update leases"}
		if diff := cmp.Diff(want, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		a := result.Attempt
		steps := []time.Time{a.StartedAt, a.RolloutReady, a.AttachReady, a.Deleted, a.Gone, a.Created, a.Decided}
		for i := 1; i < len(steps); i++ {
			if steps[i].IsZero() || steps[i].Before(steps[i-1]) {
				t.Errorf("step %d is at %v, the one before at %v", i, steps[i], steps[i-1])
			}
		}
		if gone := a.Gone.Sub(a.Deleted); gone != 2*time.Second {
			t.Errorf("the old Pod was gone after %s, the node took 2s", gone)
		}
		// Decided on the watch event itself, not at the next look.
		if took := a.Decided.Sub(a.Created); took != 3*time.Second {
			t.Errorf("decided %s after the creation, the canary took 3s", took)
		}
	})
}

func TestRetestRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		result, err := w.retest().Run(t.Context())
		check(t, err)
		pod := w.pod("vlan50-canary")
		record, err := Recorded(pod)
		check(t, err)
		if record.Configuration.ConfigMaps == nil {
			record.Configuration.ConfigMaps = map[string]string{} // empty in JSON
		}
		want := &Record{
			UID: pod.UID, Outcome: verdict.Pass, Cause: verdict.OK,
			Message: result.Verdict.Message, DecidedAt: result.Attempt.Decided.UTC().Truncate(time.Second), Configuration: result.Configuration,
		}
		if diff := cmp.Diff(want, record); diff != "" {
			t.Errorf("recorded on the Pod (-want +got):\n%s", diff)
		}
		if f := result.Configuration; f.DaemonSetUID != "ds-uid" || f.RevisionHash != "rev3" || f.DaemonPodUID != "kube-multus-ds-x7k2p-uid" {
			t.Errorf("fingerprint: %+v", f)
		}
		if len(w.store.attempts) != 1 || w.store.attempts[0].UID != pod.UID || w.store.attempts[0].Evidence.CanaryPod() == nil {
			t.Errorf("attempts saved: %+v", w.store.attempts)
		}
		if result.ManifestPath != "/state/manifest.yaml" || result.EvidencePath != "/state/attempt" {
			t.Errorf("paths: %q, %q", result.ManifestPath, result.EvidencePath)
		}
	})
}

func TestRetestKeepsTheVerdictThatCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.attemptErr = errors.New("the disk is full")
		w.fail("patch", "pods", apierrors.NewForbidden(podsResource.GroupResource(), "vlan50-canary", errors.New("no")))
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass {
			t.Errorf("verdict: %+v", result.Verdict)
		}
		if !w.told("the evidence could not be saved: the disk is full") || !w.told("the verdict could not be noted on Pod downloads/vlan50-canary") {
			t.Errorf("told:\n%s", w.story())
		}
	})
}

func TestRetestGoesOnAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) { s.canary = nil })
		w.store.manifest = canaryManifest()
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || !w.told("going on from the manifest saved by an earlier run (/state/manifest.yaml)") {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
	})
}

func TestRetestRepeatsWhatIsInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		created := 0
		w.created = func(pod *corev1.Pod) {
			if created++; created == 3 {
				w.passes(pod)
				return
			}
			// Somebody deletes it.
			time.AfterFunc(time.Second, func() { w.gone(pod.UID) })
		}
		r := w.retest()
		r.Attempts = 4
		result, err := r.Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || result.Attempt.Number != 3 || created != 3 {
			t.Errorf("attempt %d of %d created: %+v\n%s", result.Attempt.Number, created, result.Verdict, w.story())
		}
		if len(w.store.attempts) != 3 || w.store.attempts[0].Attempt.ID == w.store.attempts[1].Attempt.ID {
			t.Errorf("attempts saved: %+v", w.store.attempts)
		}
		if !w.told("attempt 1 of 4 was inconclusive (pod-deleted-during-add)") {
			t.Errorf("told:\n%s", w.story())
		}
	})
}

func TestRetestCrossCheck(t *testing.T) {
	tests := map[string]func(w *world){
		"the daemon restarted": func(w *world) {
			w.change(podsResource, "kube-system", "kube-multus-ds-x7k2p", func(o any) { o.(*corev1.Pod).Status.ContainerStatuses[0].RestartCount++ })
		},
		"the DaemonSet changed": func(w *world) {
			w.change(daemonSetsResource, "kube-system", "kube-multus-ds", func(o any) { o.(*appsv1.DaemonSet).Generation++ })
		},
		"the network was deleted": func(w *world) {
			check(w.t, w.nads.Tracker().Delete(nadResource, "downloads", "vlan50"))
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.created = func(pod *corev1.Pod) {
					w.passes(pod)
					time.AfterFunc(2500*time.Millisecond, func() { happens(w) })
				}
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if v := result.Verdict; v.Outcome != verdict.Inconclusive || v.Cause != verdict.StaleAttempt {
					t.Errorf("verdict: %+v", v)
				}
			})
		})
	}
}

func TestRetestDryRun(t *testing.T) {
	tests := map[string]struct {
		dryRun DryRun
		canary *corev1.Pod
		writes []string
		says   string
	}{
		"client":                       {DryRunClient, failedCanary(), nil, "Pod downloads/vlan50-canary (UID old-uid) would be deleted and created again from the live Pod (dry run)"},
		"server":                       {DryRunServer, failedCanary(), []string{"create pods (dry run)", "delete pods (dry run)"}, "would be deleted and created again"},
		"server, without a canary yet": {DryRunServer, nil, []string{"create pods (dry run)"}, "Pod downloads/vlan50-canary would be created (dry run)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(s *site) { s.canary = test.canary })
				r := w.retest()
				r.DryRun = test.dryRun
				if test.canary == nil {
					r.File = &Manifest{Pod: canaryManifest(), Source: "canary.yaml"}
				}
				result, err := r.Run(t.Context())
				check(t, err)
				if diff := cmp.Diff(test.writes, w.writes()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				if result.Verdict.Outcome != "" || !w.told(test.says) {
					t.Errorf("verdict %q, told:\n%s", result.Verdict.Outcome, w.story())
				}
			})
		})
	}
}
