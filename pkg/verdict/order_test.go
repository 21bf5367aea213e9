package verdict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// shuffled gives the evidence with every list in another order.
func shuffled(e evidence.Evidence, r *rand.Rand) evidence.Evidence {
	e.Pods = shuffle(e.Pods, r)
	e.Events = shuffle(e.Events, r)
	e.DaemonSets = shuffle(e.DaemonSets, r)
	e.ControllerRevisions = shuffle(e.ControllerRevisions, r)
	e.Nodes = shuffle(e.Nodes, r)
	e.Networks = shuffle(e.Networks, r)
	e.ConfigMaps = shuffle(e.ConfigMaps, r)
	e.CRDs = shuffle(e.CRDs, r)
	e.PodLogs = shuffle(e.PodLogs, r)
	e.HostFiles = shuffle(e.HostFiles, r)
	return e
}

func shuffle[T any](list []T, r *rand.Rand) []T {
	out := make([]T, len(list))
	for i, j := range r.Perm(len(list)) {
		out[j] = list[i]
	}
	return out
}

const shuffles = 100

func sameInAnyOrder(t *testing.T, e evidence.Evidence, times uint64) {
	t.Helper()
	want := Decide(e, e.CollectedAt)
	for seed := range times {
		got := Decide(shuffled(e, rand.New(rand.NewPCG(seed, 50))), e.CollectedAt)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order %d changes the verdict (-first +shuffled):\n%s", seed, diff)
		}
	}
}

func TestOrderOfDocumentsNeverMatters(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) { sameInAnyOrder(t, c.evidence, shuffles) })
	}
	for _, row := range scenes {
		t.Run(row.name, func(t *testing.T) { sameInAnyOrder(t, build(row.changes...), shuffles/10) })
	}
}

func TestRedactionNeverMatters(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) {
			now := c.evidence.CollectedAt
			if diff := cmp.Diff(Decide(c.evidence, now), Decide(evidence.Redact(c.evidence), now)); diff != "" {
				t.Errorf("-raw +redacted:\n%s", diff)
			}
		})
	}
}

// TestEscapesNeverMatter puts terminal sequences into every text that the
// cluster's users and plugins can write.
func TestEscapesNeverMatter(t *testing.T) {
	t.Parallel()
	const escapes = "\x1b[2J\x1b]0;PASS\x07\u202e"
	dirty := func(s string) string {
		if s == "" {
			return ""
		}
		return escapes + strings.ReplaceAll(s, " ", escapes+" ") + escapes
	}
	soil := func(e evidence.Evidence) evidence.Evidence {
		e = evidence.Redact(e) // a deep copy
		for i := range e.Events {
			e.Events[i].Message = dirty(e.Events[i].Message)
		}
		for i := range e.PodLogs {
			e.PodLogs[i].Log = dirty(e.PodLogs[i].Log)
		}
		for i := range e.Pods {
			for _, list := range [][]corev1.ContainerStatus{e.Pods[i].Status.InitContainerStatuses, e.Pods[i].Status.ContainerStatuses} {
				for j := range list {
					if term := list[j].State.Terminated; term != nil {
						term.Message = dirty(term.Message)
					}
					if w := list[j].State.Waiting; w != nil {
						w.Message = dirty(w.Message)
					}
				}
			}
		}
		return e
	}
	same := func(t *testing.T, e evidence.Evidence) {
		t.Helper()
		clean, soiled := Decide(e, e.CollectedAt), Decide(soil(e), e.CollectedAt)
		if clean.Cause != soiled.Cause || clean.Outcome != soiled.Outcome || clean.Settled != soiled.Settled {
			t.Errorf("clean %s %s, soiled %s %s: %s", clean.Outcome, clean.Cause, soiled.Outcome, soiled.Cause, soiled.Message)
		}
	}
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) { same(t, c.evidence) })
	}
	for _, row := range scenes {
		t.Run(row.name, func(t *testing.T) { same(t, build(row.changes...)) })
	}
}

// TestDecideNeedsNoClock judges in a bubble whose clock is years off.
func TestDecideNeedsNoClock(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(10 * 365 * 24 * time.Hour)
			if got := Decide(c.evidence, c.evidence.CollectedAt); got.Cause != c.want.Cause {
				t.Errorf("%s: got %s", c.name, got.Cause)
			}
		})
	}
}

func TestLinesAreInOrderOfTime(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		lines := Decide(c.evidence, c.evidence.CollectedAt).Lines
		for i := 1; i < len(lines); i++ {
			if lines[i].Time.Before(lines[i-1].Time) {
				t.Errorf("%s: line %d (%v) is before line %d (%v)", c.name, i, lines[i].Time, i-1, lines[i-1].Time)
			}
		}
	}
}

// crowd gives evidence with n failure events of the judged UID, each with a
// message of its own, as a node that fails for hours would leave without a
// filter.
func crowd(n int) evidence.Evidence {
	e := build()
	inner := thick(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0])
	for i := range n {
		text := fmt.Sprintf("Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"%064d\": %s", i, inner)
		eventOf(testUID, time.Duration(i)*time.Millisecond, 1, "FailedCreatePodSandBox", text, "kubelet")(&e)
	}
	return e
}
