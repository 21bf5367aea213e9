//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// dieWithin is far above what the kernel takes to end all the lab's processes.
const dieWithin = time.Minute

// reapWithin is how long a dead process may wait for its parent to notice.
const reapWithin = 2 * time.Second

// Down ends the lab, or removes what a crashed one has left. A start that is under
// way is ended first: it would bring up the next lab.
func Down(ctx context.Context, progress io.Writer) error {
	l, err := find()
	if err != nil {
		return err
	}
	if l.inShell() {
		return errors.New("this is a shell of the lab: leave it first (exit), then run make lab-down")
	}
	release, err := lock(ctx, l.startLock(), func(pid int) {
		fmt.Fprintf(progress, "ending the start of the lab in process %d\n", pid)
		_ = syscall.Kill(pid, syscall.SIGTERM) // where it has just ended, the lock is free
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of a start of the lab: %w", err)
	}
	defer release()
	if l, err = find(); err != nil {
		return err
	}
	was := l.pid
	if err := l.kill(); err != nil {
		return err
	}
	if err := l.clean(progress); err != nil {
		return err
	}
	if was == 0 {
		fmt.Fprintln(progress, "no lab was up; nothing of one is left")
	} else {
		fmt.Fprintln(progress, "the lab is down")
	}
	return nil
}

// clean removes what outlives the lab's processes. Mounts, links and namespaces
// do not: they went with the last of them. The file that Up locks stays in the
// cache: one that is held must not be replaced by another.
func (l *Lab) clean(progress io.Writer) error {
	if err := l.elsewhere(); err != nil {
		return err
	}
	if err := l.endShells(progress); err != nil {
		return err
	}
	if err := l.removeCgroups(); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(l.dir), os.RemoveAll(l.failedDir()))
}

// kill ends the first process of the lab's PID namespace, and so all of them.
// It heeds no signal but SIGKILL.
func (l *Lab) kill() error {
	if l.pid == 0 {
		return nil
	}
	if err := syscall.Kill(l.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending the lab: %w", err)
	}
	start := time.Now()
	for gone := false; !gone; {
		var zombie bool
		gone, zombie = state(l.pid)
		// All is over by then; only its parent has not looked yet.
		gone = gone || zombie && time.Since(start) > reapWithin
		if time.Since(start) > dieWithin {
			return fmt.Errorf("the lab's process %d has not ended %s after it was killed", l.pid, dieWithin)
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.pid = 0
	return nil
}

// state reports whether a process is gone, or has ended and is a zombie. The
// first process of a PID namespace becomes one only when all others in it are
// gone.
func state(pid int) (gone, zombie bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true, false
	}
	// The state follows the program's name, which may hold anything.
	_, rest, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	return false, bytes.HasPrefix(rest, []byte("Z")) || bytes.HasPrefix(rest, []byte("X"))
}
