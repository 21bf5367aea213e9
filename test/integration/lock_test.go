//go:build integration

package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// lease is the lock as it is, nil where there is none.
func (s *site) lease() *coordinationv1.Lease {
	s.t.Helper()
	lease, err := s.client.CoordinationV1().Leases(s.Namespace).Get(s.t.Context(), s.Canary, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(s.t, err)
	return lease
}

// holder is who has the lock; empty where nobody has.
func (s *site) holder() string {
	s.t.Helper()
	lease := s.lease()
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// unlocked checks that a run which has ended holds no lock.
func (s *site) unlocked() {
	s.t.Helper()
	if holder := s.holder(); holder != "" {
		s.t.Errorf("the lock is still held by %q", holder)
	}
}

// heldBy makes a Lease of somebody on another machine.
func (s *site) heldBy(holder string, renewed time.Duration) *coordinationv1.Lease {
	s.t.Helper()
	at := metav1.NewMicroTime(time.Now().Add(-renewed))
	lease, err := s.client.CoordinationV1().Leases(s.Namespace).Create(s.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: s.Canary, Annotations: map[string]string{"vlan50.dev/process": "0123456789abcdef/1"}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, AcquireTime: &at, RenewTime: &at, LeaseDurationSeconds: ptr.To[int32](60),
		},
	}, metav1.CreateOptions{})
	check(s.t, err)
	return lease
}

// shutGate keeps every run of the site waiting at the gate.
func (s *site) shutGate() {
	s.t.Helper()
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{ConfAfterReady: never}))
}

// openGate lets the daemon get ready: by another roll, as a person would mend it.
func (s *site) openGate() {
	s.t.Helper()
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{}))
}

func TestTwoRetestsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "two", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	s.shutGate()
	holder := s.start("canary", "retest", "-o", "json")
	holder.waitFor("gate")
	since := s.lease().Spec.AcquireTime.UTC().Format(time.RFC3339)

	for range 2 {
		s.retest().expectError(t, 5, "is locked by "+s.holder(), "since "+since)
	}
	if !strings.Contains(s.holder(), "@") || !strings.Contains(s.holder(), "(started ") {
		t.Errorf("the holder does not name user, host and start: %q", s.holder())
	}
	s.openGate()
	holder.wait().expect(t, 0, "pass", "ok")
	s.unlocked()
}

// However many begin at the same moment, one goes on and the others are told.
func TestManyRetestsBeginAtTheSameMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t, "many", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	s.shutGate()
	var runs []*process
	for range 5 {
		runs = append(runs, s.start("canary", "retest", "-o", "json"))
	}
	ended := make(chan *process, len(runs))
	for _, run := range runs {
		go func() {
			<-run.ended
			ended <- run
		}()
	}
	for range len(runs) - 1 {
		(<-ended).wait().expectError(t, 5, "Pod "+s.Namespace+"/"+s.Canary, "locked by", "wait for it to end")
	}
	s.openGate()
	winner := <-ended
	document := winner.wait().expect(t, 0, "pass", "ok")
	if pod := s.pod(); pod.UID != document.UID {
		t.Errorf("judged UID %s, there is %s", document.UID, pod.UID)
	}
	alive := map[types.UID]bool{}
	for _, entry := range s.node.Journal().Of(scriptednode.PodAlive) {
		if entry.Pod.Name == s.Canary {
			alive[entry.UID] = true
		}
	}
	if len(alive) != 2 {
		t.Errorf("want the old canary and one new one, the node has seen %d", len(alive))
	}
}

