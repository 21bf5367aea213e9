//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// rival is another client that makes a Pod of the canary's name.
const rival = "somebody-else"

// replace deletes the canary by force and creates a namesake, as another client
// would. The node has taken the old Pod down by then: what a rival does to the
// address is not the tool's doing, and not what is tested here.
func (s *site) replace() *corev1.Pod {
	s.t.Helper()
	old := s.pod()
	err := s.client.CoreV1().Pods(s.Namespace).Delete(s.t.Context(), s.Canary, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if !apierrors.IsNotFound(err) {
		check(s.t, err)
	}
	eventually(s.t, "the node has taken the old Pod down", func() bool { return old == nil || !s.up(old.UID) })
	return s.createRival()
}

// up reports whether the node has a Pod up.
func (s *site) up(uid types.UID) bool {
	up := false
	for _, entry := range s.node.Journal() {
		if entry.UID == uid && (entry.Kind == scriptednode.PodAlive || entry.Kind == scriptednode.PodDown) {
			up = entry.Kind == scriptednode.PodAlive
		}
	}
	return up
}

// createRival creates a namesake of the canary.
func (s *site) createRival() *corev1.Pod {
	s.t.Helper()
	pod, err := s.CanaryPod()
	check(s.t, err)
	pod.Annotations["example.com/rival"] = "true"
	pod, err = s.client.CoreV1().Pods(s.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{FieldManager: rival})
	check(s.t, err)
	return pod
}

// untouched checks that a namesake is there as it was made, but for what its
// node did to it.
func (s *site) untouched(namesake *corev1.Pod) {
	s.t.Helper()
	pod := s.pod()
	if pod == nil || pod.UID != namesake.UID {
		s.t.Fatalf("the namesake (UID %s) is gone: %v", namesake.UID, pod)
	}
	if pod.DeletionTimestamp != nil {
		s.t.Error("the namesake is being deleted")
	}
	for _, entry := range pod.ManagedFields {
		if entry.Manager == "kubectl-vlan50" {
			s.t.Errorf("the tool wrote to the namesake: %s", entry.FieldsV1)
		}
	}
}

func TestPodReplacedJustBeforeItsDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "replaced", scriptednode.Options{})
	p := s.behindProxy()
	s.createCanary(corev1.PodSucceeded)
	var namesake *corev1.Pod
	p.on(1, s.deletes(), first(func() { namesake = s.replace() }))

	s.retest().expectError(t, 5, string(namesake.GetUID()), "field manager "+rival)

	s.untouched(namesake)
	p.checkDeletions(t)
	if created := p.requests(s.creates()); len(created) > 0 {
		t.Errorf("a Pod was created beside the namesake: %v", created)
	}
	s.unlocked()
}

func TestNamesakeBetweenGoneAndCreate(t *testing.T) {
	t.Parallel()
	s := newSite(t, "between", scriptednode.Options{})
	p := s.behindProxy()
	old := s.createCanary(corev1.PodSucceeded)
	var namesake *corev1.Pod
	p.on(1, s.creates(), first(func() { namesake = s.createRival() }))

	s.retest().expectError(t, 5, string(namesake.GetUID()), "field manager "+rival, "left alone")

	s.untouched(namesake)
	if deletions := p.checkDeletions(t); len(deletions) != 1 || ptr.Deref(deletions[0].deleteOptions(t).Preconditions.UID, "") != old.UID {
		t.Errorf("only the old UID %s may be deleted, got %v", old.UID, deletions)
	}
	s.unlocked()
}

// The watch breaks while the canary is replaced, so that the run never sees its
// own Pod go: the next it hears of the name is another UID.
func TestNamesakeAfterCreate(t *testing.T) {
	t.Parallel()
	s := newSite(t, "after", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.NeverFinishes(), scriptednode.Pass()}})
	p := s.behindProxy()
	canaryWatch := func(a asked) bool {
		return a.watch() && a.url.Query().Get("fieldSelector") == "metadata.name="+s.Canary
	}
	cut := p.cut(canaryWatch)
	run := s.start("canary", "retest", "-o", "json", "-f", s.manifest)
	run.waitFor("waits for its sandbox")
	judged := s.pod()
	back := p.hold(canaryWatch)
	cut()
	back.wait(run)
	namesake := s.replace()
	back.letGo()

	run.wait().expectError(t, 5, string(namesake.UID), "field manager "+rival, "left alone")

	if judged.UID == namesake.UID {
		t.Fatal("the namesake is the canary itself")
	}
	s.untouched(namesake)
	p.checkDeletions(t)
	s.unlocked()
}

