//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// An old canary that takes its time is waited for, and never forced: its address
// would still be held on the node.
func TestOldCanaryIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, "waited", scriptednode.Options{})
	for _, row := range []struct {
		name   string
		script scriptednode.Script
		hold   func()
		says   string
		let    func()
	}{
		{
			name:   "slow to stop",
			script: scriptednode.Script{Name: "slow", Steps: scriptednode.PassRunning().Steps, Teardown: scriptednode.Teardown{After: time.Second}},
			says:   "is stopping it",
		},
		{
			name: "finalizer", script: scriptednode.Pass(),
			hold: func() { s.finalize(true) }, says: "held by finalizer " + testFinalizer, let: func() { s.finalize(false) },
		},
		{
			name: "sandbox cannot be taken down", script: scriptednode.Stuck(scriptednode.PassRunning(), "device or resource busy"),
			says: "device or resource busy", let: s.node.Unstick,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.removeCanary()
			s.node.Play(row.script, scriptednode.Pass())
			p := s.behindProxy()
			old := s.createCanary(corev1.PodSucceeded, corev1.PodRunning)
			if row.hold != nil {
				row.hold()
			}
			run := s.start("canary", "retest", "-o", "json")
			run.waitFor(row.says)
			if now := s.pod(); row.let != nil && (now == nil || now.UID != old.UID) {
				t.Fatalf("the old canary is gone: %v", now)
			}
			if row.let != nil {
				row.let()
			}
			run.wait().expect(t, 0, "pass", "ok")
			p.checkDeletions(t)
		})
	}
}

// Out of time while the old canary ends: inconclusive, with what holds it; the
// next run takes it from there.
func TestDeadlineWhileTheOldCanaryEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script scriptednode.Script
		hold   func(*site)
		let    func(*site)
		cause  string
		says   string
	}{
		"finalizer": {
			script: scriptednode.Pass(), hold: func(s *site) { s.finalize(true) }, let: func(s *site) { s.finalize(false) },
			cause: "old-pod-terminating", says: testFinalizer,
		},
		"stuck": {
			script: scriptednode.Stuck(scriptednode.PassRunning(), "device or resource busy"),
			hold:   func(*site) {}, let: func(s *site) { s.node.Unstick() },
			cause: "teardown-blocked", says: "device or resource busy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "ends-"+name, scriptednode.Options{Plan: scriptednode.Plan{row.script, scriptednode.Pass()}})
			p := s.behindProxy()
			old := s.createCanary(corev1.PodSucceeded, corev1.PodRunning)
			row.hold(s)
			out := s.retest("--timeout", "8s")
			status := out.expect(t, 4, "inconclusive", row.cause).Status
			if !strings.Contains(status.Message, row.says) || !strings.Contains(status.Message, s.savedManifest()) {
				t.Errorf("the message does not say %q and where the manifest is: %s", row.says, status.Message)
			}
			if pod := s.pod(); pod == nil || pod.UID != old.UID || pod.DeletionTimestamp == nil {
				t.Fatalf("the old canary is not terminating: %v", pod)
			}
			s.unlocked()
			row.let(s)
			if document := s.retest().expect(t, 0, "pass", "ok"); document.UID == old.UID {
				t.Error("the old canary was judged")
			}
			p.checkDeletions(t)
		})
	}
}

// Out of time while the new canary is on its way.
func TestDeadlineWhileObserving(t *testing.T) {
	t.Parallel()
	s := newSite(t, "ends-observing", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.NeverFinishes()}})
	out := s.retest("-f", s.manifest, "--timeout", "8s")
	document := out.expect(t, 4, "inconclusive", "attempt-in-progress")
	message := document.Status.Message
	if !strings.Contains(message, "Last known state") || !strings.Contains(message, "waits for its sandbox") {
		t.Errorf("the message does not tell the last known state: %s", message)
	}
	if pod := s.pod(); pod == nil || pod.UID != document.UID {
		t.Errorf("UID %s was judged, there is %v", document.UID, pod)
	}
	s.unlocked()
}
