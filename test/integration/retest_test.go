//go:build integration

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

func TestFirstCanaryFromManifestPasses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "first", scriptednode.Options{})
	document := s.retest("-f", s.manifest).expect(t, 0, "pass", "ok")
	if pod := s.pod(); pod == nil || pod.UID != document.UID {
		t.Errorf("the verdict is about UID %s, the Pod is %v", document.UID, pod)
	}
}

func TestFailedCanaryIsRecreatedFromTheLivePod(t *testing.T) {
	t.Parallel()
	s := newSite(t, "failed", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.GuardFailed(1, "no reply"), scriptednode.Pass()}})
	old := s.createCanary(corev1.PodFailed)
	document := s.retest().expect(t, 0, "pass", "ok")
	if document.UID == old.UID {
		t.Error("the old Pod was judged")
	}
}
