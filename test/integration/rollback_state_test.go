//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The server goes away while a node Pod runs, and stays away for longer than the
// run waits for it: the run says what it could not delete, and the next one sweeps
// it and goes on.
func TestRollbackLosesTheServer(t *testing.T) {
	t.Parallel()
	server := ownPlane(t)
	s := newRollbackSite(t, server, "lost")
	run := s.start("rollback", "-o", "json", "--yes", "--timeout", "8s")
	run.waitFor("waiting for the Pod vlan50-rollback-node")
	server.Kill()
	ended := run.wait()
	if ended.code != 1 && ended.code != 4 {
		t.Errorf("exit code %d\n%s", ended.code, ended.stderr)
	}
	ended.said(t, "vlan50-rollback-node")
	check(t, server.Restart(t.Context()))
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// A consumer that the user named is named again by the second run, or gone.
func TestRollbackKilledBesideAConsumer(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "killed-also")
	also := []string{"--yes", "--also", "pod/" + s.Namespace + "/proxy"}
	for _, when := range []string{"step 3 of 15 done", "step 4 of 15 done: Pod " + s.Namespace + "/proxy", "step 8 of 15 done"} {
		pod, err := s.CanaryPod()
		check(t, err)
		pod.Name, pod.Spec.InitContainers = "proxy", nil
		pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": s.Network}
		_, err = s.client.CoreV1().Pods(s.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		check(t, err)
		run := s.start(append([]string{"rollback", "-o", "json"}, also...)...)
		run.waitFor(when)
		run.signal(syscall.SIGKILL)
		if ended := run.wait(); ended.code != -1 {
			t.Errorf("it was not killed: exit code %d", ended.code)
		}
		s.forget()
		s.rollback(also...).expectResult(t, 0, "done")
		s.checkGone()
		s.restore()
	}
}
