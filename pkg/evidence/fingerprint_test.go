package evidence

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configured is a canary with everything a fingerprint looks at.
func configured() Evidence {
	owner := []metav1.OwnerReference{{Kind: "DaemonSet", Name: "multus", UID: "ds1"}}
	return Evidence{
		Canary:    Ref{Namespace: "downloads", Name: "canary", UID: "c1"},
		DaemonSet: Ref{Namespace: "kube-system", Name: "multus"},
		Collected: map[Resource]bool{Pods: true, Networks: true, ConfigMaps: true},
		Pods: []corev1.Pod{
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "canary", UID: "c1", Annotations: map[string]string{nadv1.NetworkAttachmentAnnot: "vlan50,media/cam"}},
				Spec: corev1.PodSpec{
					NodeName: "node-a",
					Volumes: []corev1.Volume{
						{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "guard"}}}},
						{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}},
					},
				},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "multus-old", UID: "p0", OwnerReferences: owner, DeletionTimestamp: &metav1.Time{Time: time.Unix(9, 0)}, CreationTimestamp: metav1.Unix(8, 0)},
				Spec:       corev1.PodSpec{NodeName: "node-a"},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "multus-1", UID: "p1", OwnerReferences: owner, CreationTimestamp: metav1.Unix(7, 0)},
				Spec:       corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{Name: "daemon"}}},
				Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", RestartCount: 7}, {Name: "daemon", RestartCount: 1, ContainerID: "containerd://1"}}},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "multus-b", UID: "p2", OwnerReferences: owner, CreationTimestamp: metav1.Unix(9, 0)},
				Spec:       corev1.PodSpec{NodeName: "node-b"},
			},
		},
		DaemonSets: []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "multus", UID: "ds1", Generation: 3}}},
		ControllerRevisions: []appsv1.ControllerRevision{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "r9", OwnerReferences: owner, Labels: map[string]string{"controller-revision-hash": "aaa"}}, Revision: 9},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "r10", OwnerReferences: owner, Labels: map[string]string{"controller-revision-hash": "bbb"}}, Revision: 10},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other", Labels: map[string]string{"controller-revision-hash": "ccc"}}, Revision: 11},
		},
		Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot1"}}}},
		Networks: []nadv1.NetworkAttachmentDefinition{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "vlan50", UID: "n1", Generation: 1, ResourceVersion: "10"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "unused", UID: "n2"}},
		},
		ConfigMaps: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "guard", ResourceVersion: "20"}}},
	}
}

func TestFingerprintOf(t *testing.T) {
	want := Fingerprint{
		DaemonSetUID: "ds1", DaemonSetGeneration: 3, RevisionHash: "bbb",
		Node: "node-a", NodeBootID: "boot1",
		DaemonPodUID: "p1", DaemonRestarts: 1, DaemonContainerID: "containerd://1",
		Networks: map[string]NetworkPrint{
			"downloads/vlan50": {UID: "n1", Generation: 1, ResourceVersion: "10"},
			"media/cam":        {Absent: true},
		},
		ConfigMaps: map[string]string{"guard": "20"},
	}
	got := FingerprintOf(configured())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again Fingerprint
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if d := got.Diff(again); len(d) != 0 {
		t.Errorf("written and read it differs: %v", d)
	}
}

