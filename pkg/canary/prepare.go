package canary

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// prepare proves, before anything is changed, that the canary can be created
// again: its manifest, the rights, the server's admission, its address.
func (r *Retest) prepare(ctx context.Context) error {
	if err := r.locate(ctx); err != nil {
		return err
	}
	if err := r.rightsGuard(ctx); err != nil {
		return err
	}
	live, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("reading Pod %s: %w", r.Canary, err)
	}
	if err := r.chooseManifest(live); err != nil {
		return err
	}
	if r.DryRun != DryRunClient {
		if err := r.admissionGuard(ctx); err != nil {
			return err
		}
	}
	if err := r.overlapGuard(ctx); err != nil {
		return err
	}
	checked := "rights, admission and address are free"
	if r.DryRun == DryRunClient {
		checked = "rights and address are free (--dry-run=server asks the admission too)"
	}
	r.notef(StepCheck, "Pod %s can be recreated from %s: %s", r.Canary, r.source, checked)
	return nil
}

// locate finds the DaemonSet. One that may not be read is left to the guard of
// the rights, which names all that are missing.
func (r *Retest) locate(ctx context.Context) error {
	if r.Locate == nil {
		return nil
	}
	ref, err := r.Locate(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	r.DaemonSet = ref
	return nil
}

// chooseManifest takes the user's file, else the live Pod, else what an earlier
// run saved before it deleted the Pod.
func (r *Retest) chooseManifest(live *corev1.Pod) error {
	if live != nil {
		if err := Check(FromLive(live)); err != nil {
			return refusef("Pod %s will not be deleted: %s", r.Canary, err)
		}
	}
	switch {
	case r.File != nil:
		r.manifest, r.source = r.File.Pod.DeepCopy(), r.File.Source
		// A file made from a live Pod carries the verdict on that one.
		r.manifest.Annotations = ownAnnotations(r.manifest.Annotations)
	case live != nil:
		r.manifest, r.source = FromLive(live), "the live Pod"
	default:
		pod, path, err := r.Store.LoadManifest(r.Canary)
		if err != nil {
			return fmt.Errorf("reading the manifest that an earlier run saved: %w", err)
		}
		if pod == nil {
			return refusef("there is no Pod %s and no manifest saved by an earlier run: pass the manifest with -f FILE", r.Canary)
		}
		r.manifest, r.source, r.saved = pod, "the manifest saved by an earlier run ("+path+")", path
		if err := Check(pod); err != nil {
			return refusef("the saved manifest %s is no canary's: %s", path, err)
		}
		r.notef(StepCheck, "there is no Pod %s: going on from %s", r.Canary, r.source)
	}
	return nil
}

// required are the rights without which a retest would stop half-way or could
// not keep its promises.
func (r *Retest) required() []cluster.Right {
	canary, daemon := r.Canary.Namespace, r.DaemonSet.Namespace
	return []cluster.Right{
		{Verb: "get", Resource: "pods", Namespace: canary},
		{Verb: "list", Resource: "pods", Namespace: canary},
		{Verb: "create", Resource: "pods", Namespace: canary},
		{Verb: "delete", Resource: "pods", Namespace: canary},
		{Verb: "list", Resource: "events", Namespace: canary},
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: canary},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: canary},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: canary},
		{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: daemon},
		{Verb: "list", Group: "apps", Resource: "daemonsets", Namespace: daemon},
		{Verb: "list", Resource: "pods", Namespace: daemon},
		// Whether another Pod asks for the address can be told only by looking
		// everywhere.
		{Verb: "list", Resource: "pods"},
	}
}

func (r *Retest) rightsGuard(ctx context.Context) error {
	missing, err := r.Clients.Missing(ctx, r.required())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return refusef("nothing was changed: this user may not %s; ask for config/rbac/retest.yaml, or use another user", cluster.Join(missing))
	}
	return nil
}

// admissionGuard lets the server admit the manifest under a generated name,
// without storing it.
func (r *Retest) admissionGuard(ctx context.Context) error {
	probe := r.manifest.DeepCopy()
	probe.Name, probe.GenerateName = "", r.manifest.Name+"-dry-run-"
	asked := r.now()
	admitted, err := r.Clients.Core.Pods(r.Canary.Namespace).Create(ctx, probe, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager,
	})
	if err == nil {
		r.setSkew(asked, admitted.CreationTimestamp.Time)
		if !sameNetworks(admitted, r.manifest) {
			return refusef("nothing was changed: the server makes %s of the networks that Pod %s asks for in %s (a mutating webhook?), and who else has an address was looked up for the latter: write into the manifest what is meant, or take the Pod out of that webhook's sight",
				askedFor(admitted), r.Canary, r.source)
		}
		return nil
	}
	if cluster.Answered(err) {
		return refusef("nothing was changed: the server would not take Pod %s from %s: %v%s", r.Canary, r.source, err, quotaHint(err))
	}
	return fmt.Errorf("trying Pod %s on the server (dry run): %w", r.Canary, err)
}

// quotaHint tells why a quota may refuse what it would allow in a moment: a dry run
// is counted beside the Pod that is still there.
func quotaHint(err error) string {
	if !strings.Contains(err.Error(), "exceeded quota") {
		return ""
	}
	return "; the canary that is there counts as well until it is deleted: the quota must have room for one more"
}

// sameNetworks reports whether two Pods ask Multus for the same.
func sameNetworks(a, b *corev1.Pod) bool {
	networksOfA, errA := multus.AllNetworks(a)
	networksOfB, errB := multus.AllNetworks(b)
	return (errA == nil) == (errB == nil) && reflect.DeepEqual(networksOfA, networksOfB)
}

// askedFor quotes what a Pod asks Multus for.
func askedFor(pod *corev1.Pod) string {
	text := strconv.Quote(pod.Annotations[nadv1.NetworkAttachmentAnnot])
	if primary := multus.DefaultNetwork(pod); primary != "" {
		text += " and " + strconv.Quote(primary)
	}
	return text
}

// overlapGuard refuses while another Pod asks for an address of the canary:
// there must never be two holders of one.
func (r *Retest) overlapGuard(ctx context.Context) error {
	holders, err := r.otherHolders(ctx)
	if err != nil {
		return fmt.Errorf("looking for other Pods with the canary's address: %w", err)
	}
	if len(holders) > 0 {
		return refusef("Pod %s is not created, two Pods would hold one address: %s; delete that Pod or change its address, then run this again (%s)", r.Canary, joinLines(holders), r.state)
	}
	return nil
}

// lastLook is the overlap guard once the old Pod is gone. A run that ended here
// would leave no canary, so that a server which is away for a moment is waited
// for.
func (r *Retest) lastLook(ctx context.Context) error {
	for {
		err := r.overlapGuard(ctx)
		switch {
		case err == nil, isRefusal(err), cluster.Answered(err):
			return err
		case ctx.Err() == nil:
			r.waitf(StepCreate, "waiting for the API server: %v", err)
		}
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// wouldDo tells what a real run would do now.
func (r *Retest) wouldDo(ctx context.Context) error {
	live, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.notef(StepCreate, "Pod %s would be created (dry run)", r.Canary)
		return nil
	case err != nil:
		return fmt.Errorf("reading Pod %s: %w", r.Canary, err)
	}
	if r.DryRun == DryRunServer {
		if err := r.deleteOnce(ctx, live, true); err != nil {
			return fmt.Errorf("trying to delete Pod %s (dry run): %w", r.Canary, err)
		}
	}
	r.notef(StepDelete, "Pod %s (UID %s) would be deleted and created again from %s (dry run)", r.Canary, live.UID, r.source)
	return nil
}
