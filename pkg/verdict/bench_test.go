package verdict

import (
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
