package canary

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// lease is a Lease that somebody else has renewed that long ago, by the clock
// of this machine.
func lease(renewed time.Duration, process string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(time.Now().Add(-renewed))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "downloads", Name: "vlan50-canary", ResourceVersion: "before",
			Annotations: map[string]string{processAnnot: process},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("bob@rack"), LeaseDurationSeconds: ptr.To[int32](60),
			AcquireTime: &at, RenewTime: &at,
		},
	}
}

// lease is the Lease as stored.
func (w *world) lease() *coordinationv1.Lease {
	object, err := w.tracker.Get(leasesResource, "downloads", "vlan50-canary")
	check(w.t, err)
	return object.(*coordinationv1.Lease).DeepCopy()
}

// editLease changes the stored Lease, as another client does.
func (w *world) editLease(change func(*coordinationv1.Lease)) {
	stored := w.lease()
	change(stored)
	stored.ResourceVersion = w.next()
	check(w.t, w.tracker.Update(leasesResource, stored, stored.Namespace))
}

func withLease(l *coordinationv1.Lease) func(*site) {
	return func(s *site) { s.others = append(s.others, l) }
}

// untouched reports whether the old canary is as it was.
func (w *world) untouched() bool {
	pod := w.pod("vlan50-canary")
	return pod != nil && pod.UID == "old-uid" && pod.DeletionTimestamp == nil
}

var serverError = &apierrors.StatusError{ErrStatus: metav1.Status{
	Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd is away",
}}

func TestLockIsRefusedWhileItsHolderLives(t *testing.T) {
	tests := map[string]struct {
		renewed time.Duration
		process string
		// renews: the holder renews again while the run watches, by its own clock.
		renews bool
	}{
		"renewed a moment ago":                     {renewed: 5 * time.Second, process: "machine-2/7"},
		"looks stale, because its clock is behind": {renewed: 10 * time.Minute, process: "machine-2/7", renews: true},
		"its clock is ahead":                       {renewed: -time.Hour, process: "machine-2/7", renews: true},
		"a process of this machine that runs":      {renewed: 5 * time.Second, process: "machine-1/7"},
		"a process of a machine without a name":    {renewed: 5 * time.Second, process: "/7"},
		"no process named":                         {renewed: 5 * time.Second, process: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, withLease(lease(test.renewed, test.process)))
				if test.renews {
					time.AfterFunc(leaseRenewal, func() {
						w.editLease(func(l *coordinationv1.Lease) {
							l.Spec.RenewTime = new(metav1.NewMicroTime(l.Spec.RenewTime.Add(leaseRenewal)))
						})
					})
				}
				_, err := w.retest().Run(t.Context())
				if !isRefusal(err) || !strings.Contains(err.Error(), "is locked by bob@rack since ") {
					t.Errorf("error: %v", err)
				}
				if !w.untouched() {
					t.Errorf("the canary was touched: %v", w.writes())
				}
			})
		})
	}
}

func TestLockIsTakenOver(t *testing.T) {
	tests := map[string]struct {
		renewed time.Duration
		process string
		says    string
		after   time.Duration
	}{
		"stale, and nobody renews it": {
			renewed: 2 * time.Minute, process: "machine-2/7",
			says: "taking over the stale lock of bob@rack", after: leaseDoubt,
		},
		"renewed in a far future, and nobody renews it": {
			renewed: -time.Hour, process: "machine-2/7",
			says: "taking over the stale lock of bob@rack", after: leaseDoubt,
		},
		"its process was on this machine and is gone": {
			renewed: 5 * time.Second, process: "machine-1/7",
			says: "the earlier run of bob@rack is no longer there: taking over its lock",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := newWorld(t, withLease(lease(test.renewed, test.process)))
				r := w.retest()
				r.Process.Alive = func(pid int) bool { return pid != 7 }
				result, err := r.Run(t.Context())
				check(t, err)
				if result.Verdict.Outcome != verdict.Pass || !w.told(test.says) {
					t.Errorf("verdict %s, told:\n%s", result.Verdict.Outcome, w.story())
				}
				if waited := result.Attempt.Gone.Sub(start); waited < test.after || waited > test.after+5*time.Second {
					t.Errorf("waited %s for the lock, want %s", waited, test.after)
				}
				if l := w.lease(); ptr.Deref(l.Spec.LeaseTransitions, 0) != 1 || ptr.Deref(l.Spec.HolderIdentity, "?") != "" {
					t.Errorf("the Lease afterwards: %+v", l.Spec)
				}
			})
		})
	}
}

