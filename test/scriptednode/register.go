package scriptednode

import (
	"context"
	"encoding/hex"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// register makes the node known with its address and the port of its kubelet.
func (n *Node) register(ctx context.Context, port int32) error {
	object := n.site.nodeObject(n.site.Node)
	err := persist(ctx, func(ctx context.Context) error {
		_, err := n.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return n.updateNode(ctx, func(status *corev1.NodeStatus) {
		*status = nodeStatus(n.site.Node, port)
	})
}

func (n *Node) updateNode(ctx context.Context, change func(*corev1.NodeStatus)) error {
	return persist(ctx, func(ctx context.Context) error {
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.site.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&node.Status)
		_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

func nodeStatus(name string, port int32) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{readyCondition(true)},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostIP},
			{Type: corev1.NodeHostName, Address: name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "linux", Architecture: "amd64",
			BootID:         "7b1d6a0c-52f4-4d4c-9a53-" + hex.EncodeToString([]byte(name + "000000")[:6]),
			KubeletVersion: "v1.37.2", ContainerRuntimeVersion: "containerd://2.1.4-k3s1",
		},
	}
}

// readyCondition is what kubelet says of itself, or what the node lifecycle
// controller says of a kubelet that went silent.
func readyCondition(ready bool) corev1.NodeCondition {
	now := metav1.NewTime(time.Now())
	c := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if !ready {
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
	}
	return c
}

// SetReady stops the kubelet (false) or starts it again. While it is stopped
// no Pod of the node gets on, none is taken down, and the node lifecycle
// controller, which this package plays too, says that they are not ready. The
// Multus daemon goes on, as containers do without their kubelet.
func (n *Node) SetReady(ctx context.Context, ready bool) error {
	if !ready {
		n.alive.shut()
	}
	err := n.updateNode(ctx, func(status *corev1.NodeStatus) {
		status.Conditions = []corev1.NodeCondition{readyCondition(ready)}
	})
	if err != nil {
		return err
	}
	for _, w := range n.running() {
		if err := n.markReady(ctx, w, ready); err != nil {
			return err
		}
	}
	if ready {
		n.alive.open()
	}
	return nil
}

// markReady tells the Ready condition of a running Pod whose kubelet went
// silent, or came back.
func (n *Node) markReady(ctx context.Context, w *worker, ready bool) error {
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	if !ready {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "NodeNotReady", "Node is not ready"
	}
	return n.updatePod(ctx, w.id, func(pod *corev1.Pod) {
		if pod.Status.Phase == corev1.PodRunning {
			setCondition(&pod.Status, c, time.Now())
		}
	})
}

// running are the workers of Pods that were running when last seen.
func (n *Node) running() []*worker {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*worker
	for _, w := range n.workers {
		if w.pod.Load().Status.Phase == corev1.PodRunning {
			out = append(out, w)
		}
	}
	return out
}
