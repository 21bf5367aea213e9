package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

const (
	// writeTimeout bounds one write. Writes are not cut short by Ctrl-C: whether
	// they happened must be known.
	writeTimeout = 15 * time.Second
	// retryPause is how long after a lost write it is tried again.
	retryPause = 200 * time.Millisecond
	// goneTimeout bounds the wait for our own Pods to be gone.
	goneTimeout = 30 * time.Second
)

// bell wakes a wait loop at each change of what it watches.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// wait returns at the next change, after d at the latest.
func (b bell) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// scene is one Pod of ours as it is watched.
type scene struct {
	pod    *corev1.Pod
	events []*corev1.Event
	since  time.Duration
}

// withPod creates a Pod, watches it until judge says that enough was seen, and
// deletes it whatever happens.
func (r *Rollback) withPod(ctx context.Context, pod *corev1.Pod, step canary.Step, judge func(scene) (done bool, waitingFor string)) (last *corev1.Pod, err error) {
	created, err := r.createPod(ctx, pod)
	if err != nil {
		return nil, err
	}
	defer func() {
		if gone := r.deletePod(ctx, created); gone != nil {
			err = errors.Join(err, gone)
		}
	}()
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	ring := newBell()
	pods := cluster.Follow[corev1.Pod](watching, &wg, r.Clients.Core.Pods(pod.Namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name}, ring.ring)
	events := cluster.Follow[corev1.Event](watching, &wg, r.Clients.Core.Events(pod.Namespace), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(created.UID)}, ring.ring)
	start := r.Now()
	for {
		now := pods.One()
		switch {
		case now == nil && pods.Synced():
			return nil, fmt.Errorf("the Pod %s/%s was deleted by somebody else", pod.Namespace, pod.Name)
		case now != nil && now.UID != created.UID:
			return nil, fmt.Errorf("the Pod %s/%s was replaced by somebody else", pod.Namespace, pod.Name)
		case now != nil:
			last = now
			done, waiting := judge(scene{pod: now, events: eventsOf(events.Items(), created.UID), since: r.Now().Sub(start)})
			if done {
				return last, nil
			}
			if waiting != "" {
				r.waitf(step, "%s", waiting)
			}
		case pods.Err() != nil:
			r.waitf(step, "waiting for the API server: %v", pods.Err())
		}
		if err := ring.wait(ctx, time.Second); err != nil {
			return last, err
		}
	}
}

// eventsOf filters by UID once more: a server may ignore the selector.
func eventsOf(events []*corev1.Event, uid types.UID) []*corev1.Event {
	return slices.DeleteFunc(events, func(e *corev1.Event) bool { return e.InvolvedObject.UID != uid })
}

// createPod creates a Pod whose name is of our own choice: where the answer is
// lost it is looked for under that name.
func (r *Rollback) createPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, MarkAnnot, r.podMark())
	if r.looksOnly {
		pod.Labels[PodLabel] = StatusRole
	}
	pods := r.Clients.Core.Pods(pod.Namespace)
	for tried := false; ; tried = true {
		if ctx.Err() != nil && !tried {
			return nil, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			// The Pod may be there though nobody said so.
			return nil, errors.Join(context.Cause(ctx), r.deleteUnanswered(ctx, pod))
		}
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		created, err := pods.Create(write, pod, metav1.CreateOptions{FieldManager: canary.FieldManager})
		cancel()
		if apierrors.IsAlreadyExists(err) {
			created, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		}
		if err == nil {
			return created, nil
		}
		if cluster.Answered(err) && !apierrors.IsTooManyRequests(err) {
			return nil, err
		}
		r.waitf(StepNode, "waiting for the API server: %v", err)
		_ = cluster.Pause(ctx, retryPause) // the loop sees its end
	}
}

// lateCreate is how long after a create that was not answered the Pod may still
// turn up.
const lateCreate = 5 * time.Second

// deleteUnanswered deletes a Pod that may not be there yet.
func (r *Rollback) deleteUnanswered(ctx context.Context, pod *corev1.Pod) error {
	until := r.Now().Add(lateCreate)
	for {
		if err := r.deletePod(ctx, pod); err != nil {
			return err
		}
		if !r.Now().Before(until) {
			return nil
		}
		_ = cluster.Pause(context.WithoutCancel(ctx), time.Second)
	}
}

// deletePod deletes a Pod of ours and waits until it is gone, also after Ctrl-C.
func (r *Rollback) deletePod(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneTimeout)
	defer cancel()
	pods := r.Clients.Core.Pods(pod.Namespace)
	options := metav1.DeleteOptions{}
	if pod.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: new(pod.UID)}
	}
	var err error
	for {
		err = pods.Delete(ctx, pod.Name, options)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		if apierrors.IsForbidden(err) || cluster.Pause(ctx, retryPause) != nil {
			break
		}
	}
	if err == nil {
		return fmt.Errorf("the Pod %s/%s is being deleted, and node %s does not say that it has ended: look at the node; it ends the Pod once it answers",
			pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
	ends := ""
	if deadline := pod.Spec.ActiveDeadlineSeconds; deadline != nil {
		ends = fmt.Sprintf("; the node ends it by itself after %s", time.Duration(*deadline)*time.Second)
	}
	return fmt.Errorf("the Pod %s/%s could not be deleted (%w)%s: delete it with kubectl", pod.Namespace, pod.Name, err, ends)
}

// sweep deletes what a killed run has left. Under the lock no living run for
// this canary has Pods; those of another one, and of a status that looks right
// now, are let be until they have outlived their own deadline.
func (r *Rollback) sweep(ctx context.Context) error {
	pods, err := r.ownPods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		mine := pods[i].Annotations[MarkAnnot] == r.podMark() && pods[i].Labels[PodLabel] != StatusRole
		if !mine && !r.outlived(&pods[i]) {
			continue
		}
		r.notef(StepCheck, "deleting the Pod %s/%s that an earlier run has left", pods[i].Namespace, pods[i].Name)
		if pods[i].Namespace != r.state.Ground.Namespace {
			r.drop(ctx, &pods[i])
			continue
		}
		if err := r.deletePod(ctx, &pods[i]); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a Pod that this run does without: whoever may make Pods somewhere may
// make one that looks like ours, and hold it.
func (r *Rollback) drop(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.Clients.Core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.UID)}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		r.notef(StepCheck, "the Pod %s/%s could not be deleted: %v", pod.Namespace, pod.Name, err)
	}
}

func (r *Rollback) ownPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := r.Clients.Core.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: PodLabel + "," + managedBy})
	if err != nil {
		return nil, fmt.Errorf("looking for Pods of an earlier run: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, podPrefix) }), nil
}

// outlived reports whether a Pod is older than it may get.
func (r *Rollback) outlived(pod *corev1.Pod) bool {
	deadline := time.Duration(ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0)) * time.Second
	return r.Now().After(pod.CreationTimestamp.Add(deadline + time.Minute))
}

// podMark tells whose rollback a Pod of ours belongs to.
func (r *Rollback) podMark() string { return "canary " + r.Canary.String() }

// fresh is an id that no earlier Pod or report has.
func fresh() string { return string(uuid.NewUUID())[:8] }
