package rollback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// end turns what stopped a run into what the user is told.
func (r *Rollback) end(ctx context.Context, err error) (Result, error) {
	r.result.Ended = r.Now()
	var failed *failure
	var refusal *canary.Refusal
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return r.result, nil
	case errors.As(err, &refusal) && !r.changed():
		return r.result, err
	case apierrors.IsForbidden(err) && !r.changed():
		return r.result, refusef("nothing was changed: this user lacks a right (%v); ask for config/rbac/rollback.yaml, or use another user", err)
	case errors.Is(cause, canary.ErrDeadline):
		r.result.Outcome = Unfinished
		r.result.Message = fmt.Sprintf("the deadline came first. Last known state: %s. %s", r.lastKnown(err), r.standing())
		r.result.Next = "mend what it waited for, then run the same command again: it goes on from here"
		return r.result, nil
	case canary.LockLost(cause):
		return r.result, refusef("%v; %s", cause, r.standing())
	case cause != nil:
		return r.result, &canary.Interruption{Cause: cause, Left: r.standing()}
	case errors.As(err, &failed):
		r.result.Outcome, r.result.Message = Failed, failed.reason+". "+r.standing()
		r.result.Next = failed.next
		return r.result, nil
	case errors.As(err, &refusal):
		return r.result, refusef("%s (%s)", refusal.Reason, r.standing())
	}
	return r.result, fmt.Errorf("%w (%s)", err, r.standing())
}

// lastKnown is what was waited for when the time ran out.
func (r *Rollback) lastKnown(err error) string {
	if r.lastNote != "" {
		return r.lastNote
	}
	return err.Error()
}

// changed reports whether a step was begun.
func (r *Rollback) changed() bool {
	for _, step := range r.result.Steps {
		if step.State == StepDone || step.State == StepFailed {
			return true
		}
	}
	return false
}

// notef tells what is done, waitf what is being waited for. The same text is
// told once.
func (r *Rollback) notef(step canary.Step, format string, args ...any) {
	r.note(canary.Note{Step: step, Text: fmt.Sprintf(format, args...)})
}

func (r *Rollback) waitf(step canary.Step, format string, args ...any) {
	r.note(canary.Note{Step: step, Text: fmt.Sprintf(format, args...), Passing: true})
}

func (r *Rollback) note(note canary.Note) {
	if note.Text == r.lastNote {
		return
	}
	r.lastNote = note.Text
	note.Time = r.Now()
	r.Notify(note)
}
