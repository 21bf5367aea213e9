//go:build integration

package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

func TestRollback(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "rollback")

	t.Run("a dry run changes nothing", func(t *testing.T) {
		for _, mode := range []string{"client", "server"} {
			p := s.behindProxy()
			plan := s.rollback("--dry-run=" + mode).plan(t)
			if !plan.Status.Ready || plan.Status.Empty || len(plan.Status.Steps) != 14 {
				t.Errorf("%s: ready %t, %d steps: %+v", mode, plan.Status.Ready, len(plan.Status.Steps), plan.Status.Guards)
			}
			if changes := p.requests(mutations); len(changes) > 0 {
				t.Errorf("%s: it asked for changes: %v", mode, changes)
			}
			if asked := p.requests(tried); (len(asked) > 0) != (mode == "server") {
				t.Errorf("%s: it tried %v", mode, asked)
			}
		}
		s.checkUntouched()
	})

	t.Run("a dry run that is out of time has no plan", func(t *testing.T) {
		for _, args := range [][]string{{"--dry-run"}, {"--dry-run=server"}, {"--undo", "--dry-run"}} {
			u := s.rollback(append(args, "--timeout", "1ms")...)
			if u.code != 1 || u.stdout != "" || !strings.Contains(u.stderr, "deadline") {
				t.Errorf("%v: exit code %d\n%s%s", args, u.code, u.stdout, u.stderr)
			}
		}
	})

	t.Run("nobody to ask", func(t *testing.T) {
		p := s.behindProxy()
		s.rollback().expectError(t, 5, "nothing was changed", "no terminal", "--yes")
		if changes := p.requests(mutations); len(changes) > 0 {
			t.Errorf("it asked for changes: %v", changes)
		}
		s.checkUntouched()
	})

	t.Run("all goes, in order", func(t *testing.T) {
		p := s.behindProxy()
		document := s.rollback("--yes").expectResult(t, 0, "done", "Multus is gone")
		s.checkGone()
		if node := document.Status.Nodes[0]; node.Primary != "10-flannel.conflist" || node.Probed == nil || !*node.Probed || len(node.Backups) != 1 {
			t.Errorf("node: %+v", node)
		}
		for _, a := range p.requests(func(a asked) bool { return a.method == "DELETE" && !tried(a) }) {
			if options := a.deleteOptions(t); options.Preconditions == nil || options.Preconditions.UID == nil || options.GracePeriodSeconds != nil {
				t.Errorf("%s: no UID, or a grace period of its own: %+v", a, options)
			}
		}
		if asked := p.requests(discovery); len(asked) > 0 {
			t.Errorf("it asked for discovery: %v", asked)
		}
		if len(s.files.probes) != 2 {
			t.Errorf("%d probes", len(s.files.probes))
		}
	})

	t.Run("a clean cluster", func(t *testing.T) {
		s.rollback().expectResult(t, 0, "clean", "Multus is gone")
		s.checkNoPods()
		out := s.run("rollback", "status", "-o", "json")
		if out.code != 0 || !strings.Contains(out.stdout, `"clean": true`) {
			t.Errorf("status: exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
		}
	})

	t.Run("the conf comes back byte for byte", func(t *testing.T) {
		s.rollback("--undo").expectError(t, 5, "nothing was changed", "--yes")
		s.rollback("--undo", "--yes").expectResult(t, 0, "done", "byte for byte", "apply")
		if got, _ := s.files.read("00-multus.conf"); got != multusConf {
			t.Errorf("conf: %q", got)
		}
		s.rollback("--undo", "--yes").expectResult(t, 0, "clean", "is there already, byte for byte")
		s.restore()
		s.retest().expect(t, 0, "pass", "ok")
	})
}

// discovery matches the requests by which clients find out what kinds there are.
func discovery(a asked) bool {
	path := strings.Trim(a.url.Path, "/")
	return path == "api" || path == "apis" || strings.HasPrefix(path, "openapi") || strings.Count(path, "/") == 1 && path == "api/v1" || strings.HasPrefix(path, "apis/") && strings.Count(path, "/") < 3
}

