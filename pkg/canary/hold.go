package canary

import (
	"context"
	"errors"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// Hold is the canary's lock for a command that is no retest: while it is held
// no retest begins, and it cannot be had while one runs.
type Hold struct {
	Clients *cluster.Clients
	Canary  evidence.Ref
	Holder  string
	Process Process
	Notify  func(Note)
	Now     func() time.Time
}

// Acquire takes the lock, or refuses and says who has it. The returned context
// ends when the lock is lost; release gives it up.
func (h Hold) Acquire(ctx context.Context) (run context.Context, release func(), err error) {
	r := &Retest{
		Clients: h.Clients, Canary: h.Canary, Holder: h.Holder, Process: h.Process, Notify: h.Notify, Now: h.Now,
	}
	run, held, err := r.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return run, held.unlock, nil
}

// LockLost reports whether a context ended because its lock was lost.
func LockLost(cause error) bool { return errors.As(cause, new(errLost)) }
