//go:build integration

package integration

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// checkDeletions checks the rule that every deletion names its UID and version
// and forces nothing.
func (p *proxy) checkDeletions(t *testing.T) []asked {
	t.Helper()
	deletions := p.requests(func(a asked) bool { return a.method == http.MethodDelete })
	for _, a := range deletions {
		options := a.deleteOptions(t)
		if options.GracePeriodSeconds != nil || a.url.Query().Has("gracePeriodSeconds") {
			t.Errorf("%s asks for a grace period of its own: %+v", a, options)
		}
		if c := options.Preconditions; c == nil || ptr.Deref(c.UID, "") == "" || ptr.Deref(c.ResourceVersion, "") == "" {
			t.Errorf("%s has no precondition on UID and resourceVersion: %+v", a, options)
		}
	}
	return deletions
}

func TestPodEditedJustBeforeItsDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "edited", scriptednode.Options{})
	p := s.behindProxy()
	old := s.createCanary(corev1.PodSucceeded)
	p.on(1, s.deletes(), first(func() {
		patch := []byte(`{"metadata":{"annotations":{"example.com/note":"kept"},"labels":{"team":"media"}}}`)
		_, err := s.client.CoreV1().Pods(s.Namespace).Patch(t.Context(), s.Canary, types.MergePatchType, patch, metav1.PatchOptions{})
		check(t, err)
	}))

	document := s.retest().expect(t, 0, "pass", "ok")

	deletions := p.checkDeletions(t)
	if len(deletions) != 2 {
		t.Errorf("want a refused deletion and a second one, got %v", deletions)
	}
	for _, a := range deletions {
		if uid := ptr.Deref(a.deleteOptions(t).Preconditions.UID, ""); uid != old.UID {
			t.Errorf("deleted UID %s, want %s", uid, old.UID)
		}
	}
	pod := s.pod()
	if pod.UID != document.UID || pod.UID == old.UID {
		t.Errorf("judged UID %s, old %s, there is %s", document.UID, old.UID, pod.UID)
	}
	if pod.Annotations["example.com/note"] != "kept" || pod.Labels["team"] != "media" {
		t.Errorf("the edit was lost: annotations %v, labels %v", pod.Annotations, pod.Labels)
	}
}

func TestDeletionWithAWrongPreconditionIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "precondition", scriptednode.Options{})
	old := s.createCanary(corev1.PodSucceeded)
	for name, preconditions := range map[string]*metav1.Preconditions{
		"wrong UID":             {UID: ptr.To(types.UID("11111111-2222-3333-4444-555555555555"))},
		"wrong resourceVersion": {UID: &old.UID, ResourceVersion: new("1")},
	} {
		err := s.client.CoreV1().Pods(s.Namespace).Delete(t.Context(), s.Canary, metav1.DeleteOptions{Preconditions: preconditions})
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v, want a conflict: the tool counts on it", name, err)
		}
	}
	s.untouched(old)
}

// The answer to the create is lost: the run must find its own Pod by the
// attempt it has noted on it, and not make another.
func TestAnswerToTheCreateIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, "lost-create", scriptednode.Options{})
	p := s.behindProxy()
	s.createCanary(corev1.PodFailed, corev1.PodSucceeded)
	p.on(1, s.creates(), loseAnswer)

	document := s.retest().expect(t, 0, "pass", "ok")

	if pod := s.pod(); pod.UID != document.UID {
		t.Errorf("judged UID %s, there is %s", document.UID, pod.UID)
	}
	alive := map[types.UID]bool{}
	for _, entry := range s.node.Journal().Of(scriptednode.PodAlive) {
		if entry.Pod.Namespace == s.Namespace {
			alive[entry.UID] = true
		}
	}
	if len(alive) != 2 {
		t.Errorf("want the old canary and one new one, the node has seen %v", alive)
	}
}

// Trouble of the moment at the writes is tried again, for the same UID.
func TestWritesAreTriedAgain(t *testing.T) {
	t.Parallel()
	tooMany := refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down")
	broken := refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed")
	s := newSite(t, "again", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	for _, trouble := range []struct {
		name  string
		rules func(p *proxy)
	}{
		{"deletion: too many requests", func(p *proxy) { p.on(1, s.deletes(), tooMany) }},
		{"deletion: server error", func(p *proxy) { p.on(2, s.deletes(), broken) }},
		{"deletion: request lost", func(p *proxy) { p.on(1, s.deletes(), loseRequest) }},
		{"deletion: answer lost", func(p *proxy) { p.on(1, s.deletes(), loseAnswer) }},
		{"create: too many requests", func(p *proxy) { p.on(1, s.creates(), tooMany) }},
		{"create: server error", func(p *proxy) { p.on(2, s.creates(), broken) }},
		{"create: request lost", func(p *proxy) { p.on(1, s.creates(), loseRequest) }},
		{"create: answer lost, and the look after it fails", func(p *proxy) {
			p.on(1, s.creates(), loseAnswer)
			p.on(2, afterDeletion(s, s.reads()), broken)
		}},
		{"last look at the address: server error", func(p *proxy) { p.on(2, afterDeletion(s, scans), broken) }},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			old := s.pod()
			p := s.behindProxy()
			trouble.rules(p)
			document := s.retest("-f", s.manifest).expect(t, 0, "pass", "ok")
			p.checkDeletions(t)
			p.allPlayed(t)
			if pod := s.pod(); pod == nil || pod.UID != document.UID || pod.UID == old.UID {
				t.Errorf("judged UID %s, old UID %s, there is %v", document.UID, old.UID, pod)
			}
		})
	}
}

// afterDeletion matches what comes after the canary's deletion was asked for.
func afterDeletion(s *site, m match) match {
	deleted, deletes := false, s.deletes()
	return func(a asked) bool {
		deleted = deleted || deletes(a)
		return deleted && m(a)
	}
}

// A refusal after the deletion ends the run with what was left and how to go on.
func TestCreateRefusedAfterTheDeletion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "refused", scriptednode.Options{})
	p := s.behindProxy()
	s.createCanary(corev1.PodSucceeded)
	p.on(1, s.creates(), refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: compute"))

	s.retest().expectError(t, 1, "exceeded quota: compute", "manifest", "run the same command again")
	if pod := s.pod(); pod != nil {
		t.Errorf("a Pod is there: %s", pod.UID)
	}
	s.unlocked()
	s.retest().expect(t, 0, "pass", "ok")
}
