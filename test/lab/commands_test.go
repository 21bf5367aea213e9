//go:build lab && linux

package lab_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// TestCommands runs what `make lab-up`, `lab-status` and `lab-shell` run, on the
// lab that is up.
func TestCommands(t *testing.T) {
	program := filepath.Join(t.TempDir(), "lab")
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = projectFile(t)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("go", "build", "-o", program, "./test/lab/cmd/lab")
	l := open(t)
	t.Cleanup(func() { scenario{}.putBack(t, l, result{}) })

	t.Run("up twice changes nothing", func(t *testing.T) {
		before := runningSince(t, l)
		said := run(program, "up")
		if want := "export KUBECONFIG=" + l.Kubeconfig(); !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
		if diff := cmp.Diff(before, runningSince(t, open(t))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("up starts what has ended, and that alone", func(t *testing.T) {
		before := runningSince(t, l)
		if err := l.KillService(t.Context(), node.Scheduler); err != nil {
			t.Fatal(err)
		}
		if said := run(program, "up"); !strings.Contains(said, "starting "+node.Scheduler+", which had ended") {
			t.Errorf("it does not say what it started:\n%s", said)
		}
		after := runningSince(t, open(t))
		if after[node.Scheduler] == before[node.Scheduler] {
			t.Error("the scheduler was not started anew")
		}
		delete(before, node.Scheduler)
		delete(after, node.Scheduler)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("status", func(t *testing.T) {
		said := run(program, "status")
		services, err := l.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range services {
			if !strings.Contains(said, service.Name) {
				t.Errorf("it does not name %s", service.Name)
			}
		}
		for _, want := range []string{"running for", filepath.Base(node.MultusConf), l.Kubeconfig(), "node/" + node.Name, "daemonset.apps/" + lab.DaemonSetName} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q", want)
			}
		}
		if t.Failed() {
			t.Log(said)
		}
	})
	t.Run("shell", func(t *testing.T) {
		said := run(program, "shell", "sh", "-c", "ip -brief link; kubectl get nodes --output name")
		for _, want := range []string{node.VLANInterface, "node/" + node.Name} {
			if !strings.Contains(said, want) {
				t.Errorf("from the shell one does not reach %s:\n%s", want, said)
			}
		}
	})
	t.Run("a shell inside the node", func(t *testing.T) {
		if said := run(program, "node", "ls", node.ConfDir); !strings.Contains(said, filepath.Base(node.MultusConf)) {
			t.Errorf("the node's conf folder holds %s", said)
		}
	})
}

// runningSince tells since when each service runs, and the lab's process.
func runningSince(t *testing.T, l *lab.Lab) map[string]any {
	t.Helper()
	services, err := l.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"lab": l.PID()}
	for _, service := range services {
		if service.Running {
			all[service.Name] = service.Since.String()
		}
	}
	return all
}
