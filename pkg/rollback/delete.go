package rollback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// mark notes on the objects of the plan that they go, before the first of them
// does: a run that is killed takes away what would have led the next one there.
func (r *Rollback) mark(ctx context.Context) (string, error) {
	// The nodes have taken their time.
	if err := r.stillHolds(ctx); err != nil {
		return "", err
	}
	count := 0
	for _, step := range r.result.Plan.Deletions() {
		object := *step.Object
		if !markable(object) {
			continue
		}
		mark := r.markOf(object)
		if noted := func(key, value string) bool { return object.Annotations[key] == value }; all(mark, noted) {
			continue
		}
		if err := r.markOne(ctx, object, mark); err != nil {
			return "", fmt.Errorf("noting on %s that it goes: %w", object, err)
		}
		count++
	}
	return fmt.Sprintf("%d %s marked", count, plural(count, "object", "objects")), nil
}

// markOf are the annotations that tell a later run why an object goes, and what
// the DaemonSet that goes before it said.
func (r *Rollback) markOf(object Object) map[string]string {
	if slices.ContainsFunc(slices.Concat(r.state.Networks, r.state.Guards), object.same) {
		return map[string]string{MarkAnnot: "canary " + r.state.Canary.String()}
	}
	mark := map[string]string{MarkAnnot: "daemonset " + r.state.DaemonSet.String()}
	if slices.ContainsFunc(r.state.Support, object.same) {
		for annotation, dir := range map[string]string{
			ConfDirAnnot: cmp.Or(r.ConfDir, r.state.ConfDir), BinDirAnnot: cmp.Or(r.BinDir, r.state.BinDir),
		} {
			if PlainDir(dir) {
				mark[annotation] = dir
			}
		}
		if r.state.DaemonSetObject != nil {
			mark[NodeImageAnnot] = r.state.Ground.Image
		}
	}
	return mark
}

// all reports whether something is true of each entry.
func all(entries map[string]string, is func(key, value string) bool) bool {
	for key, value := range entries {
		if !is(key, value) {
			return false
		}
	}
	return true
}

func (r *Rollback) markOne(ctx context.Context, object Object, mark map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "annotations": mark}})
	if err != nil {
		return err
	}
	err = r.retry(ctx, StepDelete, func() error {
		_, err := r.Clients.objects(object).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: canary.FieldManager})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// stayed is why a step was left out in the end.
type stayed struct{ why string }

func (s *stayed) Error() string { return "it stays: " + s.why }

// othersLast looks once more for networks of others, right before their
// definition would take them along: by now those of the plan are gone.
func (r *Rollback) othersLast(ctx context.Context) error {
	var left []string
	err := r.retry(ctx, StepDelete, func() error {
		c := &collector{Rollback: r}
		all, err := c.allNetworks(ctx)
		left = nil
		for i := range all {
			left = append(left, found(kindNamed(networkKind), &all[i]).String())
		}
		return err
	})
	if err == nil && len(left) > 0 {
		return &stayed{why: "its deletion would delete " + join(left)}
	}
	return err
}

// deleteStep deletes exactly the object of the plan and waits until it is gone.
func (r *Rollback) deleteStep(ctx context.Context, object Object) (string, error) {
	for {
		live, err := r.Clients.objects(object).Get(ctx, object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "it is gone", nil
		case err != nil && cluster.Answered(err):
			return "", fmt.Errorf("reading %s: %w", object, err)
		case err == nil && live.GetUID() != object.UID:
			return "", anew(object, live.GetUID())
		case err == nil:
			if err = r.save(live, object); err != nil {
				return "", fmt.Errorf("saving %s on this machine before it is deleted: %w", object, err)
			}
			if live.GetDeletionTimestamp() != nil {
				return r.waitGone(ctx, object)
			}
			if object.Name == networkCRD {
				if err := r.othersLast(ctx); err != nil {
					return "", err
				}
			}
			if err = r.deleteOnce(ctx, object, live, false); err == nil {
				return r.waitGone(ctx, object)
			}
			if cluster.Answered(err) && !passing(err) {
				return "", fmt.Errorf("deleting %s: %w", object, err)
			}
		}
		r.waitf(StepDelete, "deleting %s: %v", object, err)
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return "", err
		}
	}
}

