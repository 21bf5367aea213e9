package canary

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

var (
	errLostAnswer = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	errConflict   = apierrors.NewConflict(podsResource.GroupResource(), "vlan50-canary", errors.New("the object has been modified"))
	errBusy       = apierrors.NewTooManyRequestsError("slow down")
	errForbidden  = apierrors.NewForbidden(podsResource.GroupResource(), "vlan50-canary", errors.New("no"))
)

// happen does something just before a kind of request is answered, once.
func (w *world) happen(verb, resource string, what func()) {
	done := false
	w.kube.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !done && !isDryRun(action) {
			done = true
			what()
		}
		return false, nil, nil
	})
}

// loseAnswer lets the next request of a kind through and loses its answer.
func (w *world) loseAnswer(verb, resource string, do clienttesting.ReactionFunc) {
	done := false
	w.kube.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if done || isDryRun(action) {
			return false, nil, nil
		}
		done = true
		_, _, err := do(action)
		check(w.t, err)
		return true, nil, errLostAnswer
	})
}

// recreated replaces the canary by a Pod that another client has created.
func (w *world) recreated(by string) {
	w.gone(w.pod("vlan50-canary").UID)
	w.createdBy(by)
}

func (w *world) createdBy(by string) {
	pod := w.namesake(by)
	check(w.t, w.tracker.Create(podsResource, pod, pod.Namespace))
}

// replaced is recreated as a watch shows it that has missed the deletion.
func (w *world) replaced(by string) {
	pod := w.namesake(by)
	check(w.t, w.tracker.Update(podsResource, pod, pod.Namespace))
}

func (w *world) namesake(by string) *corev1.Pod {
	pod := canaryManifest()
	pod.UID, pod.ResourceVersion, pod.CreationTimestamp = "namesake-uid", w.next(), metav1.Now()
	pod.ManagedFields = managedBy(by)
	return pod
}

// deletes are the preconditions of all real delete requests.
func (w *world) deletes() []*metav1.Preconditions {
	var all []*metav1.Preconditions
	for _, action := range w.kube.Actions() {
		if del, ok := action.(clienttesting.DeleteActionImpl); ok && !isDryRun(action) {
			all = append(all, del.DeleteOptions.Preconditions)
		}
	}
	return all
}

func TestDeleteIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		happens func(w *world)
		deletes int
	}{
		"at once": {func(*world) {}, 1},
		"the Pod has moved on": {func(w *world) {
			w.happen("delete", "pods", func() { w.update("old-uid", func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} }) })
		}, 2},
		"the server is busy":         {func(w *world) { w.fail("delete", "pods", errBusy) }, 2},
		"the server is in trouble":   {func(w *world) { w.fail("delete", "pods", serverError, serverError) }, 3},
		"the server was not reached": {func(w *world) { w.fail("delete", "pods", errLostAnswer) }, 2},
		"the answer was lost":        {func(w *world) { w.loseAnswer("delete", "pods", w.deletePod) }, 1},
		"the Pod has just gone":      {func(w *world) { w.happen("delete", "pods", func() { w.gone("old-uid") }) }, 1},
		"the server is away when it is looked at again": {func(w *world) {
			w.fail("delete", "pods", errConflict)
			w.fail("get", "pods", nil, errLostAnswer, errBusy, serverError)
		}, 2},
		"somebody deletes it too": {func(w *world) {
			w.happen("delete", "pods", func() {
				w.update("old-uid", func(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now })
				w.deleted(w.pod("vlan50-canary"))
			})
		}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				test.happens(w)
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if result.Verdict.Outcome != verdict.Pass {
					t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
				}
				deletes := w.deletes()
				if len(deletes) != test.deletes {
					t.Errorf("%d deletes, want %d", len(deletes), test.deletes)
				}
				for _, p := range deletes {
					if p == nil || p.UID == nil || *p.UID != "old-uid" || p.ResourceVersion == nil || *p.ResourceVersion == "" {
						t.Errorf("a delete without preconditions: %+v", p)
					}
				}
			})
		})
	}
}

func TestDeleteThatIsRefusedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail("delete", "pods", errForbidden)
		_, err := w.retest().Run(t.Context())
		if err == nil || isRefusal(err) || !strings.HasPrefix(err.Error(), "deleting Pod downloads/vlan50-canary: ") || !strings.HasSuffix(err.Error(), "(nothing was changed)") {
			t.Errorf("error: %v", err)
		}
	})
}

func TestDeleteLooksAgainWhatItDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.happen("delete", "pods", func() {
			w.update("old-uid", func(pod *corev1.Pod) {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}
			})
		})
		_, err := w.retest().Run(t.Context())
		if !isRefusal(err) || !strings.Contains(err.Error(), "Pod downloads/vlan50-canary will not be deleted: it is owned by ReplicaSet web") || !w.untouched() {
			t.Errorf("error: %v", err)
		}
	})
}

