//go:build linux

package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// ofProcesses reads a file of NUL-ended entries of every process.
func ofProcesses(file string) (map[int][]string, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		return nil, err
	}
	all := map[int][]string{}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		// A process that has just ended has none.
		if data, err := os.ReadFile(path); err == nil {
			all[pid] = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		}
	}
	return all, nil
}

// elsewhere is an error where a lab runs that has its files in another cache
// folder: a machine has one lab, and its cgroups are not this one's to remove.
func (l *Lab) elsewhere() error {
	lines, err := ofProcesses("cmdline")
	if err != nil {
		return err
	}
	for pid, line := range lines {
		if state := node.StateFolder(line); state != "" && state != l.dir {
			cache := filepath.Dir(filepath.Dir(state))
			return fmt.Errorf("a lab runs with another cache folder (process %d): end it first with XDG_CACHE_HOME=%s make lab-down", pid, quote(cache))
		}
	}
	return nil
}

// shellVariable marks the processes of a lab shell with the lab's state folder.
const shellVariable = "VLAN50_LAB"

// inShell reports whether this process was started from a shell of the lab.
func (l *Lab) inShell() bool { return os.Getenv(shellVariable) == l.dir }

// shellProcesses are the processes that were started from shells of the lab.
func (l *Lab) shellProcesses() ([]int, error) {
	environments, err := ofProcesses("environ")
	if err != nil {
		return nil, err
	}
	var pids []int
	for pid, environment := range environments {
		if pid != os.Getpid() && slices.Contains(environment, shellVariable+"="+l.dir) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// hangUpWithin is how long a process of a shell may take to end by itself.
const hangUpWithin = time.Second

// endShells ends what was started from shells of the lab: it holds the lab's
// network.
func (l *Lab) endShells(progress io.Writer) error {
	start, ended := time.Now(), map[int]bool{}
	for {
		pids, err := l.shellProcesses()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		if time.Since(start) > dieWithin {
			return fmt.Errorf("the process %d of a lab shell has not ended %s after it was killed", pids[0], dieWithin)
		}
		for _, pid := range pids {
			switch {
			case time.Since(start) > hangUpWithin:
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
			case !ended[pid]:
				_ = syscall.Kill(pid, syscall.SIGHUP)
			}
			ended[pid] = true
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(ended) > 0 {
		fmt.Fprintf(progress, "ended %d processes of lab shells\n", len(ended))
	}
	return nil
}
