package canary

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

const (
	writeTimeout = 15 * time.Second
	// retryPause is how long after a refused or lost write it is tried again.
	retryPause = 200 * time.Millisecond
)

// remove deletes the old canary and waits until its UID is gone from the API.
// It never forces: while kubelet holds the Pod, the address is held too.
func (r *Retest) remove(ctx context.Context) error {
	if err := r.canaryKnown(ctx); err != nil {
		return err
	}
	old := r.live.canary.One()
	if old == nil {
		if err := r.notForced(""); err != nil {
			return err
		}
		return r.save()
	}
	r.earlier = append(r.earlier, old.UID)
	if err := r.secure(ctx, old); err != nil {
		return err
	}
	r.followEvents(old.UID)
	if err := r.delete(ctx, old); err != nil {
		return err
	}
	if err := r.waitGone(ctx, old.UID); err != nil {
		return err
	}
	r.attempt.Gone = r.now()
	r.leave("Pod %s was deleted and is not created again; its manifest is saved in %s: run the same command again to go on", r.Canary, r.saved)
	r.notef(StepDelete, "Pod %s (UID %s) is gone", r.Canary, old.UID)
	return nil
}

// secure makes sure that what is deleted now can be created again as it is now:
// the live Pod may have been edited since it was proven and saved.
func (r *Retest) secure(ctx context.Context, old *corev1.Pod) error {
	if err := r.proveAgain(ctx, old); err != nil {
		return err
	}
	return r.save()
}

// proveAgain lets the server try the manifest once more where it has changed.
func (r *Retest) proveAgain(ctx context.Context, old *corev1.Pod) error {
	proven := r.manifest
	if err := r.chooseManifest(old); err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(proven, r.manifest) {
		return nil
	}
	return r.admissionGuard(ctx)
}

