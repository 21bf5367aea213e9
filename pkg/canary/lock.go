package canary

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// The lock is a Lease named after the canary, so that two people never recreate
// it at once: both Pods would claim one address.
const (
	// leaseDuration is how long after its last renewal a Lease counts as held.
	leaseDuration = time.Minute
	// leaseRenewal is how often a running retest renews its Lease.
	leaseRenewal = 10 * time.Second
	// leaseDoubt is how long a Lease that looks stale is watched before it is
	// taken over. Clocks differ between machines; a holder that lives renews
	// within this time, whatever its clock says.
	leaseDoubt = leaseRenewal + 2*time.Second
	// processAnnot tells a later run on the same machine whose process held the
	// Lease.
	processAnnot = Prefix + "process"
)

// Process names one running command: a machine by a random id of its state
// folder, and the process on it.
type Process struct {
	Machine string
	PID     int
	// Alive reports whether a process of this machine still runs.
	Alive func(pid int) bool
}

func (p Process) String() string { return p.Machine + "/" + strconv.Itoa(p.PID) }

// died reports whether a Lease's holder was a process of this machine that no
// longer runs. Only then need nobody wait for the Lease to grow stale.
func (p Process) died(holder string) bool {
	machine, pid, ok := strings.Cut(holder, "/")
	if !ok || machine == "" || machine != p.Machine {
		return false
	}
	number, err := strconv.Atoi(pid)
	return err == nil && !p.Alive(number)
}

// lock is a held Lease.
type lock struct {
	stop context.CancelFunc
	done chan struct{}
}

// errLost ends a run whose Lease is no longer its own; holder is empty where
// the Lease is gone.
type errLost struct{ lease, holder string }

func (e errLost) Error() string {
	if e.holder == "" {
		return "the lock (Lease " + e.lease + ") was deleted while this run held it"
	}
	return "the lock was taken over by " + e.holder + " while this run could not renew it"
}

// acquire takes the Lease, or refuses and says who holds it and since when. The
// returned context ends when the Lease is lost.
func (r *Retest) acquire(ctx context.Context) (context.Context, *lock, error) {
	lease, err := r.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.renewed.Store(new(r.wallClock()))
	run, lost := context.WithCancelCause(ctx)
	renew, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &lock{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		r.renew(renew, lease, lost)
	}()
	return run, l, nil
}

// take makes the Lease ours.
func (r *Retest) take(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := r.leases().Get(ctx, r.Canary.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return r.put(ctx, nil)
	case err != nil:
		return nil, wrapLease(err, r)
	}
	if lease, err = r.mayTake(ctx, lease); err != nil {
		return nil, err
	}
	return r.put(ctx, lease)
}

// put writes the Lease as ours, over current where there is one.
func (r *Retest) put(ctx context.Context, current *coordinationv1.Lease) (lease *coordinationv1.Lease, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := uncut(ctx)
	defer cancel()
	if current == nil {
		lease, err = r.leases().Create(ctx, r.lease(nil), metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		lease, err = r.leases().Update(ctx, r.lease(current), metav1.UpdateOptions{FieldManager: FieldManager})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil, refusef("Pod %s has just been locked by another run: wait for it to end, then run this again", r.Canary)
	}
	return lease, wrapLease(err, r)
}

// mayTake gives the Lease where it is free or given up, and refuses while the
// holder lives.
func (r *Retest) mayTake(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" {
		return lease, nil
	}
	if r.Process.died(lease.Annotations[processAnnot]) {
		r.notef(StepLock, "the earlier run of %s is no longer there: taking over its lock", holder)
		return lease, nil
	}
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	// A time in a far future was written by a wrong clock and says as little as
	// one long past.
	if r.now().Sub(renewed).Abs() < leaseDuration {
		return nil, r.held(lease, holder)
	}
	r.notef(StepLock, "the lock of %s was last renewed at %s: watching for %s whether it is given up",
		holder, renewed.UTC().Format(time.RFC3339), leaseDoubt)
	if err := cluster.Pause(ctx, leaseDoubt); err != nil {
		return nil, err
	}
	again, err := r.leases().Get(ctx, r.Canary.Name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapLease(err, r)
	}
	if now := ptr.Deref(again.Spec.HolderIdentity, ""); now != "" && again.ResourceVersion != lease.ResourceVersion {
		return nil, r.held(again, now)
	}
	r.notef(StepLock, "taking over the stale lock of %s", holder)
	return again, nil
}

