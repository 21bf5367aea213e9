package verdict

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

func sameInAnyOrder(t *testing.T, e evidence.Evidence) {
	t.Helper()
	want := Decide(e, e.CollectedAt)
	for seed := range uint64(shuffles) {
		got := Decide(shuffled(e, rand.New(rand.NewPCG(seed, 50))), e.CollectedAt)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order %d changes the verdict (-first +shuffled):\n%s", seed, diff)
		}
	}
}

func TestOrderOfDocumentsNeverMatters(t *testing.T) {
	eachCase(t, func(t *testing.T, e evidence.Evidence, _ expectation) { sameInAnyOrder(t, e) })
	for _, row := range scenes {
		t.Run(row.name, func(t *testing.T) { sameInAnyOrder(t, build(row.changes...)) })
	}
}

func TestRedactionNeverMatters(t *testing.T) {
	eachCase(t, func(t *testing.T, e evidence.Evidence, _ expectation) {
		if diff := cmp.Diff(Decide(e, e.CollectedAt), Decide(evidence.Redact(e), e.CollectedAt)); diff != "" {
			t.Errorf("-raw +redacted:\n%s", diff)
		}
	})
}

// TestDecideNeedsNoClock judges in a bubble whose clock is years off.
func TestDecideNeedsNoClock(t *testing.T) {
	eachCase(t, func(t *testing.T, e evidence.Evidence, want expectation) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(10 * 365 * 24 * time.Hour)
			if got := Decide(e, e.CollectedAt); got.Cause != want.Cause {
				t.Errorf("got %s", got.Cause)
			}
		})
	})
}

func TestLinesAreInOrderOfTime(t *testing.T) {
	eachCase(t, func(t *testing.T, e evidence.Evidence, _ expectation) {
		lines := Decide(e, e.CollectedAt).Lines
		for i := 1; i < len(lines); i++ {
			if lines[i].Time.Before(lines[i-1].Time) {
				t.Errorf("line %d (%v) is before line %d (%v)", i, lines[i].Time, i-1, lines[i-1].Time)
			}
		}
	})
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
