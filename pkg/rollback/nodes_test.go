package rollback

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// A node that lacks nothing but a CNI conf can be reached, and is mended.
func TestIsReady(t *testing.T) {
	t.Parallel()
	const network = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	for _, row := range []struct {
		status  corev1.ConditionStatus
		message string
		want    bool
	}{
		{corev1.ConditionTrue, "kubelet is posting ready status", true},
		{corev1.ConditionFalse, network, true},
		{corev1.ConditionFalse, "[" + network + ", PLEG is not healthy]", false},
		{corev1.ConditionFalse, "container runtime is down", false},
		{corev1.ConditionUnknown, "Kubelet stopped posting node status.", false},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: row.status, Message: row.message}}}}
		if got := isReady(node); got != row.want {
			t.Errorf("%s, %q: %t", row.status, row.message, got)
		}
	}
	if isReady(new(corev1.Node)) {
		t.Error("a node that says nothing is no ready one")
	}
}

// Of several known folders the one that Multus has been in is the one, whatever
// container tools have left in the standard place.
func TestWorthOf(t *testing.T) {
	t.Parallel()
	podman := file("87-podman-bridge.conflist", flannelConf)
	kept := file("00-multus.conf.20260912T101112Z.", multusConf)
	kept.Name += kept.SHA256[:12]
	sum := file(kept.Name+".sha256", kept.SHA256+"  "+kept.Name+"\n")
	for name, row := range map[string]struct {
		dir  ConfDir
		want int
	}{
		"nothing":           {ConfDir{}, empty},
		"a tool's conf":     {ConfDir{Files: []File{podman}}, confs},
		"Multus' conf":      {ConfDir{Files: []File{file("00-multus.conf", multusConf), podman}}, traces},
		"a kept conf alone": {ConfDir{Files: []File{podman}, Backups: []File{kept, sum}}, traces},
	} {
		if got := worthOf(row.dir); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// A daemon Pod that waits for its node tells that the others are not all.
func TestComplete(t *testing.T) {
	t.Parallel()
	on := func(name string) corev1.Pod { return corev1.Pod{Spec: corev1.PodSpec{NodeName: name}} }
	for name, row := range map[string]struct {
		desired int32
		pods    []corev1.Pod
		want    bool
	}{
		"one of one":            {1, []corev1.Pod{on("a")}, true},
		"one of two":            {2, []corev1.Pod{on("a"), on("")}, false},
		"two Pods of one node":  {2, []corev1.Pod{on("a"), on("a")}, false},
		"more than are desired": {1, []corev1.Pod{on("a"), on("b")}, true},
		"none":                  {0, nil, false},
	} {
		set := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: row.desired}}
		if got := complete(set, row.pods); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Anybody who may start a Pod may bring an image to a node.
func TestImageOnTheNode(t *testing.T) {
	t.Parallel()
	const upstream = "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.1-thick"
	for _, row := range []struct {
		names []string
		want  string
	}{
		{[]string{"ghcr.io/k8snetworkplumbingwg/multus-cni@sha256:00", upstream}, upstream},
		{[]string{"evil.example/multus-thick:1", "evil.example/ghcr.io/k8snetworkplumbingwg/multus-cni:v4-thick"}, ""},
		{[]string{"ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.1"}, ""}, // thin: it has no shell
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: row.names}}}}
		if got := multusImage(node); got != row.want {
			t.Errorf("%v: %q", row.names, got)
		}
	}
}

// localStore is what this machine remembers.
type localStore struct {
	Store
	image  string
	goesOn evidence.Ref
}

func (s localStore) LoadImage(string) (string, error) { return s.image, nil }
func (s localStore) GoesOn(of evidence.Ref) bool      { return s.goesOn == of }

// What the cluster tells comes first, then what this machine knows, then what is
// everybody's.
func TestImageOfANode(t *testing.T) {
	t.Parallel()
	const upstream = "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.1-thick"
	for name, row := range map[string]struct {
		change func(*collector)
		want   string
	}{
		"nothing is known": {func(*collector) {}, DefaultNodeImage},
		"a run before":     {func(c *collector) { c.Store = localStore{image: "registry.example/multus@sha256:00"} }, "registry.example/multus@sha256:00"},
		"the DaemonSet": {func(c *collector) {
			c.set, c.state.Ground.Image, c.Store = &appsv1.DaemonSet{}, "set", localStore{image: "before"}
		}, "set"},
		"a mark": {func(c *collector) {
			c.markedImage, c.state.Ground.Image, c.Store = "mark", "mark", localStore{image: "before"}
		}, "mark"},
		"the user": {func(c *collector) {
			c.NodeImage, c.state.Ground.Image, c.Store = "user", "user", localStore{image: "before"}
		}, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &collector{Rollback: &Rollback{Store: localStore{}}}
			c.state.Ground.Image = DefaultNodeImage
			row.change(c)
			if got := c.nodeState(&corev1.Node{}, nil).Image; got != row.want {
				t.Errorf("image %s, want %s", got, row.want)
			}
		})
	}
	const old = "registry.example/multus@sha256:00"
	for _, row := range []struct {
		before string
		has    []string
		want   string
	}{
		{"", []string{upstream}, upstream},
		{old, []string{upstream}, upstream}, // the old one may be gone for good
		{old, []string{upstream, old}, old},
	} {
		c := &collector{Rollback: &Rollback{Store: localStore{image: row.before}}}
		node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: row.has}}}}
		if got := c.nodeState(node, nil).Image; got != row.want {
			t.Errorf("image %s, want %s", got, row.want)
		}
	}
}

