//go:build lab && linux

package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// twoNodes is the reference site with Multus on a second node too. The lab has
// one node again after the test.
func twoNodes(t *testing.T) (context.Context, *lab.Lab, lab.Node) {
	t.Helper()
	ctx, l := fullSite(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), scenarioWithin)
		defer cancel()
		if err := l.Part(ctx); err != nil {
			t.Errorf("the second node is not gone: %v", err)
		}
	})
	second, err := l.Join(ctx)
	must(t, err)
	site, err := l.Reference()
	must(t, err)
	site.DaemonSet.Spec.Template.Spec.NodeSelector = nil
	must(t, l.Apply(ctx, site))
	kubectl(ctx, t, l, "rollout", "status", "--namespace", lab.SystemNamespace, "daemonset/"+lab.DaemonSetName, "--timeout=3m")
	must(t, l.WaitConf(ctx))
	must(t, second.WaitConf(ctx))
	return ctx, l, second
}

// Of two nodes the second fails: the run stops there and says what stands. Once
// that node is mended, the next run finishes.
func TestRollbackOfTwoNodesStopsAtTheOneThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	t.Run("its other conf parses and yet starts no Pod", func(t *testing.T) {
		ctx, l, second := twoNodes(t)
		must(t, second.RenameNode(node.FlannelEnv, node.FlannelEnv+".gone"))
		conf, err := second.ReadNode(node.MultusConf)
		must(t, err)
		home := t.TempDir()
		u := rollBack(ctx, t, l, home, "--yes")
		checkHalfDone(ctx, t, l, u, "subnet.env", "is made as it was")
		if after, err := second.ReadNode(node.MultusConf); err != nil || after != conf {
			t.Errorf("its Multus conf is not as it was: %q, %q (%v)", conf, after, err)
		}
		noPods(ctx, t, l)
		must(t, second.RenameNode(node.FlannelEnv+".gone", node.FlannelEnv))
		checkFinishes(ctx, t, l, second, home)
	})
	t.Run("its kubelet dies in mid-run", func(t *testing.T) {
		ctx, l, second := twoNodes(t)
		home := t.TempDir()
		run := begin(ctx, t, l, home)
		run.waitFor(t, "step 2 of ")
		must(t, second.KillService(ctx, node.Kubelet))
		code := run.wait(t)
		checkHalfDone(ctx, t, l, newUndone(t, run.stdout.String(), run.said(), code), "is being deleted, and node node-2 does not say that it has ended")
		must(t, second.StartService(ctx, node.Kubelet))
		kubectl(ctx, t, l, "wait", "--for=condition=Ready", "--timeout=1m", "node/"+node.Second)
		checkFinishes(ctx, t, l, second, home)
	})
}

// checkHalfDone checks what a run says that failed on the second node, and that
// all stands but the first node's conf.
func checkHalfDone(ctx context.Context, t *testing.T, l *lab.Lab, u undone, says ...string) {
	t.Helper()
	u.expect(t, 3, "failed")
	for _, text := range append(says, "node "+node.Second) {
		if !strings.Contains(u.document.Status.Message, text) {
			t.Errorf("it does not say %q: %s", text, u.document.Status.Message)
		}
	}
	checkStoppedAt(t, u, node.Second)
	if _, err := l.ReadNode(node.MultusConf); err == nil {
		t.Error("the first node has its Multus conf still")
	}
	checkObjects(ctx, t, l)
}

// checkFinishes checks that the next run ends well on both nodes.
func checkFinishes(ctx context.Context, t *testing.T, l *lab.Lab, second lab.Node, home string) {
	t.Helper()
	rollBack(ctx, t, l, home, "--yes").expect(t, 0, "done")
	checkGone(ctx, t, l)
	if _, err := second.ReadNode(node.MultusConf); err == nil {
		t.Error("the second node has its Multus conf still")
	}
	rollBack(ctx, t, l, home).expect(t, 0, "clean")
}

// checkStoppedAt checks that every step before the node is done, that the run
// failed at the node, and that nothing after it was begun.
func checkStoppedAt(t *testing.T, u undone, name string) {
	t.Helper()
	steps, failed := u.document.Status.Steps, -1
	var story strings.Builder
	for i, step := range steps {
		fmt.Fprintf(&story, "%d %s %s%s: %s\n", step.Number, step.Action, step.Object, step.Node, step.State)
		if failed < 0 && step.State == string(rollback.StepFailed) {
			failed = i
		}
	}
	if failed < 0 || steps[failed].Node != name {
		t.Fatalf("no step on %s failed:\n%s", name, story.String())
	}
	for i, step := range steps {
		if i < failed && step.State != string(rollback.StepDone) || i > failed && step.State != string(rollback.StepPending) {
			t.Errorf("step %d is %s:\n%s", step.Number, step.State, story.String())
		}
	}
}