// neverCreated keeps a run waiting for the old canary, until the test's end.
func (w *world) neverGone() { w.deleted = func(*corev1.Pod) {} }

func TestLockIsRenewedAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.neverGone()
		ctx, end := deadlineIn(t, 3*time.Minute)
		defer end()
		time.AfterFunc(95*time.Second, func() {
			if age := time.Since(w.lease().Spec.RenewTime.Time); age > leaseRenewal {
				t.Errorf("the Lease was last renewed %s ago", age)
			}
		})
		_, err := w.retest().Run(ctx)
		check(t, err)
		if holder := ptr.Deref(w.lease().Spec.HolderIdentity, "?"); holder != "" {
			t.Errorf("the Lease is still held by %q", holder)
		}
	})
}

func TestLockSurvivesWhatIsNoLoss(t *testing.T) {
	conflict := apierrors.NewConflict(leasesResource.GroupResource(), "vlan50-canary", errors.New("the object has been modified"))
	tests := map[string]func(w *world){
		"the server is away for one renewal": func(w *world) { w.fail("update", "leases", nil, serverError) },
		"somebody has edited a label": func(w *world) {
			time.AfterFunc(15*time.Second, func() {
				w.editLease(func(l *coordinationv1.Lease) { l.Labels = map[string]string{"seen": "yes"} })
			})
		},
		"the server is away after a conflict": func(w *world) {
			// Whose the Lease is cannot be told: that is no loss.
			w.fail("update", "leases", conflict)
			w.fail("get", "leases", nil, serverError)
		},
		"somebody has edited a label just before the end": func(w *world) {
			time.AfterFunc(59*time.Second, func() {
				w.editLease(func(l *coordinationv1.Lease) { l.Labels = map[string]string{"seen": "yes"} })
			})
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.deleted = func(pod *corev1.Pod) { time.AfterFunc(time.Minute-3*time.Second, func() { w.gone(pod.UID) }) }
				happens(w)
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if result.Verdict.Outcome != verdict.Pass {
					t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
				}
				if holder := ptr.Deref(w.lease().Spec.HolderIdentity, "?"); holder != "" {
					t.Errorf("the Lease is still held by %q", holder)
				}
			})
		})
	}
}

// A lock that could not be renewed for as long as it lasts may be another's:
// nothing is created before that is known.
func TestNothingIsWrittenOnAnOldLock(t *testing.T) {
	for name, test := range map[string]struct {
		taken bool // by another run meanwhile
	}{
		"it is still ours":         {false},
		"another run has taken it": {true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var away atomic.Bool
				w.kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					return away.Load(), nil, serverError
				})
				w.deleted = func(pod *corev1.Pod) {
					away.Store(true)
					time.AfterFunc(100*time.Second, func() { w.gone(pod.UID) })
					time.AfterFunc(2*time.Minute, func() {
						if test.taken {
							w.editLease(func(l *coordinationv1.Lease) {
								l.Spec.HolderIdentity, l.Annotations[processAnnot] = new("bob@rack"), "machine-2/7"
							})
						}
						away.Store(false)
					})
				}
				start, created := time.Now(), time.Duration(0)
				passes := w.created
				w.created = func(pod *corev1.Pod) {
					created = time.Since(start)
					passes(pod)
				}
				result, err := w.retest().Run(t.Context())
				switch {
				case test.taken && (!isRefusal(err) || !strings.Contains(err.Error(), "taken over by bob@rack") || created > 0):
					t.Errorf("created after %s, error: %v", created, err)
				case !test.taken && (err != nil || result.Verdict.Outcome != verdict.Pass || created < 2*time.Minute):
					t.Errorf("created after %s, error: %v, verdict: %+v", created, err, result.Verdict)
				}
			})
		})
	}
}

