package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unreadable reports whether an object cannot be had for a lasting reason: it
// is not there, its kind is not, or it may not be read. Anything else is
// trouble of the moment.
func Unreadable(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// EachPodMeta visits the metadata of all Pods of the cluster, a page at a time.
func (c *Clients) EachPodMeta(ctx context.Context, page int64, visit func(*metav1.PartialObjectMetadata) error) error {
	return c.EachPodMetaIn(ctx, metav1.NamespaceAll, page, visit)
}

// EachPodMetaIn is EachPodMeta for one namespace.
func (c *Clients) EachPodMetaIn(ctx context.Context, namespace string, page int64, visit func(*metav1.PartialObjectMetadata) error) error {
	pods := c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := pods.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := visit(&list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// Answered reports whether the server has decided, as against not being reached,
// in trouble, or too busy to say.
func Answered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// Pause waits, or ends with ctx and gives its cause.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