func TestFingerprintDiff(t *testing.T) {
	base := FingerprintOf(configured())
	for name, row := range map[string]struct {
		change func(e *Evidence)
		want   []string
	}{
		"nothing":                     {func(*Evidence) {}, nil},
		"nothing is known any more":   {func(e *Evidence) { *e = Evidence{Canary: e.Canary, DaemonSet: e.DaemonSet} }, nil},
		"daemon restarted":            {func(e *Evidence) { e.Pods[2].Status.ContainerStatuses[1].RestartCount = 2 }, []string{"daemon pod restarted (restarts 1 -> 2)"}},
		"daemon's container replaced": {func(e *Evidence) { e.Pods[2].Status.ContainerStatuses[1].ContainerID = "containerd://2" }, []string{"daemon pod restarted (new container)"}},
		"daemon replaced":             {func(e *Evidence) { e.Pods[2].UID = "p9" }, []string{"daemon pod was replaced (UID p1 -> p9)"}},
		"daemon gone":                 {func(e *Evidence) { e.Pods = e.Pods[:1] }, []string{"daemon pod is gone"}},
		"node rebooted":               {func(e *Evidence) { e.Nodes[0].Status.NodeInfo.BootID = "boot2" }, []string{"node node-a was rebooted"}},
		"canary elsewhere":            {func(e *Evidence) { e.Pods[0].Spec.NodeName = "node-b" }, []string{"the canary is on another node (node-a -> node-b)"}},
		"DaemonSet changed":           {func(e *Evidence) { e.DaemonSets[0].Generation = 4 }, []string{"the DaemonSet changed (generation 3 -> 4)"}},
		"new revision":                {func(e *Evidence) { e.ControllerRevisions[0].Revision = 12 }, []string{"the DaemonSet has a new revision (bbb -> aaa)"}},
		"network changed":             {func(e *Evidence) { e.Networks[0].Generation, e.Networks[0].ResourceVersion = 2, "11" }, []string{"NetworkAttachmentDefinition downloads/vlan50 changed (generation 1 -> 2)"}},
		"a label of the network":      {func(e *Evidence) { e.Networks[0].ResourceVersion = "11" }, nil},
		"network without generation":  {func(e *Evidence) { e.Networks[0].Generation, e.Networks[0].ResourceVersion = 0, "11" }, []string{"NetworkAttachmentDefinition downloads/vlan50 changed (resourceVersion 10 -> 11)"}},
		"network made anew":           {func(e *Evidence) { e.Networks[0].UID = "n9" }, []string{"NetworkAttachmentDefinition downloads/vlan50 was deleted and created again"}},
		"network deleted":             {func(e *Evidence) { e.Networks = e.Networks[1:] }, []string{"NetworkAttachmentDefinition downloads/vlan50 was deleted"}},
		"the missing network created": {func(e *Evidence) { e.Networks[1].Namespace, e.Networks[1].Name = "media", "cam" }, []string{"NetworkAttachmentDefinition media/cam was created"}},
		"another device pool": {func(e *Evidence) {
			e.Networks[0].Annotations = map[string]string{"k8s.v1.cni.cncf.io/resourceName": "x/y"}
		}, []string{`NetworkAttachmentDefinition downloads/vlan50 asks for another device pool ("" -> "x/y")`}},
		"guard script changed":          {func(e *Evidence) { e.ConfigMaps[0].ResourceVersion = "21" }, []string{"ConfigMap guard changed (resourceVersion 20 -> 21)"}},
		"guard script deleted":          {func(e *Evidence) { e.ConfigMaps = nil }, []string{"ConfigMap guard was deleted"}},
		"an unused network and sidecar": {func(e *Evidence) { e.Networks[1].UID = "n9"; e.Pods[2].Status.ContainerStatuses[0].RestartCount = 9 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := configured()
			row.change(&e)
			if diff := cmp.Diff(row.want, base.Diff(FingerprintOf(e))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A daemon Pod may have other containers before the one that runs Multus.
func TestDaemonStatus(t *testing.T) {
	status := func(name string) corev1.ContainerStatus { return corev1.ContainerStatus{Name: name} }
	for name, row := range map[string]struct {
		containers []corev1.Container
		statuses   []corev1.ContainerStatus
		want       string
	}{
		"one":                {[]corev1.Container{{Name: "daemon"}}, []corev1.ContainerStatus{status("daemon")}, "daemon"},
		"a proxy before it":  {[]corev1.Container{{Name: "proxy"}, {Name: "kube-multus"}}, []corev1.ContainerStatus{status("proxy"), status("kube-multus")}, "kube-multus"},
		"told by its image":  {[]corev1.Container{{Name: "proxy"}, {Name: "main", Image: "ghcr.io/x/multus-cni:v4"}}, []corev1.ContainerStatus{status("proxy"), status("main")}, "main"},
		"not reported":       {[]corev1.Container{{Name: "kube-multus"}}, nil, ""},
		"a Pod without spec": {nil, []corev1.ContainerStatus{status("x")}, "x"},
	} {
		got := DaemonStatus(&corev1.Pod{Spec: corev1.PodSpec{Containers: row.containers}, Status: corev1.PodStatus{ContainerStatuses: row.statuses}})
		if got == nil && row.want != "" || got != nil && got.Name != row.want {
			t.Errorf("%s: got %+v, want %q", name, got, row.want)
		}
	}
}
