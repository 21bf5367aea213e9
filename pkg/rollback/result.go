package rollback

import (
	"slices"
	"time"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes. A run that ended in an error is unfinished.
const (
	Done       Outcome = "done"
	Clean      Outcome = "clean"
	Failed     Outcome = "failed"
	Unfinished Outcome = "unfinished"
)

// Result is what a run did.
type Result struct {
	Outcome       Outcome
	Message, Next string
	Plan          Plan
	// Steps are those of the plan, with what became of them.
	Steps []StepResult
	Nodes []NodeResult
	// Saved is the local folder with the manifests of what was deleted.
	Saved          string
	Started, Ended time.Time
}

// Changed reports whether a step was begun.
func (r Result) Changed() bool {
	return slices.ContainsFunc(r.Steps, func(s StepResult) bool { return s.State == StepDone || s.State == StepFailed })
}

// StepState is what became of a step.
type StepState string

// The states of a step.
const (
	StepPending StepState = "pending"
	StepDone    StepState = "done"
	StepKept    StepState = "kept"
	StepFailed  StepState = "failed"
)

// StepResult is a step and what became of it.
type StepResult struct {
	Step
	State   StepState
	Message string
	At      time.Time
}

// NodeResult is what a run left on a node.
type NodeResult struct {
	Name, ConfDir string
	// Primary is the conf that is in effect now.
	Primary string
	// Backups are the copies that this run made or relied on.
	Backups []Backup
	// Probed: an ordinary Pod got Ready there without Multus.
	Probed bool
	Notes  []string
}
