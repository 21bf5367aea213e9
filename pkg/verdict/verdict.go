// Package verdict decides, from evidence alone, whether a canary passed.
// It is pure: no client, no clock, no I/O.
package verdict

import (
	"time"
)

// Outcome is one of three words. Inconclusive is never sold as either of the
// others.
type Outcome string

// The three verdicts.
const (
	Pass         Outcome = "pass"
	Fail         Outcome = "fail"
	Inconclusive Outcome = "inconclusive"
)

// Cause is the stable slug of what was found, an entry of the catalogue.
type Cause string

// Line is one piece of evidence a person can check.
type Line struct {
	// Time is when it happened, zero where unknown.
	Time time.Time
	// Source says where it was read: "event", "pod", "daemonset", "log", ...
	Source string
	Text   string
}

// Verdict is the judgement of one UID.
type Verdict struct {
	Outcome Outcome
	Cause   Cause
	// Message is one paragraph: what happened, to which object.
	Message string
	// Next is what to do now.
	Next string
	// Settled is false while waiting may still change the verdict: a live run
	// goes on, a saved file is judged as it stands.
	Settled bool

	// What was attached; empty where nothing was.
	Node      string
	Network   string
	Interface string
	Addresses []string

	Lines []Line
	// SandboxFailures counts the failed attempts to make this UID's sandbox.
	SandboxFailures int
}
