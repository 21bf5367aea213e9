package scriptednode

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// collectGarbage is the garbage collector's part after the DaemonSet is gone:
// its Pods go gracefully, its revisions at once.
func (n *Node) collectGarbage(ctx context.Context, ds *appsv1.DaemonSet) {
	n.spawn(ctx, "garbage collector", func(ctx context.Context) error {
		return persist(ctx, func(ctx context.Context) error {
			_, err := n.deleteOwned(ctx, ds)
			return err
		})
	})
}

// finishForeground is the same for a DaemonSet that is deleted in the
// foreground: it goes after its Pods.
func (n *Node) finishForeground(ctx context.Context, ds *appsv1.DaemonSet) error {
	if !slices.Contains(ds.Finalizers, metav1.FinalizerDeleteDependents) {
		return nil
	}
	left, err := n.deleteOwned(ctx, ds)
	if err != nil || left > 0 {
		return err
	}
	ds.Finalizers = slices.DeleteFunc(ds.Finalizers, func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	_, err = n.client.AppsV1().DaemonSets(ds.Namespace).Update(ctx, ds, metav1.UpdateOptions{})
	return err
}

// deleteOwned deletes what the DaemonSet owns and tells how many of its Pods
// are still there.
func (n *Node) deleteOwned(ctx context.Context, ds *appsv1.DaemonSet) (left int, err error) {
	pods, err := n.daemonPods(ctx, ds)
	if err != nil {
		return 0, err
	}
	for _, pod := range pods {
		if err := n.deletePod(ctx, pod); err != nil {
			return 0, err
		}
	}
	revisions := n.client.AppsV1().ControllerRevisions(ds.Namespace)
	options := metav1.ListOptions{LabelSelector: labels.FormatLabels(ds.Spec.Selector.MatchLabels)}
	return len(pods), revisions.DeleteCollection(ctx, metav1.DeleteOptions{}, options)
}
