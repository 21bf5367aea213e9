package scriptednode

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryPause is between two tries while the API server is away.
const retryPause = 100 * time.Millisecond

// persist repeats a call that is safe to repeat until it succeeds or fails for
// a reason that time does not change. An API server that restarts is waited
// for, and a conflict is read anew by the call itself.
func persist(ctx context.Context, call func(context.Context) error) error {
	for {
		err := call(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsConflict(err):
			continue
		case !passing(err):
			return err
		}
		if err := sleep(ctx, retryPause); err != nil {
			return err
		}
	}
}

// passing tells an API server that is away or starting from a refusal. While
// custom resources are not served yet, their paths answer 404 without a name.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// missing tells that the object is not there, as the API server says it.
func missing(err error) bool { return apierrors.IsNotFound(err) && !passing(err) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// updatePod changes the status of one UID. A Pod that is gone or recreated is
// left alone.
func (n *Node) updatePod(ctx context.Context, id podID, change func(*corev1.Pod)) error {
	pods := n.client.CoreV1().Pods(id.Namespace)
	err := persist(ctx, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil || pod.UID != id.uid {
			return err
		}
		change(pod)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
	if missing(err) {
		return nil
	}
	return err
}

// removePod ends a graceful deletion the way kubelet does: grace period 0, for
// this UID only.
func (n *Node) removePod(ctx context.Context, id podID) error {
	err := persist(ctx, func(ctx context.Context) error {
		err := n.client.CoreV1().Pods(id.Namespace).Delete(ctx, id.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)),
			Preconditions:      metav1.NewUIDPreconditions(string(id.uid)),
		})
		if apierrors.IsConflict(err) {
			return nil // another Pod has taken the name: this one is gone
		}
		return err
	})
	if missing(err) {
		return nil
	}
	return err
}
