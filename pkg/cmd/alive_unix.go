//go:build unix

package cmd

import (
	"errors"
	"os"
	"syscall"
)

// alive reports whether a process of this machine runs. One that may not be
// signalled runs too, as somebody else.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
