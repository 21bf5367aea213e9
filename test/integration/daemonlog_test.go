//go:build integration

package integration

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// Where the log cannot tell, the run waits --settle after Ready and says so.
func TestSettleWhereTheLogCannotTell(t *testing.T) {
	t.Parallel()
	s := newSite(t, "settle", scriptednode.Options{})
	for _, row := range []struct {
		name   string
		level  string
		refuse func(string)
		says   string
	}{
		{"daemon of another log level", "error", func(string) {}, "log level below verbose"},
		{"kubelet refuses logs", "verbose", s.node.RefuseLogs, "cannot be read"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.refuse("kubelet says no")
			defer row.refuse("")
			check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{LogLevel: row.level}))
			out := s.retest("-f", s.manifest, "--settle", "1500ms")
			attempt := out.expect(t, 0, "pass", "ok").Status.Attempt
			if attempt.AttachReadyBy != "settle" || !strings.Contains(out.stderr, row.says) {
				t.Errorf("attach readiness by %q; stderr:\n%s", attempt.AttachReadyBy, out.stderr)
			}
			if ready := s.daemonReadySince(); attempt.AttachReadyAt.Sub(ready) < 1500*time.Millisecond {
				t.Errorf("Ready since %s, the gate opened at %s", ready, attempt.AttachReadyAt)
			}
		})
	}
}

// daemonReadySince is when the daemon Pod became Ready, as its status says.
func (s *site) daemonReadySince() time.Time {
	s.t.Helper()
	for _, condition := range s.daemonPod().Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	s.t.Fatal("the daemon is not Ready")
	return time.Time{}
}

// An open log that has said nothing yet must not be taken for one that never
// will: the daemon may have been Ready for longer than --settle.
func TestLogThatIsSlowToCome(t *testing.T) {
	t.Parallel()
	s := newSite(t, "slow-log", scriptednode.Options{})
	p := s.behindProxy()
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: never}))
	eventually(t, "the new daemon is Ready", func() bool { return len(s.node.Journal().Of(scriptednode.DaemonReady)) > 0 })
	p.on(1, logs, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		w.WriteHeader(http.StatusOK)
		check(t, http.NewResponseController(w).Flush())
		pass.ServeHTTP(&slowBody{ResponseWriter: w, wait: 300 * time.Millisecond}, r)
	})
	run := s.start("canary", "retest", "-o", "json", "-f", s.manifest, "--settle", "0s")
	run.waitFor("has not written its CNI conf")
	if text := run.stderr.String(); strings.Contains(text, "is not known") || strings.Contains(text, "does not tell") {
		t.Errorf("the gate judged the log before it was read:\n%s", text)
	}
	run.signal(syscall.SIGINT)
	run.wait().expectError(t, 130, "nothing was changed")
	p.allPlayed(t)
}

// slowBody is an answer whose head has come and whose body takes its time.
type slowBody struct {
	http.ResponseWriter
	wait time.Duration
	once sync.Once
}

func (s *slowBody) WriteHeader(int) {}

func (s *slowBody) Write(p []byte) (int, error) {
	s.once.Do(func() { time.Sleep(s.wait) })
	return s.ResponseWriter.Write(p)
}

func (s *slowBody) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// logs matches requests for a log.
func logs(a asked) bool { return strings.HasSuffix(a.url.Path, "/log") }

// A log that has grown beyond what is read is read once, not again and again.
func TestLongDaemonLogIsReadOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "long-log", scriptednode.Options{})
	p := s.behindProxy()
	line := []byte("2026-01-02T03:04:05Z [verbose] " + strings.Repeat("x", 1000) + "\n")
	p.on(-1, logs, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limitBytes"))
		if err != nil {
			t.Errorf("a log is asked for without a limit: %s", r.URL)
		}
		for sent := 0; sent < limit; sent += len(line) {
			if _, err := w.Write(line[:min(len(line), limit-sent)]); err != nil {
				return
			}
		}
	})
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{}))
	eventually(t, "the new daemon is Ready", func() bool { return len(s.node.Journal().Of(scriptednode.DaemonReady)) > 0 })
	out := s.retest("-f", s.manifest, "--timeout", "8s")
	if out.code != 4 {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	if read := p.requests(logs); len(read) != 1 {
		t.Errorf("the log was asked for %d times", len(read))
	}
}
