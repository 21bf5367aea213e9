//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

// outcome is what one run of the binary gave.
type outcome struct {
	code           int
	stdout, stderr string
}

// verdict reads the document of -o json.
func (o outcome) verdict(t *testing.T) v1alpha1.CanaryVerdict {
	t.Helper()
	var document v1alpha1.CanaryVerdict
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	if err := decoder.Decode(&document); err != nil {
		t.Fatalf("no verdict on standard output: %v\nexit code %d\nstdout: %s\nstderr: %s", err, o.code, o.stdout, o.stderr)
	}
	if decoder.More() {
		t.Errorf("more than one document on standard output: %s", o.stdout)
	}
	return document
}

// process is a run of the binary that has not ended.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	ended          chan struct{}
}

// command is the binary as a user of this site would run it.
func (s *site) command(args ...string) *exec.Cmd {
	command := exec.CommandContext(context.WithoutCancel(s.t.Context()), plane.binary, args...)
	command.Env = append(os.Environ(),
		"KUBECONFIG="+s.kubeconfig, "VLAN50_STATE_DIR="+s.state,
		"VLAN50_CANARY="+s.Namespace+"/"+s.Canary, "VLAN50_DAEMONSET="+s.DaemonSet.String())
	command.Env = append(command.Env, s.env...)
	return command
}

// start runs the binary in the background.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, ended: make(chan struct{})}
	p.cmd = s.command(args...)
	p.cmd.Stdin = strings.NewReader(s.stdin)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	check(s.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// wait gives the outcome of a run that must end.
func (p *process) wait() outcome {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * within):
		p.t.Fatalf("the run did not end:\n%s", p.stderr.String())
	}
	return outcome{code: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String()}
}

// waitFor waits until the run has told something on standard error.
func (p *process) waitFor(text string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the run has said:\n%s", p.stderr.String())
		}
	}()
	eventually(p.t, "the run says "+text, func() bool {
		if strings.Contains(p.stderr.String(), text) {
			return true
		}
		select {
		case <-p.ended:
			p.t.Fatalf("the run ended without having said %q", text)
		default:
		}
		return false
	})
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	check(p.t, p.cmd.Process.Signal(sig))
}

// stillRuns checks that a run does not end by itself: the signal was heard (the
// default would have killed it at once) and it waits for something.
func (p *process) stillRuns() {
	p.t.Helper()
	select {
	case <-p.ended:
		p.t.Errorf("the run did not wait for its write:\n%s", p.stderr.String())
	case <-time.After(200 * time.Millisecond):
	}
}

// retest runs `canary retest -o json` with further arguments to its end.
func (s *site) retest(args ...string) outcome {
	s.t.Helper()
	return s.run(append([]string{"canary", "retest", "-o", "json"}, args...)...)
}

func (s *site) run(args ...string) outcome {
	s.t.Helper()
	return s.start(args...).wait()
}

// expect checks verdict, cause and exit code of an outcome.
func (o outcome) expect(t *testing.T, code int, verdict, cause string) v1alpha1.CanaryVerdict {
	t.Helper()
	document := o.verdict(t)
	status := document.Status
	if o.code != code || status.Verdict != verdict || status.Cause != cause {
		t.Errorf("got exit code %d, verdict %s, cause %s; want %d, %s, %s\nmessage: %s\nstderr:\n%s",
			o.code, status.Verdict, status.Cause, code, verdict, cause, status.Message, o.stderr)
	}
	if status.Message == "" || status.Next == "" {
		t.Errorf("a verdict must say why and what to do next: %+v", status)
	}
	return document
}

// expectError checks a run that judged nothing: one line, no stack, no result.
func (o outcome) expectError(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.stdout != "" {
		t.Errorf("standard output is for results alone, got: %s", o.stdout)
	}
	o.expectLastWord(t, code, texts...)
}

// expectLastWord is expectError for a run that has a result as well.
func (o outcome) expectLastWord(t *testing.T, code int, texts ...string) {
	t.Helper()
	line := o.lastLine()
	if o.code != code {
		t.Errorf("got exit code %d, want %d\nstderr:\n%s", o.code, code, o.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(line, text) {
			t.Errorf("the error does not say %q:\n%s", text, o.stderr)
		}
	}
	if !strings.HasPrefix(line, "error: ") || strings.Count("\n"+o.stderr, "\nerror: ") != 1 || strings.Contains(o.stderr, "goroutine ") {
		t.Errorf("want exactly one line that begins with \"error: \":\n%s", o.stderr)
	}
}

func (o outcome) lastLine() string {
	lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
	return lines[len(lines)-1]
}

// lockedBuffer is written by a process and read by the test.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
