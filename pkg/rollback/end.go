package rollback

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// end turns what stopped a run into what the user is told. What a run has done
// is in the result, whether it ended by itself or not.
func (r *Rollback) end(ctx context.Context, err error) (Result, error) {
	r.result.Ended = r.Now()
	if err = r.ending(ctx, err); err != nil {
		r.result.Outcome, r.result.Message = Unfinished, err.Error()
		r.result.Next = "run the same command again: it goes on from here"
	}
	return r.result, err
}

func (r *Rollback) ending(ctx context.Context, err error) error {
	var failed *failure
	var refusal *canary.Refusal
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal) && !r.result.Changed():
		return err
	case apierrors.IsForbidden(err) && !r.result.Changed():
		return refusef("nothing was changed: this user lacks a right (%v); ask for config/rbac/rollback.yaml, or use another user", err)
	case errors.Is(cause, canary.ErrDeadline):
		r.result.Outcome = Unfinished
		r.result.Message = fmt.Sprintf("the deadline came first. Last known state: %s. %s", r.lastKnown(err), r.standing())
		r.result.Next = "mend what it waited for, then run the same command again: it goes on from here"
		return nil
	case canary.LockLost(cause):
		return refusef("%v; %s", cause, r.standing())
	case cause != nil:
		return &canary.Interruption{Cause: cause, Left: r.standing()}
	case errors.As(err, &failed):
		r.result.Outcome, r.result.Message = Failed, failed.reason+". "+r.standing()
		r.result.Next = failed.next
		return nil
	case errors.As(err, &refusal):
		return refusef("%s (%s)", refusal.Reason, r.standing())
	}
	return fmt.Errorf("%w (%s)", err, r.standing())
}

// lastKnown is what was waited for when the time ran out.
func (r *Rollback) lastKnown(err error) string {
	if r.lastNote != "" {
		return r.lastNote
	}
	return err.Error()
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
