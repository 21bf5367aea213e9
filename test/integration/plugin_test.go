//go:build integration

package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// kubectl finds the plugin on PATH, passes its exit code on, and completes it.
func TestKubectlPlugin(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	s := newSite(t, "plugin", scriptednode.Options{})
	folder := t.TempDir()
	path := filepath.Dir(plane.binary) + string(os.PathListSeparator) + folder + string(os.PathListSeparator) + os.Getenv("PATH")
	kubectl := func(args ...string) outcome {
		t.Helper()
		return s.runCommand(t, path, "kubectl", args...)
	}
	t.Run("list", func(t *testing.T) {
		if out := kubectl("plugin", "list"); !strings.Contains(out.stdout, plane.binary) {
			t.Errorf("kubectl does not list %s:\n%s%s", plane.binary, out.stdout, out.stderr)
		}
	})
	t.Run("version", func(t *testing.T) {
		out := kubectl("vlan50", "version")
		if out.code != 0 {
			t.Errorf("exit code %d: %s", out.code, out.stderr)
		}
		has(t, out.stdout, "version:", "go:", "platform:")
	})
	t.Run("version of the server", func(t *testing.T) {
		out := kubectl("vlan50", "version", "--server", "--daemonset", s.DaemonSet.String())
		has(t, out.stdout, "server:", s.Images.Multus)
	})
	t.Run("exit codes", func(t *testing.T) {
		if out := kubectl("vlan50", "canary", "retest", "-f", s.manifest); out.code != 0 || !strings.HasPrefix(out.stdout, "PASS") {
			t.Errorf("exit code %d:\n%s%s", out.code, out.stdout, out.stderr)
		}
		s.node.Play(scriptednode.GuardFailed(1, "stopped"))
		if out := kubectl("vlan50", "canary", "retest"); out.code != 3 || !strings.HasPrefix(out.stdout, "FAIL") {
			t.Errorf("exit code %d:\n%s%s", out.code, out.stdout, out.stderr)
		}
		out := kubectl("vlan50", "canary", "retest", "now")
		if out.code != 2 || !strings.Contains(out.stderr, "see 'kubectl vlan50 canary retest --help'") {
			t.Errorf("exit code %d:\n%s", out.code, out.stderr)
		}
	})
	t.Run("completion", func(t *testing.T) {
		if out := kubectl("vlan50", "completion", "kubectl", "--install", folder); out.code != 0 {
			t.Fatalf("exit code %d: %s", out.code, out.stderr)
		}
		out := s.runCommand(t, path, filepath.Join(folder, "kubectl_complete-vlan50"), "canary", "ret")
		has(t, out.stdout, "retest\t")
		if out := kubectl("__complete", "vlan50", "canary", "ret"); !strings.Contains(out.stdout, "retest") {
			t.Errorf("kubectl does not complete the plugin:\n%s%s", out.stdout, out.stderr)
		}
	})
}

// Help calls the tool by its plugin name, goes to standard output and is no error.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"canary"}, {"canary", "retest", "--help"}, {"help", "canary", "retest"}, {"completion", "--help"}, {"version", "-h"}} {
		command := exec.CommandContext(t.Context(), plane.binary, args...)
		command.Env = []string{"HOME=" + t.TempDir()}
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v %s", args, err, stderr.String())
		}
		if text := string(out); !strings.Contains(text, "kubectl vlan50") || strings.Contains(text, "kubectl-vlan50 canary") {
			t.Errorf("%v: help does not call the tool \"kubectl vlan50\":\n%s", args, text)
		}
	}
	command := exec.CommandContext(t.Context(), plane.binary, "canary", "retest", "--help")
	out, err := command.Output()
	check(t, err)
	has(t, string(out), "Exit codes:", "130", "--timeout", "--kubeconfig", "kubectl vlan50 canary retest -f canary.yaml -o json")
}

// runCommand runs any program as the user of this site, with a PATH of its own.
func (s *site) runCommand(t *testing.T, path, program string, args ...string) outcome {
	t.Helper()
	if !strings.Contains(program, "/") {
		for _, folder := range filepath.SplitList(path) {
			if _, err := os.Stat(filepath.Join(folder, program)); err == nil {
				program = filepath.Join(folder, program)
				break
			}
		}
	}
	command := s.command(args...)
	command.Path, command.Args[0] = program, program
	command.Err = nil
	command.Env = append(command.Env, "PATH="+path)
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return outcome{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}
