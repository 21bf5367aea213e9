//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// State is read, never remembered: with the canary gone, a machine that has
// saved its manifest plans no other steps than one that has not. It only knows
// how to name what is left.
func TestRollbackPlansTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "machines")
	s.retest("-o", "json").expect(t, 0, "pass", "ok") // saves the manifest
	s.removeCanary()
	knowing := s.rollback("--dry-run").plan(t)
	state := s.state
	s.state = t.TempDir()
	ignorant := s.rollback("--dry-run").plan(t)
	s.state = state
	if diff := cmp.Diff(ignorant.Status.Steps, knowing.Status.Steps); diff != "" {
		t.Errorf("a saved manifest changes the plan:\n%s", diff)
	}
	network, guard := s.Namespace+"/"+s.Network, s.Namespace+"/"+s.Guard
	for _, step := range knowing.Status.Steps {
		if step.Action == "delete" && (strings.HasSuffix(step.Object, network) || strings.HasSuffix(step.Object, guard)) {
			t.Errorf("step %d deletes %s, which nothing in the cluster leads to", step.Number, step.Object)
		}
	}
	flags := []string{"--network", network, "--also", "ConfigMap/" + guard}
	if notes := strings.Join(knowing.Status.Notes, " "); !strings.Contains(notes, strings.Join(flags, " ")) {
		t.Errorf("the notes do not say how to take along what is left: %s", notes)
	}
	s.rollback(append(flags, "--yes")...).expectResult(t, 0, "done")
	s.checkGone()
}

// A folder that only the DaemonSet tells of is known also when a run was killed
// right after the DaemonSet was gone: it is noted on what stood beside it.
func TestRollbackKnowsTheConfDirOfADeletedDaemonSet(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "odd-dir", func(site *scriptednode.Site) { site.ConfDir = "/opt/odd/net.d" })
	plan := s.rollback("--dry-run").plan(t)
	last := slices.IndexFunc(plan.Status.Steps, func(step v1alpha1.RollbackStep) bool { return strings.HasPrefix(step.Object, "DaemonSet ") })
	run := s.start("rollback", "-o", "json", "--yes")
	run.waitFor(fmt.Sprintf("step %d of %d done", last+1, len(plan.Status.Steps)))
	run.signal(syscall.SIGKILL)
	run.wait()
	s.node.WriteConf()
	out := s.rollback("--yes")
	out.expectResult(t, 0, "done")
	out.said(t, "/opt/odd/net.d")
	if s.node.ConfPresent() {
		t.Error("the Multus conf is in effect")
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left in the API: %v", left)
	}
}
