package scriptednode

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// schedule binds a Pod that is not bound, unless its script or its node
// selector says that no node takes it.
func (n *Node) schedule(ctx context.Context, w *worker) error {
	pod := w.pod.Load()
	if pod.Spec.NodeName != "" {
		return nil
	}
	if err := n.pause(ctx, n.pace.Schedule); err != nil {
		return err
	}
	reason, refused := w.script.unbound()
	if !refused && !n.fits(pod) {
		reason.Message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. " +
			"preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
		refused = true
	}
	if refused {
		return n.refuse(ctx, w, reason.Message)
	}
	return n.bind(ctx, w)
}

func (n *Node) fits(pod *corev1.Pod) bool {
	return labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.site.nodeLabels(n.site.Node)))
}

func (n *Node) refuse(ctx context.Context, w *worker, message string) error {
	if err := n.schedulerEvent(ctx, w.pod.Load(), corev1.EventTypeWarning, "FailedScheduling", "Scheduling", message); err != nil {
		return err
	}
	return n.updatePod(ctx, w.id, func(pod *corev1.Pod) {
		setCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: message,
		}, time.Now())
	})
}

func (n *Node) bind(ctx context.Context, w *worker) error {
	binding := &corev1.Binding{
		// With the UID the binding fails if a namesake has taken the place.
		ObjectMeta: metav1.ObjectMeta{Name: w.id.Name, Namespace: w.id.Namespace, UID: w.id.uid},
		Target:     corev1.ObjectReference{Kind: "Node", Name: n.site.Node},
	}
	taken := false
	err := persist(ctx, func(ctx context.Context) error {
		err := n.client.CoreV1().Pods(w.id.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
		if taken = apierrors.IsConflict(err); taken {
			return nil // deleted, recreated or bound by somebody else: the watch will tell
		}
		return err
	})
	if taken || missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return n.schedulerEvent(ctx, w.pod.Load(), corev1.EventTypeNormal, "Scheduled", "Binding",
		"Successfully assigned "+w.id.String()+" to "+n.site.Node)
}
