//go:build unix

package verdict

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of the processor: a busy machine does
// not change it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// TestACrowdOfEventsStaysInBounds has room for the race detector; the benchmark
// holds the limit proper.
func TestACrowdOfEventsStaysInBounds(t *testing.T) {
	e := crowd(crowdSize / 10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime(t)
	expect(t, e, Fail, DelegatePluginMissing)
	took := cpuTime(t) - began
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > crowdMemory/10 {
		t.Errorf("%d MB allocated, at most %d", used>>20, crowdMemory/10>>20)
	}
	if took > 10*crowdTime {
		t.Errorf("took %v", took)
	}
}

// TestLongMessagesCostTheirLength compares eight messages with one eight times
// as long: linear work takes as long for both, quadratic work eight times.
func TestLongMessagesCostTheirLength(t *testing.T) {
	for name, unit := range map[string]string{
		"plain words":         "error: ",
		"libcni wrappers":     `plugin type="x" name="y" failed (add): `,
		"unfinished wrappers": `plugin type="`,
		"Multus scopes":       `[a/b/c:d]: `,
		"shim answers":        `CNI request failed with status 400: '`,
		"quotes":              `"\`,
		"anchors":             `Multus: [`,
		"names in sentences":  `The container name x is `,
		"lookups":             `failed to find plugin "`,
		"folders":             `failed to find plugin "x" in path [/a /b /c `,
		"addresses":           `192.0.2.1 2001:db8::1 `,
	} {
		t.Run(name, func(t *testing.T) {
			const small, times = 48 << 10, 8
			took := func(size, repeat int) time.Duration {
				e := build(failing(containerd(strings.Repeat(unit, size/len(unit)))))
				began := cpuTime(t)
				for range repeat {
					Decide(e, now)
				}
				return cpuTime(t) - began
			}
			eight, one := took(small, times), took(times*small, 1)
			if one > 4*eight+20*time.Millisecond {
				t.Errorf("8 x 48 KB took %v, 384 KB %v: more than linear", eight, one)
			}
		})
	}
}
