package rollback

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// object is one that is there, with a UID made of its name.
func object(kind, namespace, name string) Object {
	o := Object{Kind: kindNamed(kind), Namespace: namespace, Name: name}
	o.UID = types.UID("uid of " + o.String())
	return o
}

// node is Ready, runs a daemon, and was looked at.
func nodeWith(name string, files ...File) NodeState {
	return NodeState{
		Name: name, Daemon: true, Serving: true, Ready: true, Runtime: "containerd://2.1.0", Image: "multus:thick",
		ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin", Looked: true, Dir: ConfDir{Path: "/etc/cni/net.d", Files: files},
	}
}

// site is the reference site, healthy; changes deviate from it.
func site(changes ...func(*State)) State {
	pod, set := object("Pod", "downloads", "vlan50-canary"), object("DaemonSet", "kube-system", "kube-multus-ds")
	crd := object("CustomResourceDefinition", "", networkCRD)
	s := State{
		Canary: evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"}, DaemonSet: evidence.Ref{Namespace: "kube-system", Name: "kube-multus-ds"},
		Access: AccessPod, CanaryPod: &pod, DaemonSetObject: &set, CRD: &crd,
		DaemonPods: []Object{object("Pod", "kube-system", "kube-multus-ds-abcde")},
		Networks:   []Object{object(networkKind, "downloads", "vlan50")},
		Guards:     []Object{object("ConfigMap", "downloads", "vlan50-guard")},
		Support:    []Object{object("ClusterRoleBinding", "", "multus"), object("ClusterRole", "", "multus"), object("ServiceAccount", "kube-system", "multus"), object("ConfigMap", "kube-system", "multus-daemon-config")},
		Keep:       map[string]string{},
		Nodes:      []NodeState{nodeWith("node-1", file("00-multus.conf", multusConf), file("10-flannel.conflist", flannelConf))},
		Ground:     Ground{Namespace: "kube-system", Image: "multus:thick"},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// shape is a plan in a few words, one step a line.
func shape(p Plan) []string {
	var lines []string
	for i, step := range p.Steps {
		if step.Number != i+1 {
			lines = append(lines, fmt.Sprintf("step %d has number %d", i+1, step.Number))
		}
		lines = append(lines, string(step.Action)+" "+step.Subject())
	}
	return lines
}

func TestPlanOrder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state State
		want  []string
	}{
		"healthy site": {site(), []string{
			"remove-conf node node-1",
			"probe node node-1",
			"mark the objects of this plan",
			"delete Pod downloads/vlan50-canary",
			"delete NetworkAttachmentDefinition downloads/vlan50",
			"delete ConfigMap downloads/vlan50-guard",
			"delete DaemonSet kube-system/kube-multus-ds",
			"recheck node node-1",
			"probe node node-1",
			"delete ClusterRoleBinding multus",
			"delete ClusterRole multus",
			"delete ServiceAccount kube-system/multus",
			"delete ConfigMap kube-system/multus-daemon-config",
			"delete CustomResourceDefinition network-attachment-definitions.k8s.cni.cncf.io",
		}},
		"consumers go first, in the user's order": {
			site(onlyDaemon, func(s *State) {
				s.Consumers = []Object{object("Service", "downloads", "proxy"), object("Deployment", "downloads", "proxy"), {Kind: kindNamed("Pod"), Namespace: "downloads", Name: "gone"}}
			}),
			[]string{
				"remove-conf node node-1", "probe node node-1", "mark the objects of this plan",
				"delete Service downloads/proxy", "delete Deployment downloads/proxy", "delete DaemonSet kube-system/kube-multus-ds",
				"recheck node node-1", "probe node node-1",
			},
		},
		"one node after the other, each probed": {
			site(onlyDaemon, func(s *State) {
				second := s.Nodes[0]
				second.Name = "node-2"
				s.Nodes = append(s.Nodes, second)
			}),
			[]string{
				"remove-conf node node-1", "probe node node-1", "remove-conf node node-2", "probe node node-2",
				"delete DaemonSet kube-system/kube-multus-ds",
				"recheck node node-1", "probe node node-1", "recheck node node-2", "probe node node-2",
			},
		},
		"the conf is absent already": {
			site(onlyDaemon, func(s *State) { s.Nodes[0].Dir.Files = s.Nodes[0].Dir.Files[1:] }),
			[]string{"probe node node-1", "delete DaemonSet kube-system/kube-multus-ds", "recheck node node-1", "probe node node-1"},
		},
		"conf left behind without a DaemonSet": {
			site(nothing), []string{"remove-conf node node-1", "probe node node-1"},
		},
		"daemon Pods without a DaemonSet": {
			site(nothing, func(s *State) { s.DaemonPods = []Object{object("Pod", "kube-system", "kube-multus-ds-abcde")} }),
			[]string{
				"remove-conf node node-1", "probe node node-1", "delete Pod kube-system/kube-multus-ds-abcde",
				"recheck node node-1", "probe node node-1",
			},
		},
		"cut short after the DaemonSet: the node is proven again": {
			site(nothing, func(s *State) {
				s.Support = []Object{object("ClusterRole", "", "multus")}
				backup := "00-multus.conf.20260314T120000Z." + Checksum([]byte(multusConf))[:12]
				s.Nodes[0].Dir = ConfDir{Files: []File{file("10-flannel.conflist", flannelConf)}, Backups: []File{
					file(backup, multusConf), file(backup+".sha256", Checksum([]byte(multusConf))+"  "+backup),
				}}
			}),
			[]string{"probe node node-1", "delete ClusterRole multus"},
		},
		"no trace on the node, and no daemon: it is proven before the objects go": {
			site(nothing, func(s *State) {
				s.Support = []Object{object("ClusterRole", "", "multus")}
				s.Nodes[0].Dir.Files = s.Nodes[0].Dir.Files[1:]
			}),
			[]string{"probe node node-1", "delete ClusterRole multus"},
		},
		"clean": {
			site(nothing, func(s *State) { s.Nodes[0].Dir.Files = s.Nodes[0].Dir.Files[1:] }), nil,
		},
		"networks of others keep their definition": {
			site(nothing, func(s *State) {
				crd := object("CustomResourceDefinition", "", networkCRD)
				s.CRD, s.Nodes = &crd, nil
				s.Keep[crd.String()] = "it stays: its deletion would delete others"
			}),
			[]string{"keep CustomResourceDefinition network-attachment-definitions.k8s.cni.cncf.io"},
		},
		"by hand": {
			site(onlyDaemon, byHand),
			[]string{"remove-conf node node-1", "probe node node-1", "delete DaemonSet kube-system/kube-multus-ds", "recheck node node-1", "probe node node-1"},
		},
		"by hand, and no daemon is left: a probe shows whether anything is to be done": {
			site(nothing, byHand), []string{"probe node node-1"},
		},
		"a dry run has not looked": {
			site(onlyDaemon, func(s *State) { s.Nodes[0].Looked, s.Nodes[0].Dir = false, ConfDir{} }),
			[]string{"remove-conf node node-1", "probe node node-1", "delete DaemonSet kube-system/kube-multus-ds", "recheck node node-1", "probe node node-1"},
		},
		"leftovers of thin Multus": {
			site(nothing, func(s *State) {
				s.Nodes[0].Dir.Files = []File{{Name: credentialDir, Kind: Directory}, file("10-flannel.conflist", flannelConf)}
			}),
			[]string{"recheck node node-1", "probe node node-1"},
		},
		"leftovers of thin Multus, which cri-o still needs": {
			site(nothing, func(s *State) {
				s.Nodes[0].Runtime = "cri-o://1.31"
				s.Nodes[0].Dir.Files = []File{{Name: credentialDir, Kind: Directory}, file("10-flannel.conflist", flannelConf)}
			}), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := MakePlan(row.state)
			if diff := cmp.Diff(row.want, shape(plan)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			wantEmpty := !slices.ContainsFunc(row.want, func(line string) bool { return !strings.HasPrefix(line, "keep ") })
			if plan.Empty() != wantEmpty {
				t.Errorf("empty: %t", plan.Empty())
			}
			wantProbes := !wantEmpty && !slices.ContainsFunc(row.want, func(line string) bool { return !strings.HasPrefix(line, "probe ") })
			if plan.ProbesOnly() != wantProbes {
				t.Errorf("probes only: %t", plan.ProbesOnly())
			}
		})
	}
}

