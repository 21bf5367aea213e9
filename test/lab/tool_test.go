//go:build lab && linux

package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/lab"
)

var binary = flag.String("binary", "", "the tool to test, instead of bin/kubectl-vlan50")

// exitCodes are those of the design, by verdict.
var exitCodes = map[string]int{"pass": 0, "fail": 3, "inconclusive": 4}

// result is what one run of the tool gave.
type result struct {
	code           int
	stdout, stderr string
	document       v1alpha1.CanaryVerdict
	// evidence is the path of what the tool saved of the attempt.
	evidence string
	took     time.Duration
}

// tool is the built binary.
func tool(t *testing.T) string {
	t.Helper()
	binary := *binary
	if binary == "" {
		binary = projectFile(t, "bin", "kubectl-vlan50")
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("the tool is not built: run \"make build\" (%v)", err)
	}
	return binary
}

// toolCommand is the tool against the lab, ready to start.
func toolCommand(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, tool(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "HOME="+home,
		"XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	return cmd
}

// runTool runs the tool against the lab, with a home of its own.
func runTool(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := toolCommand(ctx, t, l, home, args...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("running the tool: %v", err)
	}
	return out.String(), notes.String(), cmd.ProcessState.ExitCode()
}

// retest runs a retest and reads the verdict it prints.
func retest(ctx context.Context, t *testing.T, l *lab.Lab, args ...string) result {
	t.Helper()
	return retestFrom(ctx, t, l, t.TempDir(), args...)
}

// retestFrom is retest for one who has used the tool before, with this home.
func retestFrom(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) result {
	t.Helper()
	var r result
	start := time.Now()
	r.stdout, r.stderr, r.code = runTool(ctx, t, l, home, append([]string{"canary", "retest", "--output", "json"}, args...)...)
	r.took, r.evidence = time.Since(start), savedEvidence(t, home)
	if r.stdout != "" {
		if err := json.Unmarshal([]byte(r.stdout), &r.document); err != nil {
			t.Fatalf("the tool did not print one JSON document: %v\n%s", err, r.stdout)
		}
	}
	return r
}

// savedEvidence finds the evidence file in the tool's history.
func savedEvidence(t *testing.T, home string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("\nkind: Evidence\n")) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// expect checks a verdict: the document's, and the exit code that goes with it.
func (r result) expect(t *testing.T, verdict, cause string) {
	t.Helper()
	if r.document.Status.Verdict != verdict || r.document.Status.Cause != cause {
		t.Errorf("verdict %s/%s, want %s/%s: %s", r.document.Status.Verdict, r.document.Status.Cause, verdict, cause, r.document.Status.Message)
	}
	if r.code != exitCodes[verdict] {
		t.Errorf("exit code %d, want %d", r.code, exitCodes[verdict])
	}
}

// mentions reports whether a line of the verdict's evidence holds the text.
func (r result) mentions(text string) bool {
	for _, line := range r.document.Status.Evidence {
		if strings.Contains(line.Text, text) {
			return true
		}
	}
	return false
}

// explain prints, for a test that failed, what the tool said and saw and what
// the cluster says.
func (r result) explain(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	t.Logf("the tool's stderr:\n%s\nits stdout:\n%s", r.stderr, r.stdout)
	if r.evidence != "" {
		data, err := os.ReadFile(r.evidence)
		t.Logf("the evidence it saved (%v):\n%s", err, data)
	}
	for _, args := range [][]string{
		{"get", "nodes,daemonsets,pods", "--all-namespaces", "--output", "wide"},
		{"get", "events", "--namespace", lab.Namespace, "--sort-by", ".metadata.creationTimestamp"},
		{"logs", "--namespace", lab.Namespace, lab.CanaryName, "--all-containers"},
		{"logs", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--container", "kube-multus", "--tail", "100"},
		{"logs", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--container", "kube-multus", "--tail", "100", "--previous"},
	} {
		out, err := l.Kubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}
