package canary

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// other is another Pod that asks for an address on a network.
func other(namespace, name, networks string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: "other-uid",
			Annotations: map[string]string{nadv1.NetworkAttachmentAnnot: networks},
		},
		Spec:   corev1.PodSpec{NodeName: "node-b"},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// Nothing is changed where a guard does not hold.
func TestGuards(t *testing.T) {
	tests := map[string]struct {
		changes func(s *site)
		happens func(w *world)
		run     func(r *Retest)
		want    []string // parts of the refusal; nil where the run goes through
	}{
		"the live Pod is a Deployment's": {
			changes: func(s *site) {
				s.canary.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1"}}
			},
			want: []string{"Pod downloads/vlan50-canary will not be deleted: it is owned by ReplicaSet web-1"},
		},
		"no Pod and no manifest": {
			changes: func(s *site) { s.canary = nil },
			want:    []string{"there is no Pod downloads/vlan50-canary and no manifest saved by an earlier run: pass the manifest with -f FILE"},
		},
		"a saved manifest that was tampered with": {
			changes: func(s *site) { s.canary = nil },
			happens: func(w *world) {
				w.store.manifest = canaryManifest()
				w.store.manifest.Annotations[nadv1.NetworkStatusAnnot] = "[]"
			},
			want: []string{"the saved manifest /state/manifest.yaml is no canary's: it carries the annotation k8s.v1.cni.cncf.io/network-status"},
		},
		"rights are missing": {
			happens: func(w *world) { w.denied = []string{"delete pods", "update leases"} },
			want: []string{
				"nothing was changed: this user may not delete pods in namespace downloads; update leases.coordination.k8s.io in namespace downloads",
				"ask for config/rbac/retest.yaml",
			},
		},
		"admission refuses the manifest": {
			happens: func(w *world) {
				w.refuseDryRun(apierrors.NewForbidden(podsResource.GroupResource(), "vlan50-canary", errors.New("exceeded quota")))
			},
			want: []string{"nothing was changed: the server would not take Pod downloads/vlan50-canary from the live Pod: ", "exceeded quota", "room for one more"},
		},
		"a webhook asks for another address": {
			happens: func(w *world) {
				w.mutate = func(pod *corev1.Pod) {
					pod.Annotations[nadv1.NetworkAttachmentAnnot] = `[{"name":"vlan50","ips":["192.0.2.101/24"]}]`
				}
			},
			want: []string{"nothing was changed: the server makes ", `192.0.2.101`, "mutating webhook"},
		},
		"a webhook takes the networks away": {
			happens: func(w *world) {
				w.mutate = func(pod *corev1.Pod) { delete(pod.Annotations, nadv1.NetworkAttachmentAnnot) }
			},
			want: []string{`nothing was changed: the server makes "" of the networks`},
		},
		"a webhook adds what is no network": {
			happens: func(w *world) {
				w.mutate = func(pod *corev1.Pod) { pod.Annotations["example.com/injected"] = "true" }
			},
		},
		"another Pod asks for the address": {
			changes: func(s *site) {
				s.others = []runtime.Object{other("media", "player", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`, corev1.PodRunning)}
			},
			want: []string{"two Pods would hold one address: Pod media/player (Running, on node node-b) claims 192.0.2.100 on master enp1s0.50; delete that Pod", "(nothing was changed)"},
		},
		"another Pod asks for it on another network of the same parent": {
			changes: func(s *site) {
				s.networks = append(s.networks, network("media", "lan", "enp1s0.50"))
				s.others = []runtime.Object{other("media", "player", `[{"name":"lan","ips":["192.0.2.100/16"]}]`, corev1.PodPending)}
			},
			want: []string{"Pod media/player (Pending, on node node-b) claims 192.0.2.100 on master enp1s0.50"},
		},
		"another Pod asks for it on another parent": {
			changes: func(s *site) {
				s.networks = append(s.networks, network("media", "lan", "enp1s0.60"))
				s.others = []runtime.Object{other("media", "player", `[{"name":"lan","ips":["192.0.2.100/24"]}]`, corev1.PodRunning)}
			},
		},
		"another Pod holds it on a network that is gone": {
			changes: func(s *site) {
				player := other("media", "player", `[{"name":"lan","ips":["192.0.2.100/24"]}]`, corev1.PodRunning)
				player.Annotations[nadv1.NetworkStatusAnnot] = `[{"name":"media/lan","interface":"net1","ips":["192.0.2.100"]}]`
				s.others = []runtime.Object{player}
			},
			want: []string{"Pod media/player (Running, on node node-b) claims 192.0.2.100", "NetworkAttachmentDefinition media/lan, by which it got the address, is gone or broken"},
		},
		"another Pod asks for it on a network that is gone, and never had it": {
			changes: func(s *site) {
				s.others = []runtime.Object{other("media", "player", `[{"name":"lan","ips":["192.0.2.100/24"]}]`, corev1.PodPending)}
			},
		},
		"another Pod had the address and has finished": {
			changes: func(s *site) {
				s.others = []runtime.Object{other("media", "player", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`, corev1.PodSucceeded)}
			},
		},
		"another Pod asks for another address": {
			changes: func(s *site) {
				s.others = []runtime.Object{other("media", "player", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.101/24"]}]`, corev1.PodRunning)}
			},
		},
		"another Pod's annotation does not parse": {
			changes: func(s *site) { s.others = []runtime.Object{other("media", "player", `[{"name":`, corev1.PodPending)} },
		},
		"another Pod asks for a network that is not there": {
			changes: func(s *site) { s.others = []runtime.Object{other("media", "player", "missing", corev1.PodPending)} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes []func(*site)
				if test.changes != nil {
					changes = append(changes, test.changes)
				}
				w := newWorld(t, changes...)
				if test.happens != nil {
					test.happens(w)
				}
				result, err := w.retest().Run(t.Context())
				if test.want == nil {
					check(t, err)
					if result.Verdict.Outcome != verdict.Pass {
						t.Errorf("verdict: %+v", result.Verdict)
					}
					return
				}
				if !isRefusal(err) {
					t.Fatalf("not refused: %v", err)
				}
				for _, text := range test.want {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("refusal %q does not say %q", err, text)
					}
				}
				if writes := w.writes(); len(writes) > 0 && cmp.Diff([]string{"create pods (dry run)"}, writes) != "" {
					t.Errorf("writes: %v", writes)
				}
			})
		})
	}
}

