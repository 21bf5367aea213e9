//go:build integration

package integration

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// answer runs the binary on a terminal and types text once it asks.
func (s *rollbackSite) answer(text string, args ...string) outcome {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), plane.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "VLAN50_STATE_DIR="+s.state, "TERM=dumb",
		"VLAN50_CANARY="+s.Namespace+"/"+s.Canary, "VLAN50_DAEMONSET="+s.DaemonSet.String())
	var stdout strings.Builder
	cmd.Stdout = &stdout
	terminal, err := pty.Start(cmd)
	check(s.t, err)
	defer terminal.Close()
	var shown lockedBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&shown, terminal) // ends with the terminal
	}()
	eventually(s.t, "it asks", func() bool { return strings.Contains(shown.String(), "(y/N)") })
	_, err = terminal.WriteString(text)
	check(s.t, err)
	_ = cmd.Wait()
	_ = terminal.Close()
	<-done
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: shown.String()}
}

func TestRollbackAsks(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "asks")
	for name, text := range map[string]string{"no": "n\n", "nothing": "\n", "end of input": "\x04", "another word": "maybe\n"} {
		t.Run(name, func(t *testing.T) {
			out := s.answer(text, "rollback")
			if out.code != 5 || !strings.Contains(out.stderr, "declined") {
				t.Errorf("exit code %d\n%s", out.code, out.stderr)
			}
			out.said(t, "This takes away", "the Multus conf on node "+s.Node, "DaemonSet "+s.DaemonSet.String())
			s.checkUntouched()
		})
	}
	t.Run("yes", func(t *testing.T) {
		if out := s.answer("y\n", "rollback"); out.code != 0 || !strings.Contains(out.stdout, "DONE") {
			t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
		}
		s.checkGone()
	})
}

// By hand: no Pod is put on the node but the probe, and the operator's word is
// checked by what the probe sees.
func TestRollbackByHand(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "byhand")
	byHand := func(input string) outcome {
		cmd := exec.CommandContext(t.Context(), plane.binary, "rollback", "--yes", "--node-access=manual", "-o", "json")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "VLAN50_STATE_DIR="+s.state,
			"VLAN50_CANARY="+s.Namespace+"/"+s.Canary, "VLAN50_DAEMONSET="+s.DaemonSet.String())
		var stdout, stderr strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
		_ = cmd.Run()
		return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	}
	t.Run("end of input is no", func(t *testing.T) {
		out := byHand("")
		if out.code != 5 {
			t.Errorf("exit code %d\n%s", out.code, out.stderr)
		}
		out.said(t, "(cd '"+s.ConfDir+"'", "rm \"$conf\"", "was not confirmed")
		s.checkUntouched()
	})
	t.Run("without an image for the probes no line is shown", func(t *testing.T) {
		image := s.Images.Multus
		s.files.refuse(image, true)
		out := byHand("y\ny\ny\n")
		s.files.refuse(image, false)
		out.expectError(t, 5, "nothing was changed", image, "--node-image")
		if strings.Contains(out.stderr, "rm \"$conf\"") {
			t.Errorf("lines were shown:\n%s", out.stderr)
		}
		s.checkUntouched()
	})
	t.Run("the operator's word is not taken for it", func(t *testing.T) {
		out := byHand("y\ny\ny\n")
		out.expectResult(t, 3, "failed", "Multus still makes the sandboxes")
		s.checkUntouched()
	})
	t.Run("done", func(t *testing.T) {
		s.node.RemoveConf()
		byHand("y\n").expectResult(t, 0, "done")
		if left := s.left(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if len(s.files.jobs) > 0 {
			t.Errorf("%d Pods were put on the node", len(s.files.jobs))
		}
	})
}
