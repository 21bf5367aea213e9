package verdict

import "slices"

// Settling says when a cause found in a live run may be taken as the last word.
type Settling int

// The ways a cause settles.
const (
	// AtOnce: nothing that is waited for can change it.
	AtOnce Settling = iota + 1
	// OnRepeat: kubelet tries again, so that the fault must be seen twice, or
	// stand for RepeatAfter.
	OnRepeat
	// OnStanding: an API server that restarts looks the same, so that the fault
	// must be seen over OutageAfter.
	OnStanding
	// ByWaiting: it passes by itself, or somebody's else work ends it; it is
	// never settled while a live run may still wait.
	ByWaiting
)

// Entry is one cause of the catalogue: the only place where its words are.
// Names in angle brackets stand for what a judgement fills in.
type Entry struct {
	Cause   Cause
	Outcome Outcome
	// Window: the cause is inconclusive as well, while the daemon was changing.
	Window bool
	// Settles says when the cause is final.
	Settles Settling
	// Summary is what it means, in one sentence.
	Summary string
	// Next is what to do.
	Next string
}

// Anchor is the cause's place in the documentation.
func (e Entry) Anchor() string { return "docs/causes.md#" + string(e.Cause) }

// catalogue is the one table; it never changes.
var catalogue = slices.Concat(passes(), setupFaults(), attachFaults(), guardFaults(), daemonBlocks(), podBlocks())

// Catalogue gives all causes, passes first, then faults, then what tells
// nothing. The slice is the caller's own.
func Catalogue() []Entry { return slices.Clone(catalogue) }

// Lookup finds a cause.
func Lookup(c Cause) (Entry, bool) {
	i := slices.IndexFunc(catalogue, func(e Entry) bool { return e.Cause == c })
	if i < 0 {
		return Entry{}, false
	}
	return catalogue[i], true
}
