//go:build linux

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// cgroupMounts are the cgroup hierarchies of the machine, v1 and v2.
func cgroupMounts() (v1, v2 []string, err error) {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch fields[2] {
		case "cgroup":
			v1 = append(v1, fields[1])
		case "cgroup2":
			v2 = append(v2, fields[1])
		}
	}
	return v1, v2, lines.Err()
}

// passedFile notes, a line each, the files that tell which controllers a
// hierarchy's root hands down, and the controller that the lab added there.
func (l *Lab) passedFile() string { return filepath.Join(l.dir, "cgroups-passed") }

// makeCgroup makes a node's folder in every hierarchy. The kubelet refuses a
// cgroup root that is not there or lacks a controller.
func (l *Lab) makeCgroup(name string) error {
	v1, v2, err := cgroupMounts()
	if err != nil {
		return err
	}
	folder := node.CgroupFolder(name)
	for _, mount := range slices.Concat(v1, v2) {
		if err := os.MkdirAll(filepath.Join(mount, folder), 0o755); err != nil {
			return fmt.Errorf("making the lab's cgroup: %w", err)
		}
	}
	for _, mount := range v1 {
		if err := copyCPUSet(mount, folder); err != nil {
			return err
		}
	}
	for _, mount := range v2 {
		if err := l.passFromRoot(mount); err != nil {
			return err
		}
		passControllers(filepath.Join(mount, filepath.Dir(folder)))
		passControllers(filepath.Join(mount, folder))
	}
	return nil
}

// passFromRoot hands down the controllers of a hierarchy's root, which is the
// machine's own: what was not handed down before is noted first.
func (l *Lab) passFromRoot(mount string) error {
	noted, err := os.OpenFile(l.passedFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer noted.Close()
	for _, controller := range missingControllers(mount) {
		if _, err := fmt.Fprintln(noted, subtreeControl(mount), controller); err != nil {
			return fmt.Errorf("noting what the lab changes in %s: %w", mount, err)
		}
	}
	passControllers(mount)
	return nil
}

// removeCgroups removes the lab's folders, and takes back what their hierarchies'
// roots hand down for them. The note of that stays until it is done.
func (l *Lab) removeCgroups() error {
	if err := removeCgroups(node.CgroupName); err != nil {
		return err
	}
	return l.unpass()
}

// unpass takes back what passFromRoot has handed down. A controller that somebody
// below has begun to use stays: the kernel refuses.
func (l *Lab) unpass() error {
	noted, err := os.ReadFile(l.passedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(noted)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue // it was killed while it wrote, before it changed anything
		}
		if err := os.WriteFile(fields[0], []byte("-"+fields[1]), 0o644); err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("taking the cgroup controller %s back: %w", fields[1], err)
		}
	}
	return nil
}

func subtreeControl(dir string) string { return filepath.Join(dir, "cgroup.subtree_control") }

// missingControllers are those that a v2 folder has and does not hand down.
func missingControllers(dir string) []string {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	hands, err := os.ReadFile(subtreeControl(dir))
	if err != nil {
		return nil
	}
	handed := strings.Fields(string(hands))
	return slices.DeleteFunc(strings.Fields(string(has)), func(c string) bool { return slices.Contains(handed, c) })
}

// copyCPUSet gives the folders of a v1 cpuset, from the outer to the inner, their
// parent's values; empty ones take no process.
func copyCPUSet(mount, folder string) error {
	for _, name := range []string{"cpuset.mems", "cpuset.cpus"} {
		value, err := os.ReadFile(filepath.Join(mount, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, dir := range []string{filepath.Dir(folder), folder} {
			if err := os.WriteFile(filepath.Join(mount, dir, name), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// passControllers hands the v2 controllers of a folder down to its children.
// One that cannot be handed down is left out: the kubelet says which it needs.
func passControllers(dir string) {
	for _, controller := range missingControllers(dir) {
		_ = os.WriteFile(subtreeControl(dir), []byte("+"+controller), 0o644)
	}
}

// removeCgroups removes a folder of every hierarchy, the deepest below it first.
func removeCgroups(folder string) error {
	v1, v2, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, mount := range slices.Concat(v1, v2) {
		if err := removeCgroup(filepath.Join(mount, folder)); err != nil {
			return err
		}
	}
	return nil
}

func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	// The kernel needs a moment to let go of processes that are dead.
	for range 50 {
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("removing the lab's cgroup: %w", err)
}
