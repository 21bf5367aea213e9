package scriptednode

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// restartedAt is the template annotation of kubectl rollout restart.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// RestartDaemonSet does what kubectl rollout restart does. The new daemon
// behaves as d says.
func (n *Node) RestartDaemonSet(ctx context.Context, d Daemon) error {
	n.SetDaemon(d)
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, time.Now().Format(time.RFC3339Nano))
	name := n.site.DaemonSet
	_, err := n.client.AppsV1().DaemonSets(name.Namespace).Patch(ctx, name.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("restarting the DaemonSet %s: %w", name, err)
	}
	return nil
}

// wake makes the controller look again.
func (n *Node) wake() {
	select {
	case n.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// controlDaemonSet is the DaemonSet controller, for the site's DaemonSet alone.
func (n *Node) controlDaemonSet(ctx context.Context) error {
	for {
		select {
		case <-n.kick:
		case <-ctx.Done():
			return nil
		}
		if err := sleep(ctx, n.pace.Controller); err != nil {
			return nil
		}
		again, err := n.syncDaemonSet(ctx)
		switch {
		case err != nil && (passing(err) || apierrors.IsConflict(err)):
			time.AfterFunc(retryPause, n.wake)
		case err != nil:
			n.note(ctx, "DaemonSet controller", err)
		case again > 0:
			time.AfterFunc(again, n.wake)
		}
	}
}

// syncDaemonSet is one look at the DaemonSet: history, then Pods, then status,
// in the controller's order. It reads the API and no cache, so that it never
// acts on what it has changed itself.
func (n *Node) syncDaemonSet(ctx context.Context) (again time.Duration, err error) {
	sets := n.client.AppsV1().DaemonSets(n.site.DaemonSet.Namespace)
	ds, err := sets.Get(ctx, n.site.DaemonSet.Name, metav1.GetOptions{})
	switch {
	case missing(err):
		return 0, nil
	case err != nil:
		return 0, err
	case ds.DeletionTimestamp != nil:
		return 0, n.finishForeground(ctx, ds)
	}
	hash, err := ensureRevision(ctx, n.client, ds)
	if err != nil {
		return 0, err
	}
	pods, err := n.daemonPods(ctx, ds)
	if err != nil {
		return 0, err
	}
	if err := n.managePods(ctx, ds, pods, hash); err != nil {
		return 0, err
	}
	if pods, err = n.daemonPods(ctx, ds); err != nil {
		return 0, err
	}
	status, wait := setStatus(ds, pods, n.site.wanted(ds), hash, time.Now())
	if apiequality.Semantic.DeepEqual(status, ds.Status) {
		return wait, nil
	}
	ds.Status = status
	_, err = sets.UpdateStatus(ctx, ds, metav1.UpdateOptions{})
	return wait, err
}

// daemonPods are the DaemonSet's Pods, by the name of their node.
func (n *Node) daemonPods(ctx context.Context, ds *appsv1.DaemonSet) (map[string]*corev1.Pod, error) {
	list, err := n.client.CoreV1().Pods(ds.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(ds.Spec.Selector.MatchLabels)})
	if err != nil {
		return nil, err
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.IsControlledBy(pod, ds) {
			out[daemonTarget(pod)] = pod
		}
	}
	return out, nil
}

// daemonTarget is the node that a daemon Pod runs on or is meant for.
func daemonTarget(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for _, term := range required.NodeSelectorTerms {
				for _, field := range term.MatchFields {
					return field.Values[0]
				}
			}
		}
	}
	return ""
}

// wanted are the nodes of the site that the DaemonSet selects.
func (s Site) wanted(ds *appsv1.DaemonSet) []string {
	selector := labels.SelectorFromSet(ds.Spec.Template.Spec.NodeSelector)
	var out []string
	for _, name := range s.nodes() {
		if selector.Matches(labels.Set(s.nodeLabels(name))) {
			out = append(out, name)
		}
	}
	return out
}

// managePods makes missing Pods, deletes those that no node wants, and with
// RollingUpdate replaces old ones as far as maxUnavailable (1) allows.
func (n *Node) managePods(ctx context.Context, ds *appsv1.DaemonSet, pods map[string]*corev1.Pod, hash string) error {
	plan := planRoll(ds, pods, n.site.wanted(ds), hash, time.Now())
	for _, pod := range plan.remove {
		if err := n.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	for _, node := range plan.create {
		if _, err := n.client.CoreV1().Pods(ds.Namespace).Create(ctx, daemonPod(ds, node, hash), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// deletePod deletes a daemon Pod gracefully, unless it is going already.
func (n *Node) deletePod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if missing(err) {
		return nil
	}
	return err
}
