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

// makeCgroup makes a node's folder in every hierarchy. The kubelet refuses a
// cgroup root that is not there or lacks a controller.
func makeCgroup(name string) error {
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
		passControllers(mount)
		passControllers(filepath.Join(mount, filepath.Dir(folder)))
		passControllers(filepath.Join(mount, folder))
	}
	return nil
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
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
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
