package canary

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// lease is a Lease that somebody else renewed that long ago, by their clock.
func lease(renewed time.Duration, process string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(time.Now().Add(-renewed))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "downloads", Name: "vlan50-canary", ResourceVersion: "before",
			Annotations: map[string]string{processAnnot: process},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("bob@rack (started then)"), LeaseDurationSeconds: ptr.To[int32](60),
			AcquireTime: &at, RenewTime: &at,
		},
	}
}

// held is the Lease as stored.
func (w *world) lease() *coordinationv1.Lease {
	object, err := w.kube.Tracker().Get(leasesResource, "downloads", "vlan50-canary")
	if err != nil {
		return nil
	}
	return object.(*coordinationv1.Lease).DeepCopy()
}

// editLease changes the stored Lease, as another client does.
func (w *world) editLease(change func(*coordinationv1.Lease)) {
	stored := w.lease()
	change(stored)
	stored.ResourceVersion = w.next()
	check(w.t, w.kube.Tracker().Update(leasesResource, stored, stored.Namespace))
}

func withLease(l *coordinationv1.Lease) func(*site) {
	return func(s *site) { s.others = append(s.others, l) }
}

func TestLockIsRefusedWhileItsHolderLives(t *testing.T) {
	tests := map[string]struct {
		lease *coordinationv1.Lease
		// renews is how often the holder renews, by its own clock; zero never.
		renews time.Duration
	}{
		"renewed a moment ago":                     {lease: lease(5*time.Second, "machine-2/7")},
		"looks stale, because its clock is behind": {lease: lease(10*time.Minute, "machine-2/7"), renews: leaseRenewal},
		"renewed in the future, and again":         {lease: lease(-time.Hour, "machine-2/7"), renews: leaseRenewal},
		"a process of this machine that runs":      {lease: lease(5*time.Second, "machine-1/7")},
		"a process of a machine without a name":    {lease: lease(5*time.Second, "/7")},
		"no process named":                         {lease: lease(5*time.Second, "")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := test.lease.Spec.RenewTime.Sub(time.Now())
				w := newWorld(t, withLease(shifted(test.lease)))
				if test.renews > 0 {
					time.AfterFunc(test.renews, func() {
						w.editLease(func(l *coordinationv1.Lease) {
							l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(behind)))
						})
					})
				}
				_, err := w.retest().Run(t.Context())
				if !isRefusal(err) || !strings.Contains(err.Error(), "is being retested by bob@rack (started then) since ") {
					t.Errorf("error: %v", err)
				}
				if pod := w.pod("vlan50-canary"); pod == nil || pod.UID != "old-uid" || pod.DeletionTimestamp != nil {
					t.Errorf("the canary was touched: %v", w.writes())
				}
			})
		})
	}
}

// shifted moves a Lease, made outside a bubble, to the bubble's clock.
func shifted(l *coordinationv1.Lease) *coordinationv1.Lease { return l }