// onlyDaemon leaves the DaemonSet alone, nothing leaves no object at all.
func onlyDaemon(s *State) {
	s.CanaryPod, s.Networks, s.Guards, s.Support, s.CRD = nil, nil, nil, nil, nil
}

func nothing(s *State) {
	onlyDaemon(s)
	s.DaemonSetObject, s.DaemonPods, s.Nodes[0].Daemon = nil, nil, false
}

func byHand(s *State) {
	s.Access, s.Nodes[0].Looked, s.Nodes[0].Dir = AccessManual, false, ConfDir{}
}

func TestPlanSaysWhatHoldsAnObject(t *testing.T) {
	t.Parallel()
	plan := MakePlan(site(onlyDaemon, func(s *State) {
		held, going := object(networkKind, "downloads", "vlan50"), object("ConfigMap", "downloads", "guard")
		held.Finalizers = []string{"example.com/hold"}
		going.Deleting = true
		s.Networks, s.Guards = []Object{held}, []Object{going}
	}))
	var texts []string
	for _, step := range plan.Deletions() {
		texts = append(texts, step.Text)
	}
	want := []string{
		"delete it and wait until it is gone (finalizer example.com/hold must let it go)",
		"it is being deleted: wait until it is gone",
		"delete it and wait until it and its Pods are gone",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// app is an Application that lists one object as its own.
func app(name string, automated *argocd.Automated, owns Object) argocd.Application {
	var a argocd.Application
	a.Metadata.Namespace, a.Metadata.Name = "argocd", name
	a.Spec.SyncPolicy = &struct {
		Automated *argocd.Automated `json:"automated"`
	}{automated}
	a.Status.Resources = []argocd.Object{{Group: owns.Kind.Group, Kind: owns.Kind.Name, Namespace: owns.Namespace, Name: owns.Name}}
	return a
}

func TestGuards(t *testing.T) {
	t.Parallel()
	network := object(networkKind, "downloads", "vlan50")
	controlled := func(o Object, kind, name string) Object {
		o.Owner = &metav1.OwnerReference{Kind: kind, Name: name, UID: "above"}
		return o
	}
	for name, row := range map[string]struct {
		state State
		guard GuardName
		truth Truth
		texts []string
	}{
		"a right is missing": {site(func(s *State) { s.Rights = "delete pods in namespace downloads" }), GuardRights, Broken, []string{"may not delete pods", "config/rbac/rollback.yaml"}},
		"a Pod uses the network": {
			site(func(s *State) {
				s.Users = []User{{Object: object("Pod", "media", "box"), Networks: []string{"downloads/vlan50"}}}
			}), GuardUsers, Broken, []string{"Pod media/box (downloads/vlan50)", "--also KIND/NAMESPACE/NAME"},
		},
		"an annotation that cannot be read": {
			site(func(s *State) { s.Users = []User{{Object: object("Pod", "media", "box"), Unreadable: `[{"name":`}} }), GuardUsers, Broken, []string{"cannot be read"},
		},
		"networks of others stop nothing": {
			site(func(s *State) { s.ForeignNetworks = []Object{object(networkKind, "media", "vlan20")} }), GuardNetworks, Holds, []string{"NetworkAttachmentDefinition media/vlan20", "stays"},
		},
		"Argo CD syncs by itself": {
			site(func(s *State) { s.Apps = []argocd.Application{app("network", &argocd.Automated{}, network)} }), GuardArgoCD, Broken,
			[]string{"Application argocd/network: automated sync is on", `kubectl --namespace argocd patch applications.argoproj.io network --type merge --patch '{"spec":{"syncPolicy":{"automated":null}}}'`, "argocd app set argocd/network --sync-policy none"},
		},
		"Argo CD heals by itself": {
			site(func(s *State) {
				s.Apps = []argocd.Application{app("network", &argocd.Automated{SelfHeal: true}, network)}
			}), GuardArgoCD, Broken, []string{"with self-heal"},
		},
		"Argo CD's automated sync is switched off": {
			site(func(s *State) {
				s.Apps = []argocd.Application{app("network", &argocd.Automated{Enabled: new(false)}, network)}
			}), GuardArgoCD, Holds, []string{"is off"},
		},
		"Argo CD owns other things": {
			site(func(s *State) {
				s.Apps = []argocd.Application{app("web", &argocd.Automated{SelfHeal: true}, object("Deployment", "web", "web"))}
			}), GuardArgoCD, Holds, []string{"no Argo CD Application"},
		},
		"Argo CD owns the definition, which stays": {
			site(func(s *State) {
				s.Apps = []argocd.Application{app("crds", &argocd.Automated{SelfHeal: true}, *s.CRD)}
				s.Keep[s.CRD.String()] = "it stays"
			}), GuardArgoCD, Holds, []string{"no Argo CD Application"},
		},
		"Applications may not be read": {site(func(s *State) { s.AppsHide = "list applications.argoproj.io" }), GuardArgoCD, Broken, []string{"list applications.argoproj.io"}},
		"an operator owns the DaemonSet": {
			site(func(s *State) { *s.DaemonSetObject = controlled(*s.DaemonSetObject, "Network", "cluster") }), GuardOwner, Broken, []string{"DaemonSet kube-system/kube-multus-ds is controlled by Network cluster"},
		},
		"the plan's own Deployment owns a named Pod": {
			site(func(s *State) {
				deployment, pod := object("Deployment", "downloads", "proxy"), object("Pod", "downloads", "proxy-1")
				pod.Owner = &metav1.OwnerReference{Kind: "Deployment", Name: "proxy", UID: deployment.UID}
				s.Consumers = []Object{pod, deployment}
			}), GuardOwner, Holds, []string{"no controller"},
		},
		"a named Pod comes back by its ReplicaSet": {
			site(func(s *State) {
				s.Consumers = []Object{controlled(object("Pod", "downloads", "proxy-1"), "ReplicaSet", "proxy")}
			}), GuardOwner, Broken, []string{"ReplicaSet proxy"},
		},
		"a daemon Pod without its DaemonSet": {
			site(nothing, func(s *State) {
				s.DaemonPods = []Object{controlled(object("Pod", "kube-system", "kube-multus-ds-1"), "DaemonSet", "kube-multus-ds")}
			}), GuardOwner, Holds, []string{"no controller"},
		},
		"another Multus": {
			site(func(s *State) { s.Daemons = []evidence.Ref{{Namespace: "multus", Name: "arm64"}} }), GuardOtherDaemon, Broken, []string{"DaemonSet multus/arm64", "--daemonset"},
		},
		"a node is not Ready":              {site(func(s *State) { s.Nodes[0].Ready = false }), GuardNodeAccess, Broken, []string{"Node node-1 is not Ready", "delete the Node object"}},
		"a node with a daemon is left out": {site(func(s *State) { s.LeftOut = []string{"node node-2"} }), GuardNodeAccess, Broken, []string{"node node-2", "--node leaves out"}},
		"Pod Security forbids":             {site(func(s *State) { s.Admission = "forbidden by label" }), GuardNodeAccess, Broken, []string{"forbidden by label"}},
		"a node could not be looked at": {
			site(func(s *State) { s.Nodes[0].Looked, s.Nodes[0].Err = false, "the image is not there" }), GuardNodeAccess, Broken, []string{"node node-1: the image is not there"},
		},
		"a folder that is not root's": {
			site(func(s *State) { s.Nodes[0].Dir.Locked = "it belongs to user 998: use --node-access=manual" }), GuardConf, Broken, []string{"node node-1: it belongs to user 998"},
		},
		"a folder that is not root's, where nothing goes": {
			site(nothing, func(s *State) {
				s.Nodes[0].Dir.Locked, s.Nodes[0].Dir.Files = "it belongs to user 998", s.Nodes[0].Dir.Files[1:]
			}), GuardConf, Holds, []string{"takes over"},
		},
		"a folder that is not root's, where a daemon may write its conf again": {
			site(func(s *State) {
				s.Nodes[0].Dir.Locked, s.Nodes[0].Dir.Files = "it belongs to user 998", s.Nodes[0].Dir.Files[1:]
			}), GuardConf, Broken, []string{"node node-1: it belongs to user 998"},
		},
		"the rollback of another DaemonSet was cut short": {
			site(nothing, func(s *State) {
				s.CutShort = []string{"ConfigMap multus/config is marked to go with DaemonSet multus/multus, which is gone", "x"}
			}),
			GuardOtherDaemon, Broken,
			[]string{"DaemonSet multus/multus", "(and 1 more)", "--daemonset"},
		},
		"another conf takes over": {site(), GuardConf, Holds, []string{"node-1 (10-flannel.conflist, type flannel)"}},
		"no other conf": {
			site(func(s *State) { s.Nodes[0].Dir.Files = s.Nodes[0].Dir.Files[:1] }), GuardConf, Broken, []string{"node node-1: no other CNI conf"},
		},
		"no other conf, though Multus' own has gone already": {
			site(func(s *State) { s.Nodes[0].Dir.Files = nil }), GuardConf, Broken, []string{"no CNI conf is in", "--cni-conf-dir"},
		},
		"a node without Multus has trouble of its own": {
			site(nothing, func(s *State) { s.Nodes[0].Dir.Files = nil }), GuardConf, Holds, []string{"no node has a Multus conf"},
		},
		"a foreign file of Multus' name": {
			site(func(s *State) { s.Nodes[0].Dir.Files[0] = file("00-multus.conf", `{"type":"bridge"}`) }), GuardConf, Broken, []string{"is no conf of Multus"},
		},
		"not looked at in a dry run": {
			site(func(s *State) { s.Nodes[0].Looked, s.Nodes[0].Dir = false, ConfDir{} }), GuardConf, Unknown, []string{"before anything is changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := MakePlan(row.state)
			i := slices.IndexFunc(plan.Guards, func(g Guard) bool { return g.Name == row.guard })
			guard := plan.Guards[i]
			if guard.Truth != row.truth {
				t.Errorf("%s: %s", guard.Truth, guard.Message)
			}
			for _, text := range row.texts {
				if !strings.Contains(guard.Message, text) {
					t.Errorf("it does not say %q: %s", text, guard.Message)
				}
			}
			for _, other := range plan.Broken() {
				if other.Name != row.guard {
					t.Errorf("%s is broken as well: %s", other.Name, other.Message)
				}
			}
		})
	}
}

func TestParseObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"deployment/downloads/proxy": "Deployment downloads/proxy",
		"Pods/media/box":             "Pod media/box",
		"ClusterRole/proxy":          "ClusterRole proxy",
		"clusterrole/ns/proxy":       "not of the form KIND/NAME",
		"pod/box":                    "not of the form KIND/NAMESPACE/NAME",
		"pod//box":                   "not of the form",
		"pod/media/":                 "not of the form",
		"namespace/media":            "does not delete objects of kind",
		"":                           "does not delete objects of kind",
		// With it would go all objects of its kind, in every namespace.
		"customresourcedefinition/certificates.cert-manager.io": "does not delete objects of kind",
	} {
		got, err := ParseObject(text)
		if answer := got.String(); err == nil && answer != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
}