// Whatever step a run is killed after, the next one reaches the same end. The
// steps are those of the plan itself, so that none is missing.
func TestRollbackKilledAfterEachStep(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "killed")
	plan := s.rollback("--dry-run").plan(t)
	if len(plan.Status.Steps) != 14 {
		t.Fatalf("%d steps", len(plan.Status.Steps))
	}
	p := s.behindProxy()
	kill := func(t *testing.T, when string, next *v1alpha1.RollbackStep, last bool) {
		t.Helper()
		letGo := func() {}
		if next != nil && next.Action == "delete" {
			letGo = p.hold(s.deletion(*next)).letGo // else a quick run may outrun the kill
		}
		run := s.start("rollback", "-o", "json", "--yes")
		run.waitFor(when)
		run.signal(syscall.SIGKILL)
		// After the last step the end may come first.
		if ended := run.wait(); ended.code != -1 && !last {
			t.Errorf("it was not killed: exit code %d", ended.code)
		}
		letGo()
		s.forget()
		out := s.rollback("--yes")
		if end := out.result(t).Status.Outcome; out.code != 0 || end != "done" && end != "clean" {
			t.Errorf("the second run: exit code %d, outcome %s\n%s", out.code, end, out.stderr)
		}
		s.checkGone()
		s.rollback().expectResult(t, 0, "clean")
		s.restore()
	}
	t.Run("00 while it looks at the node", func(t *testing.T) { kill(t, "waiting for the Pod vlan50-rollback-node", nil, false) })
	for i, step := range plan.Status.Steps {
		last := i+1 == len(plan.Status.Steps)
		var next *v1alpha1.RollbackStep
		if !last {
			next = &plan.Status.Steps[i+1]
		}
		t.Run(stepName(step), func(t *testing.T) {
			kill(t, fmt.Sprintf("step %d of %d done", step.Number, len(plan.Status.Steps)), next, last)
		})
	}
}

// Every end that comes from outside leaves no Pod behind and says what stands.
func TestRollbackInterrupted(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "interrupted")
	// Where the tests run under nohup, what they start would ignore it; what they
	// catch themselves is not handed on.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for name, row := range map[string]struct {
		signal syscall.Signal
		code   int
		when   string
		// done is how many steps are done at least; -1 where none was begun.
		done  int
		texts []string
	}{
		"Ctrl-C while it looks":           {syscall.SIGINT, 130, "Pending, ContainerCreating", -1, []string{"nothing was changed"}},
		"SIGTERM while a conf is removed": {syscall.SIGTERM, 143, "keeping the Multus conf aside and removing it", 0, []string{"run the same command again"}},
		"SIGTERM in a probe":              {syscall.SIGTERM, 143, "waiting for an ordinary Pod", 1, []string{"step 1 is done", "step 2 (node node-a-interrupted", "run the same command again"}},
		"hang-up in a probe":              {syscall.SIGHUP, 143, "waiting for an ordinary Pod", 1, []string{"step 1 is done", "run the same command again"}},
		"Ctrl-C between deletions":        {syscall.SIGINT, 130, "step 5 of 14 done", 5, []string{"is not", "run the same command again"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := s.start("rollback", "-o", "json", "--yes")
			run.waitFor(row.when)
			run.signal(row.signal)
			ended := run.wait()
			ended.expectLastWord(t, row.code, append(row.texts, "interrupted")...)
			if row.done < 0 && ended.stdout != "" {
				t.Errorf("a run that changed nothing has no result, got: %s", ended.stdout)
			}
			if row.done >= 0 {
				checkPartialResult(t, ended, row.done)
			}
			s.checkNoPods()
			out := s.rollback("--yes")
			if out.code != 0 {
				t.Errorf("the second run: exit code %d\n%s", out.code, out.stderr)
			}
			s.checkGone()
			s.restore()
		})
	}
}

// Nobody reads the progress any more: the run goes on to its end.
func TestRollbackWithoutAReader(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "reader")
	said, say, err := os.Pipe()
	check(t, err)
	var stdout lockedBuffer
	cmd := s.command("rollback", "-o", "json", "--yes")
	cmd.Stdout, cmd.Stderr = &stdout, say
	check(t, cmd.Start())
	check(t, say.Close())
	for lines := bufio.NewScanner(said); lines.Scan() && !strings.Contains(lines.Text(), "waiting for an ordinary Pod"); {
		t.Log(lines.Text())
	}
	check(t, said.Close())
	if err := cmd.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
	outcome{stdout: stdout.String()}.expectResult(t, 0, "done")
	s.checkGone()
	s.checkNoPods()
}

// checkPartialResult checks the document of a run that was ended from outside.
func checkPartialResult(t *testing.T, o outcome, done int) {
	t.Helper()
	var document v1alpha1.RollbackResult
	check(t, json.Unmarshal([]byte(o.stdout), &document))
	status := document.Status
	if status.Outcome != "unfinished" || !strings.Contains(o.lastLine(), status.Message) || status.Next == "" {
		t.Errorf("outcome %q, message %q, next %q", status.Outcome, status.Message, status.Next)
	}
	for i, step := range status.Steps {
		if i < done && step.State != "done" {
			t.Errorf("step %d is %s", step.Number, step.State)
		}
	}
}

