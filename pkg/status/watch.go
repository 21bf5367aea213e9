package status

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

const (
	// settleDown lets the changes of one moment be seen together.
	settleDown = 150 * time.Millisecond
	// recheck is how often the same data are judged again: some rules wait for
	// time to pass.
	recheck = time.Second
	// retryLost is how long after a look that failed the next one is taken.
	retryLost = time.Second
	// slowRecheck is how often to look without a change: not everything that a state
	// rests on is watched.
	slowRecheck = 30 * time.Second
	// blindRecheck is how often to look where something may be read and neither
	// listed nor watched.
	blindRecheck = 10 * time.Second
)

// Watch looks now and at each change, until ctx ends or each says that it is
// done. Every second each hears of the same data again, as time alone can
// change what they mean. Once there were data, a server that does not answer is
// told to each and waited for.
func (c *Collector) Watch(ctx context.Context, each func(*Data, error) (done bool, err error)) error {
	running, stop := context.WithCancel(ctx)
	w := &watcher{Collector: *c, ctx: running, changed: make(chan struct{}, 1), followed: map[string]*followed{}}
	defer w.wg.Wait()
	defer stop()
	w.followPods()
	var data *Data
	for {
		fresh, err := w.Collect(running)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && data == nil {
			return err
		}
		if err == nil {
			data = fresh
			w.follow(data)
		}
		if done, err := each(data, err); done || err != nil {
			return err
		}
		if done, err := w.wait(ctx, data, err != nil, each); done || err != nil {
			return err
		}
	}
}

// watcher keeps watches on what the newest data rest on. It holds no state to
// decide from: each change leads to a new look.
type watcher struct {
	Collector
	ctx     context.Context //nolint:containedctx // the lifetime of the watches, which begin and end with what they are on
	wg      sync.WaitGroup
	changed chan struct{}

	followed map[string]*followed
}

// followed is one watch that is under way.
type followed struct {
	stop context.CancelFunc
	err  func() error
}

// wait returns at the next change; meanwhile the same data are judged each
// second.
func (w *watcher) wait(ctx context.Context, data *Data, lost bool, each func(*Data, error) (bool, error)) (bool, error) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	again := w.lookAgain(lost)
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-again:
			return false, nil
		case <-w.changed:
			return false, w.calm(ctx)
		case <-tick.C:
			if lost {
				continue
			}
			if done, err := each(data, nil); done || err != nil {
				return done, err
			}
		}
	}
}

// lookAgain is when to look without a change: soon after a look that failed, and
// now and then, more often where changes cannot be seen.
func (w *watcher) lookAgain(lost bool) <-chan time.Time {
	if lost {
		return time.After(retryLost)
	}
	for _, f := range w.followed {
		if err := f.err(); apierrors.IsForbidden(err) {
			return time.After(blindRecheck)
		}
	}
	return time.After(slowRecheck)
}

// calm waits until the changes of this moment are all there.
func (w *watcher) calm(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settleDown):
	}
	select {
	case <-w.changed:
	default:
	}
	return nil
}

// wake leads to a new look; several changes lead to one.
func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// keep ends the watches that nobody wants any more and begins new ones.
func (w *watcher) keep(wanted map[string]func(context.Context) func() error) {
	for key, f := range w.followed {
		if _, ok := wanted[key]; !ok {
			f.stop()
			delete(w.followed, key)
		}
	}
	for key, start := range wanted {
		if w.followed[key] == nil {
			ctx, cancel := context.WithCancel(w.ctx)
			w.followed[key] = &followed{stop: cancel, err: start(ctx)}
		}
	}
}

// mirrorErr adapts a Mirror: only its last error is asked for.
func mirrorErr[T any](m *cluster.Mirror[T]) func() error { return m.Err }
