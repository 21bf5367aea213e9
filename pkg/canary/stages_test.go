package canary

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// deadline and interruption: when the run is out of time or cancelled, and what
// is then to be read.
type stage struct {
	// happens keeps the run at a stage.
	happens func(w *world)
	changes func(s *site)
	cause   verdict.Cause
	says    []string
}

func stages() map[string]stage {
	return map[string]stage{
		"while the daemon is not Ready": {
			changes: func(s *site) { s.daemon.Status.Conditions[0].Status = corev1.ConditionFalse },
			cause:   verdict.RolloutInProgress,
			says:    []string{"daemon Pod kube-multus-ds-x7k2p is not Ready (Running)", "othing was changed"},
		},
		"while the daemon has not written its conf": {
			happens: func(w *world) { w.says(func() (string, error) { return startingLog, nil }) },
			cause:   verdict.RolloutInProgress,
			says:    []string{"is Ready, but has not written its CNI conf yet", "othing was changed"},
		},
		"while the old Pod is terminating": {
			happens: func(w *world) { w.neverGone() },
			cause:   verdict.OldPodTerminating,
			says: []string{
				"Pod downloads/vlan50-canary (UID old-uid) is terminating and is not created again",
				"manifest is saved in /state/manifest.yaml: run the same command again to go on",
			},
		},
		"while the new Pod is not judged": {
			happens: func(w *world) { w.created = func(*corev1.Pod) {} },
			cause:   verdict.AttemptInProgress,
			says:    []string{"he new Pod downloads/vlan50-canary (UID uid-", "was created and is not judged yet"},
		},
		"while the DaemonSet cannot be read": {
			happens: func(w *world) { w.failAlways("list", "daemonsets", serverError) },
			cause:   verdict.EvidenceIncomplete,
			says:    []string{"reading DaemonSet kube-system/kube-multus-ds", "etcd is away", "othing was changed"},
		},
	}
}

func (s stage) world(t *testing.T) *world {
	t.Helper()
	var changes []func(*site)
	if s.changes != nil {
		changes = append(changes, s.changes)
	}
	w := newWorld(t, changes...)
	if s.happens != nil {
		s.happens(w)
	}
	return w
}

func TestRetestOutOfTimeIsInconclusive(t *testing.T) {
	for name, stage := range stages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stage.world(t)
				start := time.Now()
				ctx, end := deadlineIn(t, time.Minute)
				defer end()
				result, err := w.retest().Run(ctx)
				check(t, err)
				v := result.Verdict
				if v.Outcome != verdict.Inconclusive || v.Cause != stage.cause || v.Next == "" {
					t.Errorf("verdict: %+v\n%s", v, w.story())
				}
				for _, text := range append(stage.says, "the deadline came before a verdict. Last known state: ") {
					if strings.Count(v.Message, text) != 1 {
						t.Errorf("message says %q %d times: %s", text, strings.Count(v.Message, text), v.Message)
					}
				}
				if strings.Contains(v.Message, "..") || strings.Contains(v.Message, "  ") {
					t.Errorf("message: %s", v.Message)
				}
				if took := time.Since(start); took != time.Minute {
					t.Errorf("ended after %s, want 1m", took)
				}
			})
		})
	}
}

func TestRetestInterruptedSaysWhatItLeaves(t *testing.T) {
	interrupt := errors.New("interrupt")
	for name, stage := range stages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stage.world(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(20*time.Second, func() { cancel(interrupt) })
				_, err := w.retest().Run(ctx)
				var interruption *Interruption
				if !errors.As(err, &interruption) || !errors.Is(err, interrupt) {
					t.Fatalf("error: %v", err)
				}
				last := stage.says[len(stage.says)-1]
				if !strings.HasPrefix(err.Error(), "interrupted: ") || !strings.Contains(err.Error(), last) {
					t.Errorf("error %q does not say %q", err, last)
				}
				if got := *w.lease().Spec.HolderIdentity; got != "" {
					t.Errorf("the Lease is still held by %q", got)
				}
			})
		})
	}
}

// A run that has not come as far as the gate tells what it was at.
func TestRetestOutOfTimeBeforeTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withLease(lease(10*time.Minute, "machine-2/7")))
		ctx, end := deadlineIn(t, 5*time.Second)
		defer end()
		result, err := w.retest().Run(ctx)
		check(t, err)
		v := result.Verdict
		if v.Outcome != verdict.Inconclusive || v.Next == "" || !strings.Contains(v.Message, "Last known state: the lock of bob@rack was last renewed at ") || !strings.HasSuffix(v.Message, ". Nothing was changed.") {
			t.Errorf("verdict: %+v", v)
		}
		if !w.untouched() || result.Attempt.Decided.IsZero() {
			t.Errorf("attempt %+v, writes %v", result.Attempt, w.writes())
		}
	})
}