// A mark is only a word: one from elsewhere is believed where this machine has begun
// that rollback, and else stops a run that would be half of one.
func TestMarksOfOthers(t *testing.T) {
	t.Parallel()
	type mark struct{ in, names string }
	const own = "kube-system/kube-multus-ds"
	for name, row := range map[string]struct {
		marks []mark
		// begun is the rollback that this machine has begun; stands is a DaemonSet
		// that is there.
		begun, stands string
		want          string // the DaemonSet
		stops         string // a part of the refusal
		notes         int
	}{
		"beside the default DaemonSet":               {marks: []mark{{"kube-system", "kube-system/other"}}, want: "kube-system/other", notes: 1},
		"in another namespace":                       {marks: []mark{{"tenant", "tenant/ds"}}, want: own, stops: "DaemonSet tenant/ds"},
		"in many namespaces":                         {marks: []mark{{"tenant", "tenant/ds"}, {"team", "team/ds"}}, want: own, stops: "(and 1 more)"},
		"of one that is there":                       {marks: []mark{{"tenant", "tenant/ds"}}, stands: "tenant/ds", want: own},
		"of a rollback that was begun here":          {marks: []mark{{"multus", "multus/multus"}}, begun: "multus/multus", want: "multus/multus", notes: 1},
		"beside that of another one begun here":      {marks: []mark{{"tenant", "tenant/ds"}}, begun: "multus/multus", want: own, stops: "DaemonSet tenant/ds"},
		"begun here, and one of a stranger before":   {marks: []mark{{"a-team", "a-team/ds"}, {"multus", "multus/multus"}}, begun: "multus/multus", want: "multus/multus", notes: 2},
		"of the default DaemonSet, and a stranger's": {marks: []mark{{"kube-system", own}, {"tenant", "tenant/ds"}}, want: own, notes: 1},
		"in another namespace, for the default's":    {marks: []mark{{"tenant", "kube-system/other"}}, want: own},
		"beside the default, for another namespace":  {marks: []mark{{"kube-system", "tenant/ds"}}, want: own},
		"of the default DaemonSet itself":            {marks: []mark{{"kube-system", own}}, want: own},
		"a path":                                     {marks: []mark{{"tenant", "tenant/../../.."}}, want: own, stops: "tenant/../../.."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := metadatafake.NewTestScheme()
			must(t, metav1.AddMetaToScheme(scheme))
			var objects []runtime.Object
			for _, m := range row.marks {
				objects = append(objects, &metav1.PartialObjectMetadata{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: metav1.ObjectMeta{Namespace: m.in, Name: "marked", Annotations: map[string]string{
						MarkAnnot: "daemonset " + m.names, ConfDirAnnot: "/etc/kubernetes/pki",
					}},
				})
			}
			ref := func(text string) evidence.Ref {
				namespace, name, _ := strings.Cut(text, "/")
				return evidence.Ref{Namespace: namespace, Name: name}
			}
			c := &collector{Rollback: &Rollback{
				Clients:   &Clients{Clients: &cluster.Clients{Metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...)}},
				DaemonSet: ref(own), Store: localStore{goesOn: ref(row.begun)},
			}}
			c.state.DaemonSet = ref(own)
			if stands := ref(row.stands); stands.Name != "" {
				c.templates = []template{{object: object("DaemonSet", stands.Namespace, stands.Name)}}
			}
			must(t, c.adopt(t.Context()))
			if c.state.DaemonSet != ref(row.want) || len(c.state.Notes) != row.notes {
				t.Errorf("DaemonSet %s, notes %q", c.state.DaemonSet, c.state.Notes)
			}
			guard := otherDaemonGuard(c.state)
			if (guard.Truth == Broken) != (row.stops != "") || !strings.Contains(guard.Message, row.stops) {
				t.Errorf("guard %s: %s", guard.Truth, guard.Message)
			}
		})
	}
}