func (r *Retest) held(lease *coordinationv1.Lease, holder string) error {
	since := "an unknown time"
	if at := lease.Spec.AcquireTime; at != nil {
		since = fmt.Sprintf("%s (%s ago)", at.UTC().Format(time.RFC3339), age(r.now(), at.Time))
	}
	return refusef("Pod %s is locked by %s since %s: wait for it to end; its lock (Lease %s) can be taken %s after its last renewal",
		r.Canary, holder, since, r.Canary, leaseDuration)
}

// lease is the Lease as ours, on top of what is there.
func (r *Retest) lease(current *coordinationv1.Lease) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.Canary.Namespace, Name: r.Canary.Name}}
	if current != nil {
		lease = current.DeepCopy()
		lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, processAnnot, r.Process.String())
	now := metav1.NewMicroTime(r.now())
	lease.Spec.HolderIdentity = new(r.Holder)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	return lease
}

// ours waits until the lock is known to be held, before something is written: who
// was away for as long as a Lease lasts, be it that the machine slept, may have
// lost it to another run. The renewal that comes next tells.
func (r *Retest) ours(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if at := r.renewed.Load(); at == nil || r.wallClock().Sub(*at) < leaseDuration-leaseRenewal {
			return nil
		}
		switch err := r.renewal.Load(); {
		case err == nil:
			r.waitf(StepLock, "waiting until the lock (Lease %s) can be renewed", r.Canary)
		case apierrors.IsForbidden(*err):
			return refusef("the lock (Lease %s) may not be renewed any more: %v; %s", r.Canary, *err, r.state)
		default:
			r.waitf(StepLock, "waiting until the lock (Lease %s) can be renewed: %v", r.Canary, *err)
		}
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// wallClock is the time without the monotonic clock, which stands still while a
// machine sleeps.
func (r *Retest) wallClock() time.Time { return r.now().Round(0) }

// renew keeps the Lease until ctx ends, then gives it up.
func (r *Retest) renew(ctx context.Context, lease *coordinationv1.Lease, lost context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.release(lease)
			return
		case <-tick.C:
		}
		renewed, err := r.renewOnce(ctx, lease)
		if err != nil {
			lost(err)
			return
		}
		lease = renewed
	}
}

// renewOnce gives the Lease as it is now, or errLost. Any other trouble passes
// or ends with the run: the server is away, for others too.
func (r *Retest) renewOnce(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseRenewal)
	defer cancel()
	lease = lease.DeepCopy()
	lease.Spec.RenewTime = new(metav1.NewMicroTime(r.wallClock()))
	renewed, err := r.leases().Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
	switch {
	case err == nil:
		r.renewed.Store(new(lease.Spec.RenewTime.Time))
		return renewed, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return r.reread(ctx, lease)
	}
	r.renewal.Store(&err)
	return lease, nil
}

// reread gives the Lease's newest version while it is still ours (somebody may
// have edited a label), or cannot be read; else errLost.
func (r *Retest) reread(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	current, err := r.leases().Get(ctx, lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errLost{lease: r.Canary.String()}
	case err != nil:
		return lease, nil //nolint:nilerr // whose it is will be told by the next renewal
	}
	holder := ptr.Deref(current.Spec.HolderIdentity, "")
	if current.Annotations[processAnnot] != r.Process.String() || holder != r.Holder {
		return nil, errLost{r.Canary.String(), orNone(holder)}
	}
	return current, nil
}

// release empties the Lease, which needs no right to delete it. Once somebody
// else has it, it is theirs.
func (r *Retest) release(lease *coordinationv1.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	err := r.releaseOnce(ctx, lease)
	if apierrors.IsConflict(err) {
		if lease, err = r.reread(ctx, lease); err == nil {
			err = r.releaseOnce(ctx, lease)
		}
	}
	if err != nil && !errors.As(err, new(errLost)) {
		r.notef(StepLock, "the lock (Lease %s) could not be given up: %v; it is free %s after its last renewal", r.Canary, err, leaseDuration)
	}
}

func (r *Retest) releaseOnce(ctx context.Context, lease *coordinationv1.Lease) error {
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = new("")
	_, err := r.leases().Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

func (r *Retest) leases() coordinationv1client.LeaseInterface {
	return r.Clients.Coordination.Leases(r.Canary.Namespace)
}

// releaseTimeout bounds the last request of a run that was interrupted.
const releaseTimeout = 5 * time.Second

// unlock stops renewing, gives the Lease up and waits until that is done.
func (l *lock) unlock() {
	l.stop()
	<-l.done
}

func wrapLease(err error, r *Retest) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("taking the lock (Lease %s): %w", r.Canary, err)
}
