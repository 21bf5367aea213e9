//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// says waits until a run has printed something on standard output.
func (p *process) says(text string) {
	p.t.Helper()
	eventually(p.t, "the run prints "+text, func() bool { return strings.Contains(p.stdout.String(), text) })
}

func TestStatusWatchEndsWhenReady(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "ready", scriptednode.Options{})
	s.node.SetDaemon(scriptednode.Daemon{ConfAfterReady: 3 * crashPause / 2})
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: 3 * crashPause / 2}))
	watch := s.start("status", "--watch", "--until", "ready", "--timeout", "2m")
	watch.says("has not written its CNI conf yet")
	if s.node.ConfPresent() {
		t.Fatal("the conf was there too soon for this test")
	}
	out := watch.wait()
	if out.code != 0 || !s.node.ConfPresent() {
		t.Errorf("exit code %d, conf present %v\n%s%s", out.code, s.node.ConfPresent(), out.stdout, out.stderr)
	}
	if strings.ContainsAny(out.stdout+out.stderr, "\x1b\r") {
		t.Errorf("control codes without a terminal: %q", out.stdout)
	}
}

// TestStatusWatchFollowsACanary: from nothing to a fresh pass, in lines, without
// being asked again.
func TestStatusWatchFollowsACanary(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "follow", scriptednode.Options{})
	watch := s.start("status", "--until", "fresh-pass", "--timeout", "2m")
	watch.says("NO-CANARY: there is no canary")
	statusPassed(s)
	out := watch.wait()
	if out.code != 0 || !strings.Contains(out.stdout, "FRESH-PASS: canary "+s.Namespace+"/"+s.Canary+" passed") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(out.stdout) {
		text := line[len("15:04:05  "):]
		if strings.HasPrefix(text, "state") && seen[text] {
			t.Errorf("said twice: %s", line)
		}
		seen[text] = true
	}
}

// TestStatusWatchSeesEachKindOfChange: every change leads to a new state by a
// watch, whichever object it is on.
func TestStatusWatchSeesEachKindOfChange(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*statusSite)
		says   string
	}{
		"network":   {(*statusSite).editNetwork, "STALE: NetworkAttachmentDefinition"},
		"guard":     {(*statusSite).touchGuard, "STALE: ConfigMap egress-guard changed"},
		"daemonset": {(*statusSite).selectNoNode, "wants no Pod on any node"},
		"rival":     {(*statusSite).rival, "CONFLICT: another Pod claims an address"},
		"deletion":  {(*statusSite).remove, "NO-CANARY: there is no canary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStatusSite(t, "see-"+name, scriptednode.Options{
				Plan: scriptednode.Plan{scriptednode.PassRunning()},
				Pods: func(*corev1.Pod) scriptednode.Script { return scriptednode.Unscheduled() },
			})
			statusPassed(s)
			watch := s.start("status", "--watch")
			watch.says("FRESH-PASS")
			row.change(s)
			watch.says(row.says)
			watch.signal(syscall.SIGINT)
			if out := watch.wait(); out.code != 130 || strings.Contains(out.stderr, "error") {
				t.Errorf("Ctrl-C ends a watch with 130 and without a word, got %d %q", out.code, out.stderr)
			}
		})
	}
}

func (s *statusSite) touchGuard() {
	s.t.Helper()
	guard, err := s.client.CoreV1().ConfigMaps(s.Namespace).Get(s.t.Context(), s.Guard, metav1.GetOptions{})
	check(s.t, err)
	guard.Data["guard.sh"] += "# edited\n"
	_, err = s.client.CoreV1().ConfigMaps(s.Namespace).Update(s.t.Context(), guard, metav1.UpdateOptions{})
	check(s.t, err)
}

func (s *statusSite) remove() {
	s.t.Helper()
	check(s.t, s.client.CoreV1().Pods(s.Namespace).Delete(s.t.Context(), s.Canary, metav1.DeleteOptions{}))
}

func TestStatusWatchOutOfTime(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "late", scriptednode.Options{})
	out := s.run("status", "--until", "fresh-pass", "--timeout", "2s")
	if out.code != 4 || !strings.Contains(out.stderr, "fresh-pass was not reached within 2s; last known state: no-canary") {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
}

