//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock waits for a lock and tells held, once for each, which process has it. It
// is the kind of lock whose holder lockHolder can tell.
func lock(ctx context.Context, path string, held func(pid int)) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := waitLock(ctx, file, held); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

func waitLock(ctx context.Context, file *os.File, held func(pid int)) error {
	seen := 0
	for {
		err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		pid, err := lockHolder(file.Name())
		if err != nil {
			return err
		}
		if pid > 0 && pid != seen {
			seen = pid
			held(pid)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
