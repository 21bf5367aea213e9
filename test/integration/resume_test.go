//go:build integration

package integration

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// A run that is killed between deletion and creation is finished by the next,
// which has nothing but the saved manifest.
func TestKilledAfterTheDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "resume", scriptednode.Options{})
	p := s.behindProxy()
	s.createCanary(corev1.PodSucceeded)
	_, err := s.client.CoreV1().Pods(s.Namespace).Patch(t.Context(), s.Canary, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"site:/Pod:x"},"labels":{"team":"media"}}}`), metav1.PatchOptions{})
	check(t, err)
	create := p.hold(s.creates())
	run := s.start("canary", "retest")
	create.wait(run)
	run.signal(syscall.SIGKILL)
	<-run.ended
	if pod := s.pod(); pod != nil {
		t.Fatalf("a Pod is there: %s", pod.UID)
	}

	out := s.retest()
	document := out.expect(t, 0, "pass", "ok")
	if !strings.Contains(out.stderr, "going on from the manifest saved by an earlier run") {
		t.Errorf("the run does not say what it went on from:\n%s", out.stderr)
	}
	pod := s.pod()
	if pod.UID != document.UID || pod.Labels["team"] != "media" || pod.Annotations["argocd.argoproj.io/tracking-id"] != "site:/Pod:x" {
		t.Errorf("the canary is not as it was: labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
	s.unlocked()
}

func TestKilledWhileTheOldCanaryEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, "resume-end", scriptednode.Options{Plan: scriptednode.Plan{
		scriptednode.Stuck(scriptednode.PassRunning(), "device or resource busy"), scriptednode.Pass(),
	}})
	old := s.createCanary(corev1.PodRunning)
	run := s.start("canary", "retest")
	run.waitFor("waiting for Pod")
	run.signal(syscall.SIGKILL)
	<-run.ended
	again := s.start("canary", "retest", "-o", "json")
	again.waitFor("is terminating already")
	s.node.Unstick()
	if document := again.wait().expect(t, 0, "pass", "ok"); document.UID == old.UID {
		t.Error("the old canary was judged")
	}
}

// The saved manifest is the user's alone, and is written before the deletion.
func TestManifestIsSavedBeforeTheDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "saved", scriptednode.Options{})
	p := s.behindProxy()
	s.createCanary(corev1.PodSucceeded)
	saved := ""
	run := s.start("canary", "retest", "-o", "json")
	deletion := p.hold(s.deletes())
	deletion.wait(run)
	saved = s.savedManifest()
	data, err := os.ReadFile(saved)
	check(t, err)
	deletion.letGo()
	run.wait().expect(t, 0, "pass", "ok")
	for _, unwanted := range []string{"network-status", "resourceVersion", "uid:", "nodeName", "kube-api-access", "vlan50.dev/"} {
		if strings.Contains(string(data), unwanted) {
			t.Errorf("the saved manifest has %s:\n%s", unwanted, data)
		}
	}
	info, err := os.Stat(saved)
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the saved manifest has mode %s", info.Mode())
	}
	if out, err := kubectlDryRun(s, saved); err != nil {
		t.Errorf("kubectl does not take the saved manifest: %v\n%s", err, out)
	}
}

// step is a point at which a run is interrupted.
type step struct {
	name string
	// prepare sets the stage and gives what waits until the run has come there,
	// and what clears the stage for the next run.
	prepare func(s *site, p *proxy) (reach func(*process), clear func())
	// left is what the error must say of the state.
	left string
}

func steps() []step {
	return []step{
		{"looking for the DaemonSet", holdAt(to(http.MethodGet, "")), "nothing was changed"},
		{"checking the rights", holdAt(to(http.MethodPost, "/selfsubjectaccessreviews")), "nothing was changed"},
		{"trying the manifest", holdAt(dryRuns), "nothing was changed"},
		{"scanning for the address", holdAt(scans), "nothing was changed"},
		{"taking the lock", holdAnswerAt(locks), "nothing was changed"},
		{"gate", func(s *site, _ *proxy) (func(*process), func()) {
			s.shutGate()
			return func(p *process) { p.waitFor("has not written its CNI conf") }, s.openGate
		}, "nothing was changed"},
		{"deletion on its way", func(s *site, p *proxy) (func(*process), func()) {
			h := p.holdAnswer(s.deletes())
			return h.wait, h.letGo
		}, "manifest"},
		{"old canary terminating", func(s *site, _ *proxy) (func(*process), func()) {
			s.finalize(true)
			return func(p *process) { p.waitFor("held by finalizer") }, func() { s.finalize(false) }
		}, "is terminating and is not created again"},
		{"gone, not created", func(s *site, p *proxy) (func(*process), func()) {
			h := p.hold(afterDeletion(s, scans))
			return h.wait, h.letGo
		}, "is not created again"},
		{"create on its way", func(s *site, p *proxy) (func(*process), func()) {
			h := p.holdAnswer(s.creates())
			return h.wait, h.letGo
		}, "was created and is not judged yet"},
		{"observing", func(s *site, _ *proxy) (func(*process), func()) {
			s.node.Play(scriptednode.Script{Name: "waits", Steps: []scriptednode.Step{{Do: scriptednode.Sandbox{}, After: never}}}, scriptednode.Pass())
			return func(p *process) { p.waitFor("waits for its sandbox") }, func() {}
		}, "was created and is not judged yet"},
	}
}

// holdAt interrupts a run while a request waits for its answer.
func holdAt(m match) func(*site, *proxy) (func(*process), func()) {
	return func(_ *site, p *proxy) (func(*process), func()) {
		h := p.hold(m)
		return h.wait, h.letGo
	}
}

func holdAnswerAt(m match) func(*site, *proxy) (func(*process), func()) {
	return func(_ *site, p *proxy) (func(*process), func()) {
		h := p.holdAnswer(m)
		return h.wait, h.letGo
	}
}

// locks matches the first write of the Lease, be it there already or not.
func locks(a asked) bool {
	return strings.Contains(a.url.Path, "/leases") && (a.method == http.MethodPost || a.method == http.MethodPut)
}

const testFinalizer = "example.com/held"

// finalize puts a finalizer on the canary, or takes it off again.
func (s *site) finalize(held bool) {
	s.t.Helper()
	patch := `{"metadata":{"finalizers":null}}`
	if held {
		patch = `{"metadata":{"finalizers":["` + testFinalizer + `"]}}`
	}
	_, err := s.client.CoreV1().Pods(s.Namespace).Patch(s.t.Context(), s.Canary, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		check(s.t, err)
	}
}

// Ctrl-C and SIGTERM at every step: one line that says what is left and how to
// go on, no lock left, and the same command again ends with a pass.
func TestInterruptedAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		signal syscall.Signal
		code   int
	}{"SIGINT": {syscall.SIGINT, 130}, "SIGTERM": {syscall.SIGTERM, 143}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "stop-"+strings.ToLower(name), scriptednode.Options{})
			s.createCanary(corev1.PodSucceeded)
			for _, step := range steps() {
				t.Run(step.name, func(t *testing.T) {
					s.interrupt(t, step, row.signal, row.code)
				})
			}
		})
	}
}

func (s *site) interrupt(t *testing.T, step step, signal syscall.Signal, code int) {
	t.Helper()
	p := s.behindProxy()
	reach, clear := step.prepare(s, p)
	run := s.start("canary", "retest", "-o", "json")
	reach(run)
	run.signal(signal)
	// A write that is on its way is waited for, so that its outcome is known.
	if strings.HasSuffix(step.name, "on its way") || step.name == "taking the lock" {
		run.stillRuns()
		clear()
	}
	out := run.wait()
	out.expectError(t, code, "interrupted", step.left)
	if step.left != "nothing was changed" && !strings.Contains(out.lastLine(), "run the same command again") {
		t.Errorf("the error does not say how to go on:\n%s", out.lastLine())
	}
	if strings.Contains(out.stderr, "context canceled") {
		t.Errorf("the user is told of a context:\n%s", out.stderr)
	}
	s.unlocked()
	clear()
	if pod := s.pod(); pod != nil && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
		s.taken(pod.UID)
	}
	s.node.Play(scriptednode.Pass())
	s.retest().expect(t, 0, "pass", "ok")
	s.unlocked()
}

// A second Ctrl-C leaves at once.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	s := newSite(t, "second", scriptednode.Options{})
	p := s.behindProxy()
	deletion := p.hold(s.deletes())
	s.createCanary(corev1.PodSucceeded)
	run := s.start("canary", "retest")
	deletion.wait(run)
	run.signal(syscall.SIGINT)
	run.stillRuns()
	run.signal(syscall.SIGINT)
	<-run.ended
	if status, ok := run.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("the run ended with %s, want the signal's own end", run.cmd.ProcessState)
	}
}