// The address is the old Pod's until its UID is gone.
func TestNothingIsCreatedWhileTheOldPodIsThere(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Pod)
		event  bool
		says   string
	}{
		"the kubelet stops it":      {func(*corev1.Pod) {}, false, "waiting for Pod downloads/vlan50-canary to be gone: the kubelet of node node-a is stopping it (grace period 30 s)"},
		"a finalizer holds it":      {func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/a", "example.com/b"} }, false, "held by finalizer example.com/a, example.com/b"},
		"its sandbox will not stop": {func(*corev1.Pod) {}, true, "the kubelet cannot tear it down: error killing pod: second"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(s *site) { test.change(s.canary) })
				w.deleted = func(pod *corev1.Pod) {
					for i, text := range []string{"first", "second", "first of another kind"} {
						if test.event && i < 2 {
							time.AfterFunc(time.Duration(i)*time.Second, func() {
								w.eventOf(pod, "kubelet", corev1.EventTypeWarning, "FailedKillPod", "error killing pod: "+text)
							})
						}
					}
					time.AfterFunc(50*time.Second, func() { w.gone(pod.UID) })
				}
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if !w.told(test.says) {
					t.Errorf("told:\n%s", w.story())
				}
				if took := result.Attempt.Created.Sub(result.Attempt.Deleted); took != 50*time.Second {
					t.Errorf("created %s after the deletion, the old Pod was gone after 50s", took)
				}
				if len(w.deletes()) != 1 {
					t.Errorf("%d deletes", len(w.deletes()))
				}
			})
		})
	}
}

func TestPodThatTerminatesAlreadyIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) { now := metav1.Now(); s.canary.DeletionTimestamp = &now })
		time.AfterFunc(20*time.Second, func() { w.gone("old-uid") })
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || len(w.deletes()) != 0 || !w.told("is terminating already; manifest saved in /state/manifest.yaml") {
			t.Errorf("verdict %s, %d deletes, told:\n%s", result.Verdict.Outcome, len(w.deletes()), w.story())
		}
	})
}

func TestNamesakeStopsTheRun(t *testing.T) {
	tests := map[string]func(w *world){
		"before the delete is answered": func(w *world) { w.happen("delete", "pods", func() { w.recreated("argocd-controller") }) },
		"while the old Pod is going, and the watch missed its end": func(w *world) {
			w.deleted = func(*corev1.Pod) { time.AfterFunc(time.Second, func() { w.replaced("argocd-controller") }) }
		},
		"just before the create": func(w *world) { w.happen("create", "pods", func() { w.createdBy("argocd-controller") }) },
		"while the new Pod is judged": func(w *world) {
			w.created = func(*corev1.Pod) { time.AfterFunc(time.Second, func() { w.replaced("argocd-controller") }) }
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				happens(w)
				_, err := w.retest().Run(t.Context())
				want := "another Pod downloads/vlan50-canary (UID namesake-uid) was created by field manager argocd-controller at "
				if !isRefusal(err) || !strings.Contains(err.Error(), want) {
					t.Errorf("error: %v\n%s", err, w.story())
				}
				if pod := w.pod("vlan50-canary"); pod == nil || pod.UID != "namesake-uid" || pod.DeletionTimestamp != nil || pod.Annotations[VerdictAnnot] != "" {
					t.Errorf("the namesake was touched: %+v", pod)
				}
			})
		})
	}
}

func TestManager(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0)} }
	tests := map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"the one that wrote first":       {[]metav1.ManagedFieldsEntry{{Manager: "kubectl-label", Time: at(9)}, {Manager: "argocd-controller", Time: at(1)}}, "field manager argocd-controller"},
		"the kubelet's status is no one": {[]metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status", Time: at(1)}, {Manager: "helm", Time: at(2)}}, "field manager helm"},
		"nobody":                         {nil, "an unknown client"},
		"without a name":                 {[]metav1.ManagedFieldsEntry{{Time: at(1)}}, "an unknown client"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := manager(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.fields}}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A Pod that asks for no grace would go from the API while it runs, as by force.
func TestDeleteGivesGrace(t *testing.T) {
	for name, test := range map[string]struct{ own, want *int64 }{
		"the Pod's own":     {new(int64(30)), nil},
		"none is asked for": {new(int64(0)), new(int64(1))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(s *site) { s.canary.Spec.TerminationGracePeriodSeconds = test.own })
				_, err := w.retest().Run(t.Context())
				check(t, err)
				for _, action := range w.kube.Actions() {
					del, ok := action.(clienttesting.DeleteActionImpl)
					if ok && (del.DeleteOptions.GracePeriodSeconds == nil) != (test.want == nil) {
						t.Errorf("grace %v, want %v", del.DeleteOptions.GracePeriodSeconds, test.want)
					}
				}
			})
		})
	}
}
