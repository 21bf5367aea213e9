//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
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

// A site without the usual registry has one image that is sure to run: that of its
// own Multus. This machine knows it when no object tells of it any more.
func TestRollbackWithoutARegistry(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "no-registry")
	s.files.refuse(rollback.DefaultNodeImage, true)
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
	s.rollback().expectResult(t, 0, "clean")
	if out := s.run("rollback", "status", "-o", "jsonpath={.status.clean}"); out.code != 0 || out.stdout != "true" {
		t.Errorf("status: exit code %d, clean %s\n%s", out.code, out.stdout, out.stderr)
	}
	s.rollback("--undo", "--yes").expectResult(t, 0, "done", "byte for byte")
	if !s.node.ConfPresent() {
		t.Error("the conf is not back")
	}
	s.rollback("--yes").expectResult(t, 0, "done")
	s.rollback("--node-access=manual").expectResult(t, 0, "clean")
	s.forget()
	s.rollback().expectError(t, 5, "nothing was changed", "--node-image")
}

// A DaemonSet that was found without being named, in a namespace of its own: the
// machine that began its rollback goes on with it, another one asks whether to.
func TestRollbackOfADaemonSetThatWasFound(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "found", func(site *scriptednode.Site) {
		site.DaemonSet.Namespace, site.DaemonSet.Name = "multus", "multus"
	})
	s.env = append(s.env, "VLAN50_DAEMONSET=") // the last one counts
	plan := s.rollback("--dry-run").plan(t)
	last := slices.IndexFunc(plan.Status.Steps, func(step v1alpha1.RollbackStep) bool { return strings.HasPrefix(step.Object, "DaemonSet ") })
	kill := func() {
		t.Helper()
		run := s.start("rollback", "-o", "json", "--yes")
		run.waitFor(fmt.Sprintf("step %d of %d done", last+1, len(plan.Status.Steps)))
		run.signal(syscall.SIGKILL)
		run.wait()
	}
	kill()
	s.rollback("--yes").expectResult(t, 0, "done")
	if left := s.left(); len(left) > 0 {
		t.Errorf("left in the API: %v", left)
	}
	s.rollback().expectResult(t, 0, "clean")

	s.restore()
	kill()
	s.forget()
	s.rollback("--yes").expectError(t, 5, "nothing was changed", "cut short", "DaemonSet multus/multus", "--daemonset")
	out := s.run("rollback", "status", "-o", "json")
	if out.code != 0 || !strings.Contains(out.stdout, `"clean": false`) || !strings.Contains(out.stdout, "cut short") {
		t.Errorf("status: exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	s.rollback("--yes", "--daemonset", "multus/multus").expectResult(t, 0, "done")
	if left := s.left(); len(left) > 0 {
		t.Errorf("left in the API: %v", left)
	}
}

// Networks that nobody can read are nobody's: they stay, and the run goes on and
// says how to take them along.
func TestRollbackOfACanaryWhoseNetworksCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "unreadable")
	pods := s.client.CoreV1().Pods(s.Namespace)
	for _, networks := range []string{`[{"name":`, `{"name":"vlan50"}`, `[null]`} {
		pod, err := pods.Get(t.Context(), s.Canary, metav1.GetOptions{})
		check(t, err)
		pod.Annotations["k8s.v1.cni.cncf.io/networks"] = networks
		_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
		check(t, err)
		plan := s.rollback("--dry-run=server").plan(t)
		if notes := strings.Join(plan.Status.Notes, " "); !strings.Contains(notes, "--network") {
			t.Errorf("%s: the notes do not say how to take a network along: %s", networks, notes)
		}
		if out := s.run("rollback", "status", "-o", "json"); out.code != 0 || !strings.Contains(out.stdout, "--network") {
			t.Errorf("%s: status: exit code %d\n%s\n%s", networks, out.code, out.stdout, out.stderr)
		}
	}
	s.rollback("--yes", "--network", s.Network).expectResult(t, 0, "done")
	s.checkGone()
}

// Whoever may make objects somewhere may make some that look like ours: they stop no
// run in its middle, and no cluster from being clean whose DaemonSet is named.
func TestRollbackBesideWhatLooksLikeOurs(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "lookalike")
	s.asUser("roller", s.publishedIn("rollback.yaml"))
	s.env = append(s.env, "VLAN50_DAEMONSET=") // it is found, and its marks with it
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}, metav1.CreateOptions{})
	check(t, err)
	_, err = s.client.CoreV1().Pods("tenant").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "vlan50-rollback-x", Labels: map[string]string{rollback.PodLabel: rollback.ProbeRole, "app.kubernetes.io/managed-by": "kubectl-vlan50"},
			Annotations: map[string]string{rollback.MarkAnnot: "canary " + s.Namespace + "/" + s.Canary},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "busybox"}}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = s.client.CoreV1().ConfigMaps("tenant").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "marked", Annotations: map[string]string{rollback.MarkAnnot: "daemonset tenant/ds"},
	}}, metav1.CreateOptions{})
	check(t, err)
	out := s.rollback("--yes")
	out.expectResult(t, 0, "done")
	out.said(t, "tenant/vlan50-rollback-x could not be deleted")
	s.rollback().expectError(t, 5, "nothing was changed", "DaemonSet tenant/ds", "--daemonset", "kube-system/kube-multus-ds to leave it alone")
	s.env = append(s.env, "VLAN50_DAEMONSET="+s.DaemonSet.String())
	s.rollback().expectResult(t, 0, "clean")
	if out := s.run("rollback", "status", "-o", "json"); out.code != 0 || !strings.Contains(out.stdout, `"clean": true`) || !strings.Contains(out.stdout, "tenant/vlan50-rollback-x") {
		t.Errorf("status: exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}