// anew is a failure: somebody brings back what goes.
func anew(object Object, uid types.UID) error {
	return failf("find out who creates it, then run the same command again",
		"another %s (UID %s) was created meanwhile: it is left alone", object, uid)
}

// passing are refusals that the next look answers.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err)
}

// deleteOnce asks for the graceful deletion of one UID, where it is known as it is
// now. A workload goes after its Pods, so that it stays in sight until they are
// gone.
func (r *Rollback) deleteOnce(ctx context.Context, object Object, live *unstructured.Unstructured, dryRun bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(object.UID)}}
	if live != nil {
		options.Preconditions.ResourceVersion = new(live.GetResourceVersion())
		// A Pod that asks for no grace would go from the API at once, as by force.
		if grace, ok, _ := unstructured.NestedInt64(live.Object, "spec", "terminationGracePeriodSeconds"); ok && grace == 0 && object.Kind.Name == "Pod" {
			options.GracePeriodSeconds = new(int64(1))
		}
	}
	if object.Kind.Workload {
		options.PropagationPolicy = ptr.To(metav1.DeletePropagationForeground)
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Clients.objects(object).Delete(ctx, object.Name, options)
}

// waitGone waits until the UID is gone, and says what holds it.
func (r *Rollback) waitGone(ctx context.Context, object Object) (string, error) {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	ring := newBell()
	mirror := cluster.Follow[unstructured.Unstructured](watching, &wg, r.Clients.objects(object),
		metav1.ListOptions{FieldSelector: "metadata.name=" + object.Name}, ring.ring)
	for {
		now := mirror.One()
		switch {
		case mirror.Synced() && now == nil:
			return "deleted, and gone", nil
		case mirror.Synced() && now.GetUID() != object.UID:
			return "", anew(object, now.GetUID())
		case now != nil:
			r.waitf(StepDelete, "waiting for %s to be gone: %s", object, r.heldBy(ctx, object, now))
		case mirror.Err() != nil:
			r.waitf(StepDelete, "waiting for %s to be gone: %v", object, mirror.Err())
		}
		if err := ring.wait(ctx, heldLook); err != nil {
			return "", err
		}
	}
}

// heldLook is how often it is looked again at what holds an object.
const heldLook = 2 * time.Second

// heldBy says what keeps an object that is being deleted.
func (r *Rollback) heldBy(ctx context.Context, object Object, now *unstructured.Unstructured) string {
	held := slices.DeleteFunc(slices.Clone(now.GetFinalizers()), func(name string) bool { return name == metav1.FinalizerDeleteDependents })
	if len(held) > 0 {
		return fmt.Sprintf("it is held by finalizer %s; its controller must let it go", strings.Join(held, ", "))
	}
	if object.Kind.Workload {
		if pods := r.podsOf(ctx, now); len(pods) > 0 {
			return "its Pods are going: " + join(pods)
		}
	}
	if node, ok, _ := unstructured.NestedString(now.Object, "spec", "nodeName"); ok && object.Kind.Name == "Pod" {
		return "the kubelet of node " + node + " is stopping it"
	}
	return "the server has not removed it yet"
}

// podsOf names the Pods that a controller still has, with what holds them.
func (r *Rollback) podsOf(ctx context.Context, owner *unstructured.Unstructured) []string {
	list, err := r.Clients.Core.Pods(owner.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.IsControlledBy(pod, owner) {
			names = append(names, podHeld(pod))
		}
	}
	return names
}

func podHeld(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return fmt.Sprintf("%s (finalizer %s)", pod.Name, strings.Join(pod.Finalizers, ", "))
	}
	return fmt.Sprintf("%s on node %s", pod.Name, pod.Spec.NodeName)
}
