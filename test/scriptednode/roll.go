package scriptednode

import (
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rollPlan is what one look at a DaemonSet leads to.
type rollPlan struct {
	create []string
	remove []*corev1.Pod
}

// planRoll follows the controller:
//   - a node that is wanted and has no Pod, not even one that is going, gets one;
//   - a Pod on a node that is not wanted goes;
//   - with RollingUpdate an old Pod goes if it is not available anyway, or if no
//     other node is without an available Pod.
func planRoll(ds *appsv1.DaemonSet, pods map[string]*corev1.Pod, wanted []string, hash string, now time.Time) rollPlan {
	var plan rollPlan
	unavailable := 0
	var candidates []*corev1.Pod
	for _, node := range wanted {
		pod := pods[node]
		switch {
		case pod == nil:
			plan.create = append(plan.create, node)
			unavailable++
		case pod.DeletionTimestamp != nil:
			unavailable++
		case current(pod, hash):
			if !available(ds, pod, now) {
				unavailable++
			}
		case ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		case !available(ds, pod, now):
			plan.remove = append(plan.remove, pod)
			unavailable++
		default:
			candidates = append(candidates, pod)
		}
	}
	plan.remove = append(plan.remove, candidates[:min(len(candidates), max(0, 1-unavailable))]...)
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		if pod := pods[node]; !slices.Contains(wanted, node) && pod.DeletionTimestamp == nil {
			plan.remove = append(plan.remove, pod)
		}
	}
	return plan
}

// setStatus is the status that the controller would report, and how long to
// wait for a Pod that is ready to become available.
func setStatus(ds *appsv1.DaemonSet, pods map[string]*corev1.Pod, wanted []string, hash string, now time.Time) (appsv1.DaemonSetStatus, time.Duration) {
	status := appsv1.DaemonSetStatus{
		ObservedGeneration:     ds.Generation,
		CollisionCount:         ds.Status.CollisionCount,
		Conditions:             ds.Status.Conditions,
		DesiredNumberScheduled: int32(len(wanted)),
	}
	for node, pod := range pods {
		if !slices.Contains(wanted, node) {
			status.NumberMisscheduled++
			continue
		}
		status.CurrentNumberScheduled++
		if ready(pod) != nil {
			status.NumberReady++
		}
		if available(ds, pod, now) {
			status.NumberAvailable++
		}
		if current(pod, hash) {
			status.UpdatedNumberScheduled++
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	if status.NumberReady != status.NumberAvailable {
		return status, time.Duration(ds.Spec.MinReadySeconds) * time.Second
	}
	return status, 0
}

func current(pod *corev1.Pod, hash string) bool {
	return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash
}

// ready gives the Pod's Ready condition if it is true.
func ready(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// available is Ready for at least minReadySeconds.
func available(ds *appsv1.DaemonSet, pod *corev1.Pod, now time.Time) bool {
	c := ready(pod)
	return c != nil && !now.Before(c.LastTransitionTime.Add(time.Duration(ds.Spec.MinReadySeconds)*time.Second))
}

// daemonPod is a Pod from the template: meant for one node by its affinity, as
// the controller leaves the binding to the scheduler.
func daemonPod(ds *appsv1.DaemonSet, node, hash string) *corev1.Pod {
	template := ds.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: ds.Name + "-", Namespace: ds.Namespace,
			Labels: withHash(template.Labels, hash), Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{ownerOf(ds)},
		},
		Spec: template.Spec,
	}
	pod.Labels["pod-template-generation"] = strconv.FormatInt(ds.Generation, 10)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	return pod
}
