//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestLockMakesItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "folder", "lock")
	for range 2 {
		release, err := lock(t.Context(), path, func(pid int) { t.Errorf("process %d has it", pid) })
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	letGo := lockByFile(t, path)
	held := func(pid int) { t.Errorf("process %d has it", pid) }

	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, held); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that is held: %v", err)
	}
	time.AfterFunc(250*time.Millisecond, letGo)
	release, err := lock(t.Context(), path, held)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// lockByFile holds the lock as an open file, not as a process: this one could not
// be kept out of its own. No process is told as the holder then.
func lockByFile(t *testing.T, path string) (letGo func()) {
	t.Helper()
	const setLock = 37 // F_OFD_SETLK
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	return func() { file.Close() }
}
