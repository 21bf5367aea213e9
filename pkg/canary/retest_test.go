package canary

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// memoryStore is a Store that forgets with the test.
type memoryStore struct {
	manifest *corev1.Pod
	attempts []Result
	err      error
}

func (s *memoryStore) SaveManifest(pod *corev1.Pod) (string, error) {
	s.manifest = pod.DeepCopy()
	return "/state/manifest.yaml", s.err
}

func (s *memoryStore) LoadManifest(evidence.Ref) (*corev1.Pod, string, error) {
	return s.manifest, "/state/manifest.yaml", nil
}

func (s *memoryStore) SaveAttempt(result Result) (string, error) {
	s.attempts = append(s.attempts, result)
	return "/state/attempt", s.err
}

func TestRetestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		result, err := w.retest().Run(t.Context())
		check(t, err)
		if result.Verdict.Outcome != verdict.Pass {
			t.Errorf("verdict: %+v\n%s", result.Verdict, w.story())
		}
		want := []string{
			"create pods (dry run)", "create leases", "delete pods", "create pods", "patch pods", "update leases",
		}
		if diff := cmp.Diff(want, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}
