package verdict

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// The limits a judgement must hold, with room for a busy machine: a live run
// judges at every watch event.
const (
	crowdSize   = 100_000
	crowdTime   = 200 * time.Millisecond
	crowdMemory = 150 << 20
)

func BenchmarkDecide100kEvents(b *testing.B) {
	e := crowd(crowdSize)
	b.ReportAllocs()
	for b.Loop() {
		Decide(e, now)
	}
	if each := b.Elapsed() / time.Duration(b.N); each > crowdTime {
		b.Errorf("%v for one judgement, at most %v", each, crowdTime)
	}
}

func BenchmarkDecideOneMegabyteMessage(b *testing.B) {
	e := build(failing(containerd(thick(own(strings.Repeat("error: ", 150_000))[0]))))
	b.ReportAllocs()
	for b.Loop() {
		Decide(e, now)
	}
}

func BenchmarkDecideUsual(b *testing.B) {
	e := build(attached(), done())
	b.ReportAllocs()
	for b.Loop() {
		Decide(e, now)
	}
}

// TestACrowdOfEventsStaysInBounds has room for the race detector and a busy
// machine; the benchmark holds the limit proper.
func TestACrowdOfEventsStaysInBounds(t *testing.T) {
	e := crowd(crowdSize)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	expect(t, e, Fail, DelegatePluginMissing)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > crowdMemory {
		t.Errorf("%d MB allocated, at most %d", used>>20, crowdMemory>>20)
	}
	if took > 20*crowdTime {
		t.Errorf("took %v", took)
	}
}

// TestLongMessagesCostTheirLength compares a message with one eight times as
// long: linear work takes eight times as long, quadratic work sixty-four.
func TestLongMessagesCostTheirLength(t *testing.T) {
	for name, unit := range map[string]string{
		"plain words":         "error: ",
		"libcni wrappers":     `plugin type="x" name="y" failed (add): `,
		"unfinished wrappers": `plugin type="`,
		"Multus scopes":       `[a/b/c:d]: `,
		"shim answers":        `CNI request failed with status 400: '`,
		"quotes":              `"\`,
		"anchors":             `Multus: [`,
		"lookups":             `failed to find plugin "`,
	} {
		t.Run(name, func(t *testing.T) {
			const small = 128 << 10
			took := func(size int) time.Duration {
				e := build(failing(containerd(strings.Repeat(unit, size/len(unit)))))
				best := time.Hour
				for range 5 {
					began := time.Now()
					Decide(e, now)
					best = min(best, time.Since(began))
				}
				return best
			}
			one, eight := took(small), took(8*small)
			if limit := 40*one + 50*time.Millisecond; eight > limit {
				t.Errorf("128 KB took %v, 1 MB %v: more than linear", one, eight)
			}
		})
	}
}
