//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
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