// canaryKnown waits for the first answer about the canary's Pod.
func (r *Retest) canaryKnown(ctx context.Context) error {
	for !r.live.canary.Synced() {
		if err := r.live.next(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// save keeps the manifest on this machine, before anything is deleted.
func (r *Retest) save() error {
	path, err := r.Store.SaveManifest(r.manifest)
	if err != nil {
		return fmt.Errorf("saving the manifest of Pod %s before deleting it: %w", r.Canary, err)
	}
	r.saved = path
	return nil
}

// delete asks for the graceful deletion of exactly this UID. The resourceVersion
// is part of the condition, so that nothing is deleted that was not looked at;
// a Pod that only moved on in the meantime is looked at again.
func (r *Retest) delete(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	for pod.DeletionTimestamp == nil {
		if err := r.ours(ctx); err != nil {
			return err
		}
		r.leave("Pod %s (UID %s) may be deleted and is not created again; its manifest is saved in %s: run the same command again to go on", r.Canary, uid, r.saved)
		err := r.deleteOnce(ctx, pod, false)
		if err == nil {
			r.attempt.Deleted = r.now()
			r.notef(StepDelete, "deleting Pod %s (UID %s); manifest saved in %s", r.Canary, uid, r.saved)
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if cluster.Answered(err) && !apierrors.IsConflict(err) {
			r.leave("nothing was changed")
			return fmt.Errorf("deleting Pod %s: %w", r.Canary, err)
		}
		if pod, err = r.stillThere(ctx, uid); pod == nil {
			return err
		}
		if err := r.secure(ctx, pod); err != nil {
			return err
		}
	}
	r.notef(StepDelete, "Pod %s (UID %s) is terminating already; manifest saved in %s", r.Canary, uid, r.saved)
	return nil
}

// stillThere gives the Pod's newest version while it is the same Pod, nil where it
// is gone, and a refusal where another has its name.
func (r *Retest) stillThere(ctx context.Context, uid types.UID) (*corev1.Pod, error) {
	for {
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return nil, err
		}
		pod, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil && cluster.Answered(err):
			return nil, fmt.Errorf("reading Pod %s again: %w", r.Canary, err)
		case err != nil:
			r.waitf(StepDelete, "waiting for the API server: %v", err)
			continue
		case pod.UID != uid:
			return nil, r.namesake(pod)
		}
		return pod, nil
	}
}

func (r *Retest) deleteOnce(ctx context.Context, pod *corev1.Pod, dryRun bool) error {
	ctx, cancel := uncut(ctx)
	defer cancel()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: new(pod.UID), ResourceVersion: new(pod.ResourceVersion),
	}}
	// A Pod that asks for no grace would go from the API at once, as by force.
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil && *grace == 0 {
		options.GracePeriodSeconds = new(int64(1))
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return r.Clients.Core.Pods(pod.Namespace).Delete(ctx, pod.Name, options)
}

// waitGone waits until the UID is gone, and says what holds it.
func (r *Retest) waitGone(ctx context.Context, uid types.UID) error {
	for {
		pod := r.live.canary.One()
		switch {
		case pod == nil:
			return r.notForced(uid)
		case pod.UID != uid:
			return r.namesake(pod)
		}
		r.lastFrom(r.collect(ctx, uid))
		if pod.DeletionTimestamp != nil {
			r.leave("Pod %s (UID %s) is terminating and is not created again; its manifest is saved in %s: run the same command again to go on", r.Canary, uid, r.saved)
			r.waitf(StepDelete, "waiting for Pod %s to be gone: %s", r.Canary, heldBy(pod, r.followEvents(uid).Items()))
		}
		if err := r.live.next(ctx, 0); err != nil {
			return err
		}
	}
}

// notForced refuses where the old canary went from the API before its kubelet had
// ended it: a deletion by force leaves its sandbox on the node, with the address.
// A kubelet reports the end of every container, and of the sandbox, before it lets
// a Pod go. uid is that of the Pod, any where it is empty.
func (r *Retest) notForced(uid types.UID) error {
	last := r.live.canary.Deleted()
	if last == nil || uid != "" && last.UID != uid {
		return nil
	}
	if stood := standing(last); stood != "" {
		return refusef("Pod %s (UID %s) went from the API while its %s on node %s: somebody deleted it by force, and its address may still be held there; see that it is gone on the node (crictl pods --name %s), then run this again (%s)",
			r.Canary, last.UID, stood, orNone(last.Spec.NodeName), r.Canary.Name, r.state)
	}
	return nil
}

// standing says what of a Pod its kubelet has not reported to have ended; empty
// where nothing. Of the sandbox kubelets tell since Kubernetes 1.29.
func standing(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.State.Running != nil {
			return "container " + status.Name + " was running"
		}
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	sandbox := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
	if sandbox && !ended {
		return "sandbox was standing"
	}
	return ""
}

// lastFrom keeps the judgement of a terminating canary as the last known state.
func (r *Retest) lastFrom(e evidence.Evidence) { r.last = verdict.Decide(e, r.clusterNow()) }

// heldBy says what keeps a terminating Pod.
func heldBy(pod *corev1.Pod, events []*corev1.Event) string {
	if len(pod.Finalizers) > 0 {
		return "held by finalizer " + strings.Join(pod.Finalizers, ", ")
	}
	var failed *corev1.Event
	for _, event := range events {
		if event.Reason == "FailedKillPod" && (failed == nil || evidence.EventTime(event).After(evidence.EventTime(failed))) {
			failed = event
		}
	}
	if failed != nil {
		return "the kubelet cannot tear it down: " + failed.Message
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		return fmt.Sprintf("the kubelet of node %s is stopping it (grace period %d s)", orNone(pod.Spec.NodeName), *grace)
	}
	return "the kubelet of node " + orNone(pod.Spec.NodeName) + " is stopping it"
}

// create makes the new canary and pins its UID from the server's answer.
func (r *Retest) create(ctx context.Context) error {
	pod := r.manifest.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AttemptAnnot, r.attempt.ID)
	left := r.state
	for {
		if err := r.ours(ctx); err != nil {
			return err
		}
		r.live.config = nil // read again: the creation is what it must be true for
		r.baseline = r.collect(ctx, "")
		created, err := r.createOnce(ctx, pod)
		switch {
		case err == nil:
			return r.pin(created)
		// A conflict that is no AlreadyExists is one over a quota's usage.
		case cluster.Answered(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
			return fmt.Errorf("creating Pod %s: %w", r.Canary, err)
		case !apierrors.IsAlreadyExists(err):
			r.waitf(StepCreate, "creating Pod %s again and again: %v", r.Canary, err)
		}
		if created, err = r.whoIsThere(ctx, left); err != nil {
			return err
		}
		if created != nil {
			return r.pin(created)
		}
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (r *Retest) createOnce(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := uncut(ctx)
	defer cancel()
	return r.Clients.Core.Pods(r.Canary.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: FieldManager})
}

// whoIsThere tells, after a create that failed, whether it happened all the
// same (its answer was lost), whether the name is not free yet, or whether
// somebody else has taken it. left is what an interruption leaves behind as long
// as nothing was created.
func (r *Retest) whoIsThere(ctx context.Context, left string) (*corev1.Pod, error) {
	ctx, cancel := uncut(ctx)
	defer cancel()
	pod, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.leave("%s", left)
		return nil, nil
	case err != nil && cluster.Answered(err):
		return nil, fmt.Errorf("reading Pod %s after creating it: %w", r.Canary, err)
	case err != nil:
		r.leave("whether Pod %s was created is not known; its manifest is saved in %s: run the same command again to go on", r.Canary, r.saved)
		r.waitf(StepCreate, "waiting for the API server: %v", err)
		return nil, nil
	case pod.Annotations[AttemptAnnot] == r.attempt.ID:
		return pod, nil
	case pod.DeletionTimestamp != nil:
		if !slices.Contains(r.earlier, pod.UID) {
			r.earlier = append(r.earlier, pod.UID)
		}
		r.waitf(StepCreate, "waiting for Pod %s (UID %s) to be gone: the server still has it", r.Canary, pod.UID)
		return nil, nil
	}
	return nil, r.namesake(pod)
}

func (r *Retest) pin(pod *corev1.Pod) error {
	r.attempt.Created = r.now()
	r.uid = pod.UID
	r.followEvents(pod.UID)
	fresh := r.baseline
	fresh.Canary.UID = pod.UID
	fresh.Pods = append(slices.Clone(fresh.Pods), *pod)
	r.lastFrom(fresh)
	r.leave("the new Pod %s (UID %s) was created and is not judged yet: run the same command again for a new attempt", r.Canary, pod.UID)
	r.notef(StepCreate, "created Pod %s (UID %s)", r.Canary, pod.UID)
	if !sameNetworks(pod, r.manifest) {
		return fmt.Errorf("the new Pod %s (UID %s) asks for the networks %s, which is not what %s says (a mutating webhook?): whether its address is its own was not looked up; delete it, and take the Pod out of that webhook's sight",
			r.Canary, pod.UID, askedFor(pod), r.source)
	}
	return nil
}
