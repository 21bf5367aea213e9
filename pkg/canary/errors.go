package canary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Refusal is a guard that did not hold: nothing was done that it forbids.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

func refusef(format string, args ...any) error { return &Refusal{Reason: fmt.Sprintf(format, args...)} }

func isRefusal(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal)
}

// Interruption is a run that was cancelled, and what it left behind.
type Interruption struct {
	Cause error
	// Left says what state the cluster was left in.
	Left string
}

func (i *Interruption) Error() string { return fmt.Sprintf("interrupted: %s", i.Left) }

func (i *Interruption) Unwrap() error { return i.Cause }

// explain turns an error into what the user is told: an interruption says what
// it leaves behind, and so does any trouble after the first change.
func (r *Retest) explain(ctx context.Context, err error) error {
	var lost errLost
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case isRefusal(err):
		return err
	case errors.As(cause, &lost):
		return refusef("%s; %s", lost, r.state)
	case cause != nil && !errors.Is(cause, ErrDeadline):
		return &Interruption{Cause: cause, Left: r.state}
	}
	return fmt.Errorf("%w (%s)", err, r.state)
}

// uncut bounds a request that Ctrl-C does not cut short: whether a write has
// happened must be known.
func uncut(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// age is how long ago something was, to the second.
func age(now, then time.Time) time.Duration { return now.Sub(then).Round(time.Second) }

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
