package verdict

import (
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// CrossCheck takes back a pass or a fail whose ground moved during the attempt:
// before is the configuration just before the canary was created, after the one
// at the time of the verdict. What is inconclusive already stays so, with the
// changes added to its lines.
func CrossCheck(v Verdict, before, after evidence.Fingerprint) Verdict {
	changes := before.Diff(after)
	if len(changes) == 0 {
		return unlessUnseen(v, before.Unseen(after))
	}
	for _, change := range changes {
		v.Lines = append(v.Lines, Line{Source: "configuration", Text: change})
	}
	// A daemon that is killed again and again is the change itself.
	if v.Outcome == Inconclusive || v.Cause == DaemonOOM {
		return v
	}
	v.Message = "the result (" + string(v.Outcome) + ", " + string(v.Cause) + ") does not count, because the configuration changed during the attempt: " +
		strings.Join(changes, "; ")
	v.Outcome, v.Cause = Inconclusive, StaleAttempt
	v.Next = "wait until nothing changes any more, then run the retest again"
	return v
}

// unlessUnseen takes back a pass or a fail of which it is not known whether its
// ground moved.
func unlessUnseen(v Verdict, unseen []string) Verdict {
	if len(unseen) == 0 || v.Outcome == Inconclusive {
		return v
	}
	v.Message = "the result (" + string(v.Outcome) + ", " + string(v.Cause) + ") does not count, because at its end it could not be read whether this had changed: " +
		strings.Join(unseen, ", ")
	v.Outcome, v.Cause = Inconclusive, EvidenceIncomplete
	v.Next = "see that the API server answers and that you may read them, then run the retest again"
	return v
}

// Advice is what the catalogue says to do about a cause, with the names that
// the evidence knows filled in.
func Advice(c Cause, e evidence.Evidence) string {
	entry, _ := Lookup(c)
	return newScene(&e, e.CollectedAt).fill(entry.Next, names{})
}
