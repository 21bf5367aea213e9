package rollout

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// noon is the time of every judgement.
var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// healthy is a DaemonSet rolled out on node-a and node-b, seen from a canary on
// node-a. A row changes one thing of it.
func healthy() Observation {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-multus-ds", UID: "ds", Generation: 3},
		Spec: appsv1.DaemonSetSpec{
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
		},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 3, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2,
			UpdatedNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2,
		},
	}
	return Observation{
		DaemonSet: ds,
		Revisions: []*appsv1.ControllerRevision{revision(ds, "rev3", 3), revision(ds, "rev2", 2)},
		Pods:      []*corev1.Pod{daemon(ds, "multus-b", "node-b"), daemon(ds, "multus-a", "node-a")},
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-a"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		NodeName: "node-a",
	}
}

func owned(ds *appsv1.DaemonSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
}

func revision(ds *appsv1.DaemonSet, hash string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: ds.Name + "-" + hash, OwnerReferences: owned(ds),
			Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash},
		},
		Revision: number,
	}
}

// daemon is a daemon Pod of the newest revision that runs since a minute.
func daemon(ds *appsv1.DaemonSet, name, node string) *corev1.Pod {
	start := metav1.NewTime(noon.Add(-time.Minute))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: name, UID: types.UID(name), OwnerReferences: owned(ds),
			Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "rev3"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-multus"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start}},
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name: "install-multus", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}},
			}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "kube-multus", Ready: true, ContainerID: "containerd://" + name,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
			}},
		},
	}
}

// onA changes the daemon Pod of the canary's node.
func onA(change func(*corev1.Pod)) func(*Observation) {
	return func(o *Observation) { change(o.Pods[1]) }
}

func onDaemonSet(change func(*appsv1.DaemonSet)) func(*Observation) {
	return func(o *Observation) { change(o.DaemonSet) }
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

// waits puts the daemon's container into a waiting state after restarts.
func waits(reason, message string, restarts int32, last *corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		unready(pod)
		pod.Status.ContainerStatuses[0] = waiting("kube-multus", reason, message, restarts, last)
	}
}

func waiting(name, reason, message string, restarts int32, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, RestartCount: restarts,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: last},
	}
}