// refuseDryRun is a server that does not admit the canary.
func (w *world) refuseDryRun(err error) {
	w.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return isDryRun(action), nil, err
	})
}

// Trouble is no refusal, and no "nobody asks for the address" either.
func TestGuardsThatCannotBeProved(t *testing.T) {
	tooMany := apierrors.NewTooManyRequestsError("slow down")
	lan := func(s *site) {
		s.networks = append(s.networks, network("media", "lan", "enp1s0.50"))
		s.others = []runtime.Object{other("media", "player", `[{"name":"lan","ips":["192.0.2.100/24"]}]`, corev1.PodRunning)}
	}
	tests := map[string]struct {
		happens func(w *world)
		want    string
	}{
		"the live Pod cannot be read":          {func(w *world) { w.fail("get", "pods", serverError) }, "reading Pod downloads/vlan50-canary: "},
		"rights cannot be asked for":           {func(w *world) { w.failAlways("create", "selfsubjectaccessreviews", serverError) }, "asking the server for this user's rights: "},
		"the dry run is not answered":          {func(w *world) { w.refuseDryRun(serverError) }, "trying Pod downloads/vlan50-canary on the server (dry run): "},
		"the dry run is put off":               {func(w *world) { w.refuseDryRun(tooMany) }, "trying Pod downloads/vlan50-canary on the server (dry run): "},
		"another Pod's network cannot be read": {func(w *world) { w.failNetwork("lan", serverError) }, "looking for other Pods with the canary's address: reading the networks of Pod media/player: "},
		"the canary's network cannot be read":  {func(w *world) { w.failNetwork("vlan50", serverError) }, "looking for other Pods with the canary's address: "},
		"Pods cannot be listed": {func(w *world) {
			w.meta.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, serverError })
		}, "looking for other Pods with the canary's address: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, lan)
				test.happens(w)
				_, err := w.retest().Run(t.Context())
				if err == nil || isRefusal(err) || !strings.HasPrefix(err.Error(), test.want) || !strings.HasSuffix(err.Error(), "(nothing was changed)") {
					t.Errorf("error: %v", err)
				}
				if !w.untouched() {
					t.Errorf("the canary was touched: %v", w.writes())
				}
			})
		})
	}
}

// failNetwork answers every read of one NetworkAttachmentDefinition.
func (w *world) failNetwork(name string, err error) {
	w.nads.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.(clienttesting.GetAction).GetName() == name, nil, err
	})
}

func TestManifestIsNotDeletedWithoutACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.manifestErr = errors.New("the disk is full")
		_, err := w.retest().Run(t.Context())
		if want := "saving the manifest of Pod downloads/vlan50-canary before deleting it: the disk is full (nothing was changed)"; errorText(err) != want {
			t.Errorf("error: %v", err)
		}
		if !w.untouched() {
			t.Errorf("the canary was touched: %v", w.writes())
		}
	})
}

// What is created is the user's file, without what an earlier verdict left in it.
func TestManifestFromAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.created = func(*corev1.Pod) {}
		r := w.retest()
		file := canaryManifest()
		file.Labels = map[string]string{"from": "file"}
		file.Annotations[VerdictAnnot], file.Annotations[JudgedAnnot] = "pass", "old-uid"
		r.File = &Manifest{Pod: file, Source: "canary.yaml"}
		ctx, end := deadlineIn(t, 5*time.Second)
		defer end()
		_, err := r.Run(ctx)
		check(t, err)
		pod := w.store.manifest
		if pod.Labels["from"] != "file" || pod.Annotations[VerdictAnnot] != "" || pod.Annotations[JudgedAnnot] != "" {
			t.Errorf("created from %v, %v", pod.Labels, pod.Annotations)
		}
		if file.Annotations[VerdictAnnot] != "pass" {
			t.Error("the file's Pod was changed")
		}
	})
}

// The live Pod was edited after it was proved: it is proved again.
func TestManifestEditedMeanwhileIsProvedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.says(func() (string, error) { return startingLog, nil })
		time.AfterFunc(20*time.Second, func() {
			w.update("old-uid", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "busybox:1.37" })
			w.says(func() (string, error) { return readyLog, nil })
		})
		_, err := w.retest().Run(t.Context())
		check(t, err)
		if image := w.pod("vlan50-canary").Spec.Containers[0].Image; image != "busybox:1.37" {
			t.Errorf("created with image %s", image)
		}
		want := []string{"create pods (dry run)", "create leases", "update leases", "update leases", "create pods (dry run)", "delete pods"}
		if diff := cmp.Diff(want, w.writes()[:len(want)]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}