func TestRollbackOnADamagedNode(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "damaged")
	for _, row := range []struct {
		name    string
		arrange func()
		mend    func()
		texts   []string
	}{
		{"no other conf", func() { s.files.remove("10-flannel.conflist") }, func() { s.files.write("10-flannel.conflist", flannelConf) }, []string{"no other CNI conf", "could start no Pod"}},
		{"the other conf is broken", func() { s.files.write("10-flannel.conflist", "{") }, func() { s.files.write("10-flannel.conflist", flannelConf) }, []string{"10-flannel.conflist would be the node's first CNI conf", "cannot be used"}},
		{"a foreign file of Multus' name", func() { s.files.write("00-multus.conf", `{"type":"bridge"}`) }, func() { s.files.write("00-multus.conf", multusConf) }, []string{"is no conf of Multus", "type is bridge"}},
		{"the image is missing", func() { s.files.refused[s.Images.Multus] = true }, func() { s.files.refused[s.Images.Multus] = false }, []string{"is not on node", "--node-image", "--node-access=manual"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.arrange()
			s.rollback("--yes").expectError(t, 5, append(row.texts, "nothing was changed")...)
			row.mend()
			s.checkUntouched()
		})
	}
	t.Run("another image is named", func(t *testing.T) {
		s.files.refused[s.Images.Multus] = true
		s.rollback("--yes", "--node-image", "busybox:1.37").expectResult(t, 0, "done")
		s.checkGone()
		s.files.refused[s.Images.Multus] = false
		s.restore()
	})
	t.Run("the conf was emptied", func(t *testing.T) {
		s.files.write("00-multus.conf", "")
		s.rollback("--yes").expectResult(t, 0, "done")
		s.checkGone()
		s.restore()
	})
	for name, row := range map[string]struct {
		// gone is whether the DaemonSet has gone by then.
		gone bool
		says string
	}{
		"the daemon writes its conf again in mid-run": {false, "the Multus conf has come back; removing it again"},
		"the conf is back once the daemon is gone":    {true, "the conf had come back"},
	} {
		t.Run(name, func(t *testing.T) {
			again, probes := true, len(s.files.probes)
			s.files.before = func(*corev1.Pod) {
				// Once the first visit is over.
				if again && len(s.files.probes) == probes+1 && row.gone != slices.Contains(s.left(), s.DaemonSet.Name) {
					again = false
					s.node.WriteConf()
				}
			}
			out := s.rollback("--yes")
			out.expectResult(t, 0, "done")
			out.said(t, row.says)
			s.files.before = nil
			s.checkGone()
			s.restore()
		})
	}
	t.Run("the conf is back before the first probe", func(t *testing.T) {
		once := true
		s.files.probing = func(*corev1.Pod) (script scriptedScript) {
			if once {
				once = false
				s.node.WriteConf()
			}
			return passRunning()
		}
		out := s.rollback("--yes")
		out.expectResult(t, 0, "done")
		out.said(t, "has come back; removing it again")
		s.files.probing = nil
		s.checkGone()
		s.restore()
	})
}

