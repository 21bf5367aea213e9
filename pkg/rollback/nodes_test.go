package rollback

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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
