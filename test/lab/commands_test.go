//go:build lab && linux

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// TestCommands runs what `make lab-up`, `lab-status` and `lab-shell` run, on the
// lab that is up.
func TestCommands(t *testing.T) {
	run := func(args ...string) string {
		said, code := runProgram(t, nil, args...)
		if code != 0 {
			t.Fatalf("lab %s: exit code %d\n%s", strings.Join(args, " "), code, said)
		}
		return said
	}
	l := open(t)
	t.Cleanup(func() { scenario{}.putBack(t, l, result{}) })

	t.Run("up twice changes nothing", func(t *testing.T) {
		before := runningSince(t, l)
		said := run("up")
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
		if said := run("up"); !strings.Contains(said, "starting "+node.Scheduler+", which had ended") {
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
		said := run("status")
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
		tool(t)
		t.Setenv("NO_PROXY", "example.test")
		t.Setenv("no_proxy", "")
		said := run("shell", "sh", "-c", "ip -brief link; kubectl get nodes --output name; kubectl vlan50 version; echo $NO_PROXY $no_proxy")
		unproxied := "example.test," + node.Network
		for _, want := range []string{node.VLANInterface, "node/" + node.Name, "platform:", unproxied + " " + unproxied} {
			if !strings.Contains(said, want) {
				t.Errorf("from the shell one does not reach %s:\n%s", want, said)
			}
		}
	})
	t.Run("down from a shell", func(t *testing.T) {
		before := runningSince(t, l)
		said, code := runProgram(t, nil, "shell", program(t), "down")
		if want := "lab: this is a shell of the lab: leave it first (exit), then run make lab-down\n"; said != want || code != 1 {
			t.Errorf("exit code %d: %s", code, said)
		}
		if diff := cmp.Diff(before, runningSince(t, open(t))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("another cache folder", func(t *testing.T) { inAnotherCache(t, l) })
	t.Run("a user who is not root", func(t *testing.T) {
		for _, command := range []string{"up", "down", "status"} {
			cmd := programCommand(t, command)
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			said, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(string(said), "\n") != 1 || !strings.Contains(string(said), "root") {
				t.Errorf("%s: exit code %d: %s", command, code, said)
			}
		}
	})
	t.Run("a shell inside the node", func(t *testing.T) {
		if said := run("node", "ls", node.ConfDir); !strings.Contains(said, filepath.Base(node.MultusConf)) {
			t.Errorf("the node's conf folder holds %s", said)
		}
	})
}

// inAnotherCache checks that from another cache folder the lab can be built, and
// that the one that runs is left alone.
func inAnotherCache(t *testing.T, l *lab.Lab) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	builds, err := buildcache.Dir()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := []string{"XDG_CACHE_HOME=" + t.TempDir(), "VLAN50_BUILD_CACHE=" + builds}
	before := runningSince(t, l)
	if said, code := runProgram(t, elsewhere, "build"); code != 0 {
		t.Errorf("build: exit code %d: %s", code, said)
	}
	want := fmt.Sprintf("lab: a lab runs with another cache folder (process %d): end it first with XDG_CACHE_HOME=%s make lab-down\n", l.PID(), cache)
	for _, command := range []string{"up", "down", "status"} {
		if said, code := runProgram(t, elsewhere, command); said != want || code != 1 {
			t.Errorf("%s: exit code %d: %s", command, code, said)
		}
	}
	if diff := cmp.Diff(before, runningSince(t, open(t))); diff != "" {
		t.Error(diff)
	}
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
