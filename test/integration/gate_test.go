//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// never is a wait that no test sees the end of.
const never = time.Hour

// Right after a DaemonSet restart, whatever the time between Ready and the conf,
// no canary is made before the conf is there: 20 of 20.
func TestNoCanaryBeforeTheConf(t *testing.T) {
	t.Parallel()
	windows := [][]time.Duration{ // in milliseconds; each row is one site
		{5000},
		{4750, 0, 25},
		{4250, 500, 50, 100},
		{3500, 1250, 150, 200},
		{2750, 1500, 750, 250},
		{2250, 1750, 1000, 400},
	}
	runs := 0
	for i, row := range windows {
		runs += len(row)
		t.Run(fmt.Sprintf("site %d", i+1), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, fmt.Sprintf("window-%d", i+1), scriptednode.Options{})
			s.createCanary(corev1.PodSucceeded)
			for _, window := range row {
				s.retestAfterRestart(window * time.Millisecond)
			}
		})
	}
	if runs != 20 {
		t.Errorf("%d runs, want 20", runs)
	}
}

func (s *site) retestAfterRestart(window time.Duration) {
	s.t.Helper()
	began := time.Now()
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{ConfAfterReady: window}))
	document := s.retest().expect(s.t, 0, "pass", "ok")
	if slices.Contains(s.plain(), document.UID) {
		s.t.Errorf("window %s: the judged sandbox was made before the conf was written", window)
	}
	attempt := document.Status.Attempt
	if attempt.AttachReadyBy != "log" {
		s.t.Errorf("window %s: attach readiness was known by %q, want the daemon's log", window, attempt.AttachReadyBy)
	}
	written := s.node.Journal().Since(began).Of(scriptednode.ConfWritten)
	if len(written) != 1 || attempt.DeletedAt.Time.Before(written[0].At) {
		s.t.Errorf("window %s: the old canary was deleted at %v, the conf written at %v", window, attempt.DeletedAt, written)
	}
}

// The daemon may go away while the old canary takes its time to end: the gate is
// passed again before the new one is created.
func TestDaemonRestartsWhileTheOldCanaryEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, "second-gate", scriptednode.Options{Plan: scriptednode.Plan{
		scriptednode.Stuck(scriptednode.PassRunning(), "device or resource busy"), scriptednode.Pass(),
	}})
	s.createCanary(corev1.PodRunning)
	run := s.start("canary", "retest", "-o", "json")
	run.waitFor("waiting for Pod")
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: time.Second}))
	eventually(t, "the new daemon is ready and has not written its conf", func() bool {
		return !s.node.ConfPresent() && len(s.node.Journal().Of(scriptednode.DaemonReady)) > 0
	})
	s.node.Unstick()
	document := run.wait().expect(t, 0, "pass", "ok")
	if slices.Contains(s.plain(), document.UID) {
		t.Error("the canary was made while the conf was absent")
	}
}

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

// What waiting cannot mend is told at once, and the canary that is there stays.
func TestGateNamesWhatBlocksIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*scriptednode.Site)
		act    func(*site) error
		old    []corev1.PodPhase // phases of the canary that is there; none: any
		args   []string
		code   int // 0 stands for 4
		cause  string
		says   string
	}{
		"on-delete": {
			change: func(s *scriptednode.Site) { s.UpdateStrategy = appsv1.OnDeleteDaemonSetStrategyType },
			act:    func(s *site) error { return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{}) },
			cause:  "rollout-ondelete", says: "OnDelete",
		},
		"zero-desired": {
			change: func(s *scriptednode.Site) { s.NodeSelector = map[string]string{"no": "such-label"} },
			old:    []corev1.PodPhase{}, // no daemon, so that it never gets on
			cause:  "rollout-zero-desired", says: "no=such-label",
		},
		"crash-loop": {
			act: func(s *site) error {
				return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{Fault: scriptednode.DaemonCrashes})
			},
			cause: "rollout-stuck", says: "crash-loops",
		},
		"oom": {
			act: func(s *site) error {
				return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{Fault: scriptednode.DaemonOOMKilled})
			},
			code: 3, cause: "daemon-oom", says: "OOMKilled",
		},
		"installer": {
			act: func(s *site) error {
				return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{Fault: scriptednode.InstallerFails})
			},
			cause: "multus-install-failed", says: "install-multus-binary",
		},
		"node-not-ready": {
			act:  func(s *site) error { return s.node.SetReady(s.t.Context(), false) },
			args: []string{"--timeout", "8s"}, cause: "rollout-blocked-node-notready", says: "NotReady",
		},
		"never-ready": {
			act: func(s *site) error {
				return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{Fault: scriptednode.DaemonUnready})
			},
			args: []string{"--timeout", "8s"}, cause: "rollout-in-progress", says: "not Ready",
		},
		"conf-never-written": {
			act: func(s *site) error {
				return s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{ConfAfterReady: never})
			},
			args: []string{"--timeout", "8s"}, cause: "rollout-in-progress", says: "has not written its CNI conf",
		},
		"no-such-node": {
			act: func(s *site) error {
				s.manifest = s.file("canary.yaml", strings.ReplaceAll(string(s.CanaryManifest()), "hostname: "+s.Node, "hostname: nowhere"))
				return nil
			},
			cause: "unscheduled", says: "kubernetes.io/hostname=nowhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes []func(*scriptednode.Site)
			if row.change != nil {
				changes = append(changes, row.change)
			}
			s := newSite(t, "blocked-"+name, scriptednode.Options{}, changes...)
			phases := row.old
			if phases == nil {
				phases = []corev1.PodPhase{corev1.PodSucceeded}
			}
			old := s.createCanary(phases...)
			if row.act != nil {
				check(t, row.act(s))
			}
			out := s.retest(append([]string{"-f", s.manifest}, row.args...)...)
			code, word := 4, "inconclusive"
			if row.code != 0 {
				code, word = row.code, "fail"
			}
			status := out.expect(t, code, word, row.cause).Status
			if !strings.Contains(status.Message, row.says) || !strings.Contains(status.Message, "othing was changed") {
				t.Errorf("the message does not say %q and that nothing was changed: %s", row.says, status.Message)
			}
			if len(status.Evidence) == 0 {
				t.Error("a verdict without evidence")
			}
			if document := out.verdict(t); document.UID != "" {
				t.Errorf("UID %s was judged, and none was created", document.UID)
			}
			s.untouched(old)
			s.unlocked()
		})
	}
}

// A daemon that comes back by itself is waited for.
func TestGateWaitsForWhatPasses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "passing", scriptednode.Options{})
	for _, row := range []struct {
		name string
		hold func()
		says string
		let  func()
	}{
		{
			"node NotReady", func() { check(t, s.node.SetReady(t.Context(), false)) }, "NotReady",
			func() { check(t, s.node.SetReady(t.Context(), true)) },
		},
		{"daemon killed", func() { s.node.HoldDaemon() }, "not Ready", s.node.ReleaseDaemon},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.hold()
			run := s.start("canary", "retest", "-o", "json", "-f", s.manifest)
			run.waitFor(row.says)
			row.let()
			run.wait().expect(t, 0, "pass", "ok")
		})
	}
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
	s := newSite(t, "long-log", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.NeverFinishes()}})
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
	out := s.retest("-f", s.manifest, "--timeout", "5s")
	if out.code != 4 {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	if read := p.requests(logs); len(read) != 1 {
		t.Errorf("the log was asked for %d times", len(read))
	}
}
