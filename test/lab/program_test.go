//go:build lab && linux

package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// programDir is where the lab's program is built; TestMain makes and removes it.
var programDir string

// built builds the lab's program, once for all tests.
var built = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	root, err := buildcache.Root(ctx)
	if err != nil {
		return "", err
	}
	// One test runs it as somebody else.
	if err := os.Chmod(programDir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(programDir, "lab")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./test/lab/cmd/lab")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the lab's program: %w\n%s", err, out)
	}
	return path, nil
})

// program is the path of the lab's program.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programCommand is the lab's program as `make` runs it.
func programCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Dir = projectFile(t)
	return cmd
}

// runProgram runs the lab's program, with more in its environment.
func runProgram(t *testing.T, environment []string, args ...string) (said string, code int) {
	t.Helper()
	cmd := programCommand(t, args...)
	cmd.Env = append(os.Environ(), environment...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// startUp runs `lab up` until it says something.
func startUp(t *testing.T, word string) *exec.Cmd {
	t.Helper()
	cmd := programCommand(t, "up")
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		fmt.Fprintln(t.Output(), lines.Text())
		if strings.Contains(lines.Text(), word) {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return cmd
		}
	}
	t.Fatalf("lab up ended (%v) before it said %q", cmd.Wait(), word)
	return nil
}
