//go:build integration

package integration

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// lease is the lock as it is, nil where there is none.
func (s *site) lease() *coordinationv1.Lease {
	s.t.Helper()
	lease, err := s.client.CoordinationV1().Leases(s.Namespace).Get(s.t.Context(), s.Canary, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(s.t, err)
	return lease
}

// unlocked checks that a run which has ended holds no lock.
func (s *site) unlocked() {
	s.t.Helper()
	if lease := s.lease(); lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		s.t.Errorf("the lock is still held by %q", *lease.Spec.HolderIdentity)
	}
}