func TestRollbackDeadline(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "deadline")
	objects := s.objects()[s.Network]
	patch := func(finalizers string) {
		_, err := objects.Patch(t.Context(), s.Network, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		check(t, err)
	}
	patch(`["example.com/hold"]`)
	s.rollback("--yes", "--timeout", "8s").expectResult(t, 4, "unfinished",
		"NetworkAttachmentDefinition "+s.Namespace+"/"+s.Network, "held by finalizer example.com/hold", "run the same command again")
	s.checkNoPods()
	patch("null")
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

func TestRollbackPodSecurity(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "podsecurity")
	label := func(value string) {
		_, err := s.client.CoreV1().Namespaces().Patch(t.Context(), s.DaemonSet.Namespace, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":`+value+`}}}`), metav1.PatchOptions{})
		check(t, err)
	}
	label(`"baseline"`)
	for _, args := range [][]string{{"--yes"}, {"--dry-run=server"}} {
		out := s.rollback(args...)
		if line := out.lastLine(); out.code != 5 || !strings.Contains(line, "pod-security.kubernetes.io/enforce=baseline of the namespace") ||
			!strings.Contains(line, "--node-access=manual") || !strings.Contains(line, "--node-namespace") {
			t.Errorf("%v: exit code %d: %s", args, out.code, line)
		}
	}
	s.checkUntouched()
	t.Run("another namespace", func(t *testing.T) {
		s.rollback("--yes", "--node-namespace", s.Namespace).expectResult(t, 0, "done")
		s.checkGone()
	})
	label("null")
}

// Somebody who brings the daemons back while they go is named, and nothing that
// they need is taken from them.
func TestRollbackWhileMultusComesBack(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "comesback")
	sets := s.client.AppsV1().DaemonSets(s.DaemonSet.Namespace)
	set, err := sets.Get(t.Context(), s.DaemonSet.Name, metav1.GetOptions{})
	check(t, err)
	plan := s.rollback("--dry-run").plan(t)
	step := slices.IndexFunc(plan.Status.Steps, func(step v1alpha1.RollbackStep) bool {
		return step.Action == string(rollback.ActionDelete) && strings.HasPrefix(step.Object, "DaemonSet ")
	}) + 1
	run := s.start("rollback", "-o", "json", "--yes")
	run.waitFor(fmt.Sprintf("step %d of %d done", step, len(plan.Status.Steps)))
	set.ObjectMeta = metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: set.Labels}
	again, err := sets.Create(t.Context(), set, metav1.CreateOptions{})
	check(t, err)
	run.wait().expectResult(t, 3, "failed", "Multus is back", string(again.UID))
	left := strings.Join(s.left(), " ")
	for _, name := range []string{"multus/role", "multus/binding", "multus/account", "network-attachment-definitions.k8s.cni.cncf.io"} {
		if !strings.Contains(left, name) {
			t.Errorf("%s is gone: %s are left", name, left)
		}
	}
	s.checkNoPods()
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// A rollback and a retest never run at the same time.
func TestRollbackWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "locked")
	s.node.Play(neverFinishes())
	retest := s.start("canary", "retest", "-o", "json", "-f", s.manifest)
	retest.waitFor("waits for its sandbox")
	s.rollback("--yes").expectError(t, 5, "is locked by")
	retest.signal(syscall.SIGINT)
	retest.wait()
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// The Pods of a killed run are found by their label.
func TestRollbackSweepsWhatAKilledRunLeft(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "sweep")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.DaemonSet.Namespace, Name: "vlan50-rollback-probe-dead", Labels: map[string]string{rollback.PodLabel: rollback.ProbeRole, "app.kubernetes.io/managed-by": "kubectl-vlan50"},
			Annotations: map[string]string{rollback.MarkAnnot: "canary " + s.Namespace + "/" + s.Canary},
		},
		Spec: corev1.PodSpec{NodeName: s.Node, Containers: []corev1.Container{{Name: "probe", Image: "busybox"}}},
	}
	_, err := s.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	check(t, err)
	if out := s.run("rollback", "status"); !strings.Contains(out.stdout, "vlan50-rollback-probe-dead, of a run that goes on or was killed") {
		t.Errorf("status: %s\n%s", out.stdout, out.stderr)
	}
	out := s.rollback("--yes")
	out.expectResult(t, 0, "done")
	out.said(t, "deleting the Pod "+pod.Namespace+"/vlan50-rollback-probe-dead")
	s.checkGone()
}

// The published rights are enough, and a right to change something that is
// missing stops the run with its name before anything is changed.
func TestRollbackWithThePublishedRights(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "rights")
	all := s.publishedIn("rollback.yaml")
	for i, lacking := range []right{
		{atDaemon, "", "pods", "create"},
		{atDaemon, "", "pods/log", "get"},
		{atDaemon, "apps", "daemonsets", "delete"},
		{atDaemon, "apps", "daemonsets", "get"},
		{atCanary, "k8s.cni.cncf.io", "network-attachment-definitions", "get"},
		{atCanary, "k8s.cni.cncf.io", "network-attachment-definitions", "delete"},
		{anywhere, "rbac.authorization.k8s.io", "clusterrolebindings", "delete"},
		{anywhere, "apiextensions.k8s.io", "customresourcedefinitions", "delete"},
	} {
		t.Run("without "+lacking.String(), func(t *testing.T) {
			rights := without(all, func(r right) bool { return r == lacking })
			if len(rights) != len(all)-1 {
				t.Fatalf("config/rbac/rollback.yaml does not have %s", lacking)
			}
			s.asUser(fmt.Sprintf("lacks-%d", i), rights)
			s.rollback("--yes").expectError(t, 5, "nothing was changed", lacking.String())
			s.checkUntouched()
		})
	}
	s.asUser("roller", all)
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}
