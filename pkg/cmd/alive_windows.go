package cmd

import "os"

// alive reports whether a process of this machine runs: on Windows one that
// does not cannot be opened.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = process.Release()
	return true
}
