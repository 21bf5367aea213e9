package rollback

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// lock takes the canary's Lease: no retest and no other rollback runs at the
// same time. Where the canary's namespace is gone or going, no retest can run, and
// the Lease is taken beside the DaemonSet.
func (r *Rollback) lock(ctx context.Context) (context.Context, func(remove bool), error) {
	subject := evidence.Ref{Namespace: r.state.LockNamespace, Name: r.Canary.Name}
	hold := canary.Hold{
		Clients: r.Clients.Clients, Canary: subject, Holder: r.Holder, Process: r.Process, Notify: r.Notify, Now: r.Now,
	}
	run, release, err := hold.Acquire(ctx)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		subject = evidence.Ref{Namespace: r.state.Ground.Namespace, Name: r.Canary.Name}
		hold.Canary = subject
		run, release, err = hold.Acquire(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return run, func(remove bool) {
		release()
		if remove {
			r.dropLease(ctx, subject)
		}
	}, nil
}

// dropLease deletes the Lease that nobody will need again. It is a leftover,
// and not worth an error.
func (r *Rollback) dropLease(ctx context.Context, subject evidence.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	leases := r.Clients.Coordination.Leases(subject.Namespace)
	lease, err := leases.Get(ctx, subject.Name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		return
	}
	if err := leases.Delete(ctx, subject.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &lease.UID, ResourceVersion: &lease.ResourceVersion,
	}}); err != nil && !apierrors.IsNotFound(err) {
		r.notef(StepCheck, "the Lease %s is left: %v", subject, err)
	}
}
