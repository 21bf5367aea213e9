package scriptednode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// newRecorder is the recorder that kubelet and Multus use: with it come
// counting, "(combined from similar events)" and the spam filter, as on a real
// node. It ends with ctx.
func newRecorder(ctx context.Context, client kubernetes.Interface, source corev1.EventSource) record.EventRecorder {
	// The pause applies after a failed write: an API server that restarts
	// should not silence the node for the usual ten seconds.
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithSleepDuration(time.Second))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, source)
}

// schedulerEvent writes an event the way the scheduler does: by
// events.k8s.io/v1, with an event time and nothing of the old fields.
func (n *Node) schedulerEvent(ctx context.Context, pod *corev1.Pod, kind, reason, action, note string) error {
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s.%x", pod.Name, now.UnixNano()),
			Namespace: pod.Namespace,
		},
		EventTime:           now,
		ReportingController: "default-scheduler",
		ReportingInstance:   "default-scheduler-" + n.site.Node,
		Reason:              reason,
		Action:              action,
		Regarding:           reference(pod, ""),
		Note:                note,
		Type:                kind,
	}
	return persist(ctx, func(ctx context.Context) error {
		_, err := n.client.EventsV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // an earlier try whose answer was lost
		}
		return err
	})
}

// reference names a Pod, or with a field path one of its containers, as the
// involved object of an event.
func reference(pod *corev1.Pod, fieldPath string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: fieldPath,
	}
}

// containerPath is kubelet's field path of a container.
func containerPath(pod *corev1.Pod, name string) string {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == name {
			return fmt.Sprintf("spec.initContainers{%s}", name)
		}
	}
	return fmt.Sprintf("spec.containers{%s}", name)
}
