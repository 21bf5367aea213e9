//go:build lab && linux

package lab_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// By hand: the lines that are printed do on the node what a node Pod does, and
// so do those that put the conf back.
func TestRollbackByHandOnANode(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	ctx, l := fullSite(t)
	conf, err := l.ReadNode(node.MultusConf)
	must(t, err)
	home := t.TempDir()
	byHand(ctx, t, l, home).expect(t, 0, "done")
	checkGone(ctx, t, l)
	if kept := backups(ctx, t, l); len(kept) != 1 {
		t.Errorf("backups: %v", kept)
	}
	byHand(ctx, t, l, home, "--undo").expect(t, 0, "done")
	after, err := l.ReadNode(node.MultusConf)
	if err != nil || after != conf {
		t.Errorf("not byte for byte: %q, %q (%v)", conf, after, err)
	}
}

// byHand runs a rollback, and on the node what it asks for.
func byHand(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) undone {
	t.Helper()
	run := begin(ctx, t, l, home, append(args, "--node-access=manual")...)
	run.waitFor(t, "\n)")
	_, lines, _ := strings.Cut(run.said(), "\n# On node "+node.Name)
	script, _, _ := strings.Cut("#"+lines, "\n)")
	// A node without python3 asks its operator.
	out, err := l.NodeCommand(ctx, "env", "USABLE=10-flannel.conflist", "sh", "-c", script+"\n)").CombinedOutput()
	if err != nil {
		t.Fatalf("the lines fail on the node: %v\n%s\n%s", err, script, out)
	}
	_, err = io.WriteString(run.stdin, "y\n")
	must(t, err)
	code := run.wait(t)
	return newUndone(t, run.stdout.String(), run.said(), code)
}

// What is left, in each state that a site can be in.
func TestRollbackStatusOnANode(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	type look struct {
		Clean   bool
		Node    string
		Objects bool
		Backups int
		Message string
	}
	const left = "Multus is still there, or part of it"
	rolledBack := func(ctx context.Context, t *testing.T, l *lab.Lab) {
		t.Helper()
		rollBack(ctx, t, l, t.TempDir(), "--yes").expect(t, 0, "done")
	}
	for name, row := range map[string]struct {
		arrange func(context.Context, *testing.T, *lab.Lab)
		args    []string
		want    look
	}{
		"Multus serves":                 {nil, nil, look{Node: "multus", Objects: true, Message: left}},
		"a conf without a daemon":       {leaveConfAlone, nil, look{Node: "broken", Objects: true, Message: "no daemon serves it: no ordinary Pod can start on node-1"}},
		"nobody may look":               {nil, []string{"--node-access=manual"}, look{Node: "unknown", Objects: true, Message: left}},
		"rolled back":                   {rolledBack, nil, look{Clean: true, Node: "clean", Backups: 1, Message: "Multus is gone, and every node is clean"}},
		"rolled back but not looked at": {rolledBack, []string{"--node-access=manual"}, look{Node: "unknown", Message: "not every node could be seen to be clean"}},
		"rolled back beside others": {func(ctx context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			addForeignNetwork(ctx, t, l)
			rolledBack(ctx, t, l)
		}, nil, look{Clean: true, Node: "clean", Objects: true, Backups: 1, Message: "what others use stays"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, l := fullSite(t)
			if row.arrange != nil {
				row.arrange(ctx, t, l)
			}
			home := t.TempDir()
			stdout, stderr, code := runTool(ctx, t, l, home, append([]string{"rollback", "status", "--output", "json"}, withImage(ctx, t, l, home, row.args)...)...)
			var document v1alpha1.RollbackStatus
			if err := json.Unmarshal([]byte(stdout), &document); err != nil || code != 0 || len(document.Status.Nodes) != 1 {
				t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
			}
			status := document.Status
			got := look{status.Clean, status.Nodes[0].State, len(status.Objects) > 0, len(status.Nodes[0].Backups), status.Message}
			if strings.Contains(got.Message, row.want.Message) {
				got.Message = row.want.Message
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, stdout)
			}
			noPods(ctx, t, l)
		})
	}
}
