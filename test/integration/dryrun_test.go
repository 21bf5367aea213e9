//go:build integration

package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// A dry run says what would be done, and changes nothing on the server nor in
// the user's state.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, "dry", scriptednode.Options{})
	p := s.behindProxy()
	old := s.createCanary(corev1.PodSucceeded)
	for _, row := range []struct {
		flag  string
		tries int
	}{{"--dry-run", 0}, {"--dry-run=client", 0}, {"--dry-run=server", 2}} {
		t.Run(row.flag, func(t *testing.T) {
			before := len(p.requests(dryRunsOnly))
			out := s.run("canary", "retest", row.flag)
			if out.code != 0 || out.stdout != "" {
				t.Errorf("exit code %d, standard output %q", out.code, out.stdout)
			}
			has(t, out.stderr, "(UID "+string(old.UID)+") would be deleted and created again from the live Pod")
			if tried := len(p.requests(dryRunsOnly)) - before; tried != row.tries {
				t.Errorf("%d requests were only tried, want %d", tried, row.tries)
			}
		})
	}
	for _, a := range p.requests(func(a asked) bool { return a.method != http.MethodGet && !dryRunsOnly(a) }) {
		if !strings.HasSuffix(a.url.Path, "/selfsubjectaccessreviews") {
			t.Errorf("a dry run wrote: %s", a)
		}
	}
	if now := s.pod(); now.UID != old.UID || now.ResourceVersion != old.ResourceVersion {
		t.Error("the canary was changed")
	}
	if s.lease() != nil {
		t.Error("a lock was taken")
	}
	if saved, err := filepath.Glob(filepath.Join(s.state, "*", "*", "*", "*")); err != nil || len(saved) > 0 {
		t.Errorf("a dry run has saved %v (%v)", saved, err)
	}
	t.Run("no canary yet", func(t *testing.T) {
		s.removeCanary()
		out := s.run("canary", "retest", "--dry-run=server", "-f", s.manifest)
		has(t, out.stderr, "would be created")
		if s.pod() != nil {
			t.Error("a canary was created")
		}
	})
	t.Run("refused as the real run would be", func(t *testing.T) {
		s.run("canary", "retest", "--dry-run=server").expectError(t, 5, "-f FILE")
	})
}

// dryRunsOnly matches what is only tried: the option stands in the query, or in
// the body of a deletion.
func dryRunsOnly(a asked) bool {
	return dryRuns(a) || a.method == http.MethodDelete && strings.Contains(string(a.body), "All")
}

// The user's files stay as they are, and nobody else may read what is saved.
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, "files", scriptednode.Options{})
	s.retest("-f", s.manifest).expect(t, 0, "pass", "ok")
	if data, err := os.ReadFile(s.manifest); err != nil || string(data) != string(s.CanaryManifest()) {
		t.Errorf("the user's manifest was changed (%v):\n%s", err, data)
	}
	check(t, filepath.WalkDir(s.state, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		return err
	}))
}
