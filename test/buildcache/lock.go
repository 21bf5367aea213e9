package buildcache

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// silentFor is how long a wait for another build is not worth a word.
const silentFor = time.Second

// lock waits for a lock as long as ctx lives, and says so where that takes a while.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	type taken struct {
		unlock func()
		err    error
	}
	got := make(chan taken, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(path).Lock()
		got <- taken{unlock, err}
	}()
	long := time.After(silentFor)
	for {
		select {
		case lock := <-got:
			return lock.unlock, lock.err
		case <-long:
			fmt.Fprintln(progress, "waiting for another build")
		case <-ctx.Done():
			go func() {
				if late := <-got; late.err == nil {
					late.unlock()
				}
			}()
			return nil, context.Cause(ctx)
		}
	}
}