func TestHeldLock(t *testing.T) {
	t.Parallel()
	t.Run("renewed a moment ago", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "lock-fresh", scriptednode.Options{})
		old := s.createCanary(corev1.PodSucceeded)
		before := s.heldBy("bob@elsewhere \x1b[31m\u202e", 20*time.Second)
		out := s.retest()
		out.expectError(t, 5, `bob@elsewhere \x1b[31m\u202e`, "since "+before.Spec.AcquireTime.UTC().Format(time.RFC3339))
		s.untouched(old)
		if after := s.lease(); after.ResourceVersion != before.ResourceVersion {
			t.Error("somebody else's lock was changed")
		}
	})
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "lock-stale", scriptednode.Options{})
		s.heldBy("bob@elsewhere", 5*time.Minute)
		out := s.retest("-f", s.manifest)
		out.expect(t, 0, "pass", "ok")
		if !strings.Contains(out.stderr, "taking over the stale lock of bob@elsewhere") {
			t.Errorf("the run does not say whose lock it took:\n%s", out.stderr)
		}
		s.unlocked()
	})
	t.Run("looks stale as its clock is behind", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "lock-clock", scriptednode.Options{})
		lease := s.heldBy("bob@elsewhere", 5*time.Minute)
		run := s.start("canary", "retest", "-o", "json", "-f", s.manifest)
		run.waitFor("watching for")
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-5 * time.Minute)))
		_, err := s.client.CoordinationV1().Leases(s.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		check(t, err)
		run.wait().expectError(t, 5, "bob@elsewhere")
		if s.pod() != nil {
			t.Error("a canary was created beside a living holder")
		}
	})
	t.Run("deadline while watching a stale one", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "lock-deadline", scriptednode.Options{})
		s.heldBy("bob@elsewhere", 5*time.Minute)
		out := s.retest("-f", s.manifest, "--timeout", "5s")
		status := out.expect(t, 4, "inconclusive", "evidence-incomplete").Status
		if !strings.Contains(status.Message, "bob@elsewhere") || !strings.Contains(status.Message, "othing was changed") {
			t.Errorf("the message does not say what was waited for: %s", status.Message)
		}
		if s.holder() != "bob@elsewhere" {
			t.Errorf("the lock is now held by %q", s.holder())
		}
	})
}

// A run that was killed on this machine holds up nobody.
func TestLockOfAKilledRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, "killed", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	s.shutGate()
	run := s.start("canary", "retest")
	run.waitFor("gate")
	run.signal(syscall.SIGKILL)
	<-run.ended
	dead := s.holder()
	if dead == "" {
		t.Fatal("the killed run held no lock")
	}
	s.openGate()
	out := s.retest()
	out.expect(t, 0, "pass", "ok")
	if !strings.Contains(out.stderr, dead+" is no longer there") {
		t.Errorf("the run does not say whose lock it took:\n%s", out.stderr)
	}
	s.unlocked()
}

// Who finds his lock taken must stop: somebody else is at work.
func TestLockIsLostDuringTheRun(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *site){
		"taken": func(s *site) {
			_, err := s.client.CoordinationV1().Leases(s.Namespace).Patch(s.t.Context(), s.Canary, types.MergePatchType,
				[]byte(`{"spec":{"holderIdentity":"bob@elsewhere"},"metadata":{"annotations":{"vlan50.dev/process":"0123456789abcdef/1"}}}`), metav1.PatchOptions{})
			check(s.t, err)
		},
		"deleted": func(s *site) {
			check(s.t, s.client.CoordinationV1().Leases(s.Namespace).Delete(s.t.Context(), s.Canary, metav1.DeleteOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "lost-"+name, scriptednode.Options{})
			old := s.createCanary(corev1.PodSucceeded)
			s.shutGate()
			run := s.start("canary", "retest", "-o", "json")
			run.waitFor("gate")
			lose(s)
			run.wait().expectError(t, 5, "lock", "nothing was changed")
			s.untouched(old)
			if name == "taken" && s.holder() != "bob@elsewhere" {
				t.Errorf("the new holder's lock was given up for him: %q", s.holder())
			}
		})
	}
}

// Edits of the Lease by others that leave its holder alone do no harm.
func TestLockIsLabelledDuringTheRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, "labelled", scriptednode.Options{})
	p := s.behindProxy()
	p.on(1, s.creates(), first(func() {
		_, err := s.client.CoordinationV1().Leases(s.Namespace).Patch(t.Context(), s.Canary, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"seen":"%d"}}}`, 1), metav1.PatchOptions{})
		check(t, err)
	}))
	s.retest("-f", s.manifest).expect(t, 0, "pass", "ok")
	if s.lease().Labels["seen"] != "1" {
		t.Error("the label was lost")
	}
	s.unlocked()
}