// TestStatusWatchWithoutNews: a server that has gone away makes the state on the
// screen an old one, says so, and ends in an error, not in the old state's code.
func TestStatusWatchWithoutNews(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), filepath.Join(t.TempDir(), "server"), io.Discard)
	check(t, err)
	t.Cleanup(server.Stop)
	config, err := server.Config()
	check(t, err)
	check(t, scriptednode.InstallCRD(t.Context(), config))
	s := &statusSite{siteOn(t, server, "no-news", scriptednode.Options{})}
	statusPassed(s)
	t.Run("on a terminal", func(t *testing.T) {
		screen, code := s.onTerminal([]string{"NO_COLOR=1"}, func(shown func(string), _ *os.File) {
			shown("PROVEN")
			server.Kill()
			shown("NO NEWS since")
		}, "status", "--watch", "--timeout", "25s")
		_, left, _ := strings.Cut(screen, "\x1b[?1049l")
		if code != 1 || !strings.HasPrefix(strings.TrimSpace(left), "NO NEWS since") {
			t.Errorf("exit code %d, left behind: %q", code, left)
		}
	})
	t.Run("until it is back", func(t *testing.T) {
		check(t, server.Restart(t.Context()))
		watch := s.start("status", "--watch", "-o", "name", "--timeout", "1m")
		watch.says("sitestatus")
		server.Kill()
		watch.waitFor("no news: ")
		check(t, server.Restart(t.Context()))
		before := strings.Count(watch.stdout.String(), "\n")
		s.editNetwork()
		eventually(t, "the new state is told", func() bool { return strings.Count(watch.stdout.String(), "\n") > before })
		watch.signal(syscall.SIGINT)
		if out := watch.wait(); out.code != 130 {
			t.Errorf("exit code %d", out.code)
		}
	})
}

// TestStatusWatchAsJSON: one document for each state, and none for a state that
// is the same.
func TestStatusWatchAsJSON(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "json", scriptednode.Options{})
	watch := s.start("status", "--until", "fresh-pass", "--timeout", "2m", "-o", "json")
	watch.says(`"no-canary"`)
	statusPassed(s)
	out := watch.wait()
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	var last v1alpha1.SiteStatus
	var before []byte
	decoder := json.NewDecoder(strings.NewReader(out.stdout))
	for decoder.More() {
		last = v1alpha1.SiteStatus{}
		check(t, decoder.Decode(&last))
		compared := last
		compared.Status.CollectedAt = metav1.MicroTime{}
		text, err := json.Marshal(compared)
		check(t, err)
		if bytes.Equal(text, before) {
			t.Errorf("the same state twice: %s", text)
		}
		before = text
	}
	if last.Status.State != v1alpha1.StateFreshPass {
		t.Errorf("the last document says %s", last.Status.State)
	}
}

// TestStatusWatchOnATerminal: redrawn in place, and the terminal is given back,
// whether the watch ends by itself or by Ctrl-C.
func TestStatusWatchOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "tty", scriptednode.Options{})
	for name, end := range map[string]struct {
		args []string
		do   func(*os.Process)
		code int
	}{
		"reached": {[]string{"status", "--until", "fresh-pass"}, func(*os.Process) { statusPassed(s) }, 0},
		"Ctrl-C":  {[]string{"status", "--watch"}, func(p *os.Process) { check(t, p.Signal(os.Interrupt)) }, 130},
	} {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), plane.binary, end.args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "TERM=xterm", "NO_COLOR=1",
			"VLAN50_CANARY="+s.Namespace+"/"+s.Canary, "VLAN50_DAEMONSET="+s.DaemonSet.String())
		terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 50, Cols: 100})
		check(t, err)
		var screen lockedBuffer
		copied := make(chan struct{})
		go func() {
			_, _ = io.Copy(&screen, terminal)
			close(copied)
		}()
		eventually(t, "the screen is drawn", func() bool { return strings.Contains(screen.String(), "Does it still speak?") })
		end.do(command.Process)
		_ = command.Wait()
		<-copied
		_ = terminal.Close()
		if code := command.ProcessState.ExitCode(); code != end.code {
			t.Errorf("%s: exit code %d, want %d", name, code, end.code)
		}
		checkTerminal(t, name, screen.String())
	}
}

// checkTerminal: the alternate screen and the hidden cursor are undone, in that
// order, and the last state stays behind on the ordinary screen.
func checkTerminal(t *testing.T, name, output string) {
	t.Helper()
	for _, pair := range [][2]string{{"\x1b[?1049h", "\x1b[?1049l"}, {"\x1b[?25l", "\x1b[?25h"}} {
		if strings.Count(output, pair[0]) != 1 || strings.Count(output, pair[1]) != 1 || strings.Index(output, pair[0]) > strings.Index(output, pair[1]) {
			t.Errorf("%s: %q is not undone by %q", name, pair[0], pair[1])
		}
	}
	_, after, _ := strings.Cut(output, "\x1b[?1049l")
	if !strings.Contains(after, "Does it still speak?") {
		t.Errorf("%s: the last state is not left behind: %q", name, after)
	}
	if regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(output) {
		t.Errorf("%s: colours despite NO_COLOR", name)
	}
}