// A canary that somebody takes away under the run tells nothing.
func TestCanaryIsDeletedUnderTheRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, "vanished", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.NeverFinishes(), scriptednode.Pass()}})
	run := s.start("canary", "retest", "-o", "json", "-f", s.manifest)
	run.waitFor("waits for its sandbox")
	s.taken(s.pod().UID)
	check(t, s.client.CoreV1().Pods(s.Namespace).Delete(t.Context(), s.Canary, metav1.DeleteOptions{}))

	out := run.wait()
	out.expect(t, 4, "inconclusive", "pod-deleted-during-add")
	if !strings.Contains(out.verdict(t).Status.Message, "by somebody else") {
		t.Errorf("the message does not say so: %s", out.stdout)
	}
	s.retest().expect(t, 0, "pass", "ok")
}

// What the old attempt left must not speak for the new one.
func TestOldUIDIsNotHeard(t *testing.T) {
	t.Parallel()
	const secret = "WORDS-OF-THE-OLD-ATTEMPT"
	old := scriptednode.Script{Name: "old", Steps: []scriptednode.Step{
		{Do: scriptednode.Sandbox{Fault: &scriptednode.Fault{Layer: scriptednode.LayerSecondary, Text: secret}, Times: 2}},
		{Do: scriptednode.Event{Type: corev1.EventTypeWarning, Reason: "Failed", Message: secret}},
		{Do: scriptednode.Guard{Exit: 1, Message: "duplicate address 192.0.2.100 " + secret, Log: []string{secret}}},
	}}
	s := newSite(t, "old-uid", scriptednode.Options{Plan: scriptednode.Plan{old, scriptednode.Pass(), scriptednode.NeverFinishes()}})
	s.createCanary(corev1.PodFailed)
	out := s.retest()
	document := out.expect(t, 0, "pass", "ok")
	if document.Status.Attempt.SandboxFailures != 0 {
		t.Errorf("failures of the old UID were counted: %d", document.Status.Attempt.SandboxFailures)
	}
	if strings.Contains(out.stdout, secret) || strings.Contains(out.stdout, "duplicate") {
		t.Errorf("the verdict speaks of the old attempt:\n%s", out.stdout)
	}

	t.Run("a network-status on the live Pod does not forge a pass", func(t *testing.T) {
		if s.pod().Annotations["k8s.v1.cni.cncf.io/network-status"] == "" {
			t.Fatal("the canary has none to forge with")
		}
		// Long enough for the creation on a busy machine; what comes after is silence.
		out := s.retest("--timeout", "20s")
		if !strings.Contains(out.stderr, "created Pod") {
			t.Fatalf("the canary was not created in time:\n%s", out.stderr)
		}
		document := out.verdict(t)
		if document.Status.Verdict != "inconclusive" || out.code != 4 {
			t.Errorf("a Pod that does nothing got %s (%s), exit code %d", document.Status.Verdict, document.Status.Cause, out.code)
		}
		for key := range s.pod().Annotations {
			if strings.Contains(key, "network-status") {
				t.Errorf("the new Pod carries %s", key)
			}
		}
	})
}

// The log endpoint knows no UID: a namesake's log must not be taken for the
// canary's.
func TestLogOfANamesakeIsDropped(t *testing.T) {
	t.Parallel()
	const secret = "WORDS-OF-THE-NAMESAKE"
	s := newSite(t, "log-swap", scriptednode.Options{Plan: scriptednode.Plan{
		scriptednode.GuardFailed(7, "exit by the canary"),
		{Name: "namesake", Steps: []scriptednode.Step{
			{Do: scriptednode.Sandbox{}},
			{Do: scriptednode.Guard{Exit: 1, Message: "duplicate address 192.0.2.100", Log: []string{secret}}},
		}},
	}})
	p := s.behindProxy()
	var namesake *corev1.Pod
	p.on(1, to(http.MethodGet, "/pods/"+s.Canary+"/log"), first(func() {
		namesake = s.replace()
		eventually(t, "the namesake fails", func() bool { return s.pod().Status.Phase == corev1.PodFailed })
	}))

	out := s.retest("-f", s.manifest)

	document := out.verdict(t)
	if namesake == nil {
		t.Fatalf("the guard's log was not read:\n%s", out.stdout)
	}
	if document.Status.Cause == "duplicate-address" || strings.Contains(out.stdout, secret) {
		t.Errorf("the namesake's words reached the verdict:\n%s", out.stdout)
	}
	if document.UID == namesake.UID {
		t.Error("the namesake was judged")
	}
	s.untouched(namesake)
	if marks := fmt.Sprint(s.pod().Annotations); strings.Contains(marks, "vlan50.dev/verdict") {
		t.Errorf("the verdict was written on the namesake: %s", marks)
	}
}