func TestLockLostStopsTheRun(t *testing.T) {
	tests := map[string]struct {
		happens func(w *world)
		says    string
	}{
		"another run has taken it over": {
			happens: func(w *world) {
				w.editLease(func(l *coordinationv1.Lease) {
					l.Spec.HolderIdentity, l.Annotations[processAnnot] = new("bob@rack"), "machine-2/7"
				})
			},
			says: "the lock was taken over by bob@rack",
		},
		"another run of the same user on the same machine": {
			happens: func(w *world) {
				w.editLease(func(l *coordinationv1.Lease) { l.Annotations[processAnnot] = "machine-1/101" })
			},
			says: "the lock was taken over by ann@desk",
		},
		"somebody has deleted the Lease": {
			happens: func(w *world) {
				check(w.t, w.tracker.Delete(leasesResource, "downloads", "vlan50-canary"))
			},
			says: "the lock (Lease downloads/vlan50-canary) was deleted",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.neverGone()
				time.AfterFunc(15*time.Second, func() { test.happens(w) })
				_, err := w.retest().Run(t.Context())
				if !isRefusal(err) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "manifest is saved in /state/manifest.yaml") {
					t.Errorf("error: %v", err)
				}
				if w.kube.Actions()[len(w.kube.Actions())-1].GetVerb() == "update" {
					t.Error("a Lease that is no longer ours was written")
				}
			})
		})
	}
}

func TestLockRaces(t *testing.T) {
	tests := map[string]func(w *world){
		"another run creates the Lease first": func(w *world) {
			w.fail("create", "leases", apierrors.NewAlreadyExists(leasesResource.GroupResource(), "vlan50-canary"))
		},
		"another run takes the free Lease first": func(w *world) {
			free := lease(time.Hour, "machine-2/7")
			free.Spec.HolderIdentity = new("")
			check(w.t, w.tracker.Create(leasesResource, free, free.Namespace))
			w.fail("update", "leases", apierrors.NewConflict(leasesResource.GroupResource(), "vlan50-canary", errors.New("modified")))
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				happens(w)
				_, err := w.retest().Run(t.Context())
				if !isRefusal(err) || !strings.Contains(err.Error(), "Pod downloads/vlan50-canary has just been locked by another run") {
					t.Errorf("error: %v", err)
				}
				if !w.untouched() {
					t.Errorf("the canary was touched: %v", w.writes())
				}
			})
		})
	}
}

func TestLockThatCannotBeReadIsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail("get", "leases", serverError)
		_, err := w.retest().Run(t.Context())
		if err == nil || isRefusal(err) || !strings.Contains(err.Error(), "taking the lock (Lease downloads/vlan50-canary)") {
			t.Errorf("error: %v", err)
		}
	})
}

// A right that is taken away in mid-run ends the run, with its reason.
func TestLockThatMayNotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deleted = func(pod *corev1.Pod) {
			w.failAlways("update", "leases", errForbidden)
			time.AfterFunc(100*time.Second, func() { w.gone(pod.UID) })
		}
		_, err := w.retest().Run(t.Context())
		if !isRefusal(err) || !strings.Contains(err.Error(), "may not be renewed any more") || !strings.Contains(err.Error(), "/state/manifest.yaml") {
			t.Errorf("error: %v", err)
		}
		if pod := w.pod("vlan50-canary"); pod != nil {
			t.Errorf("Pod %s was created", pod.UID)
		}
	})
}
