package canary

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func TestCreateIsTriedAgain(t *testing.T) {
	quota := apierrors.NewConflict(podsResource.GroupResource(), "vlan50-canary", errors.New("quota usage has changed"))
	tests := map[string]struct {
		happens func(w *world)
		says    string
	}{
		"the server is busy":         {func(w *world) { w.fail("create", "pods", errBusy, errBusy) }, "slow down"},
		"the server is in trouble":   {func(w *world) { w.fail("create", "pods", serverError) }, "etcd is away"},
		"the quota has moved":        {func(w *world) { w.fail("create", "pods", quota) }, "quota usage has changed"},
		"the server was not reached": {func(w *world) { w.fail("create", "pods", errLostAnswer) }, "connection reset by peer"},
		"the answer was lost":        {func(w *world) { w.loseAnswer("create", "pods", w.createPod) }, "connection reset by peer"},
		"the name is not free yet": {func(w *world) {
			w.fail("create", "pods", apierrors.NewAlreadyExists(podsResource.GroupResource(), "vlan50-canary"))
		}, "created Pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				created := map[types.UID]bool{}
				w.created = func(pod *corev1.Pod) {
					created[pod.UID] = true
					w.passes(pod)
				}
				test.happens(w)
				result, err := w.retest().Run(t.Context())
				check(t, err)
				if result.Verdict.Outcome != verdict.Pass || len(created) != 1 || !created[result.UID] {
					t.Errorf("judged %s of %v: %+v", result.UID, created, result.Verdict)
				}
				if !w.told(test.says) {
					t.Errorf("told:\n%s", w.story())
				}
			})
		})
	}
}

// The server still shows the old Pod to the create: its store is behind.
func TestCreateWaitsForANameThatIsGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *site) { s.canary = nil })
		r := w.retest()
		r.File = &Manifest{Pod: canaryManifest(), Source: "canary.yaml"}
		w.happen("create", "pods", func() {
			w.createdBy("argocd-controller")
			w.update("namesake-uid", func(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now })
			time.AfterFunc(5*time.Second, func() { w.gone("namesake-uid") })
		})
		result, err := r.Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || !w.told("waiting for Pod downloads/vlan50-canary (UID namesake-uid) to be gone: the server still has it") {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
	})
}

func TestCreateThatIsRefusedSaysHowToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail("create", "pods", errForbidden)
		_, err := w.retest().Run(t.Context())
		want := "Pod downloads/vlan50-canary was deleted and is not created again; its manifest is saved in /state/manifest.yaml: run the same command again to go on"
		if err == nil || isRefusal(err) || !strings.HasPrefix(err.Error(), "creating Pod downloads/vlan50-canary: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error: %v", err)
		}
	})
}

func TestCreateOutOfTimeSaysWhatTheServerSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.happen("delete", "pods", func() { w.failRealCreates(serverError) })
		ctx, end := deadlineIn(t, time.Minute)
		defer end()
		result, err := w.retest().Run(ctx)
		check(t, err)
		v := result.Verdict
		if v.Outcome != verdict.Inconclusive || !strings.Contains(v.Message, "etcd is away") || !strings.Contains(v.Message, "is not created again; its manifest is saved in") {
			t.Errorf("verdict: %+v", v)
		}
	})
}

func (w *world) failRealCreates(err error) {
	w.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return !isDryRun(action), nil, err
	})
}

// Another Pod took the address while the old canary was going.
func TestAddressIsLookedForAgainBeforeTheCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.happen("delete", "pods", func() {
			thief := other("media", "player", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`, corev1.PodRunning)
			check(t, w.tracker.Create(podsResource, thief, thief.Namespace))
		})
		_, err := w.retest().Run(t.Context())
		if !isRefusal(err) || !strings.Contains(err.Error(), "Pod media/player") || !strings.Contains(err.Error(), "was deleted and is not created again") {
			t.Errorf("error: %v", err)
		}
		if pod := w.pod("vlan50-canary"); pod != nil {
			t.Error("two Pods hold one address")
		}
	})
}

// A server that is away between the deletion and the creation is waited for.
func TestServerIsAwayAfterTheDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.happen("delete", "pods", func() {
			back := time.Now().Add(10 * time.Second)
			w.meta.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return time.Now().Before(back), nil, errLostAnswer
			})
		})
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass || !w.told("waiting for the API server: ") {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
	})
}

// The run ends while it is not known whether the canary was created.
func TestCreateThatIsNotKnownIsNotDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		w.happen("delete", "pods", func() {
			w.failRealCreates(errLostAnswer)
			w.kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.GetSubresource() == "", nil, errLostAnswer
			})
			time.AfterFunc(30*time.Second, func() { cancel(errors.New("interrupt")) })
		})
		_, err := w.retest().Run(ctx)
		want := "interrupted: whether Pod downloads/vlan50-canary was created is not known; its manifest is saved in /state/manifest.yaml: run the same command again to go on"
		if errorText(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}
