//go:build lab && linux

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// startWithin is how long the lab may take to start, once it is built.
const startWithin = 30 * time.Second

// endWithin is how long a start that was ended may take to say so.
const endWithin = 10 * time.Second

// TestLeavesNothing compares the machine before and after the lab, however it
// ended.
func TestLeavesNothing(t *testing.T) {
	for _, end := range []struct {
		name string
		do   func(*testing.T)
		// says is a part of what lab-down says then.
		says string
	}{
		{"up and down", func(t *testing.T) { t.Helper(); up(t) }, "the lab is down"},
		{"two nodes", func(t *testing.T) {
			t.Helper()
			if _, err := up(t).Join(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "the lab is down"},
		{"the lab crashed", crash, "no lab was up"},
		{"the start was interrupted", interruptStart, "no lab was up"},
		{"the start was killed", killStart, ""},
		{"lab-down during the start", downDuringStart, "no lab was up"},
		{"a lab shell left something running", func(t *testing.T) { t.Helper(); leaveInShell(t, up(t)) }, "ended 2 processes of lab shells"},
		{"a lab shell left something running, and the lab crashed", func(t *testing.T) { t.Helper(); leaveInShell(t, up(t)); crash(t) }, "ended 2 processes of lab shells"},
	} {
		t.Run(end.name, func(t *testing.T) {
			down(t)
			before := machine(t.Fatal)
			end.do(t)
			if said := down(t); !strings.Contains(said, end.says) {
				t.Errorf("lab-down does not say %q:\n%s", end.says, said)
			}
			if diff := cmp.Diff(snapshot{}, machine(t.Fatal).without(before)); diff != "" {
				t.Errorf("the lab left something:\n%s", diff)
			}
			if _, err := lab.Open(); err == nil {
				t.Error("a lab is still up")
			}
		})
	}
	up(t)
}

func up(t *testing.T) *lab.Lab {
	t.Helper()
	start := time.Now()
	l, err := lab.Up(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	t.Logf("up in %s", took.Round(100*time.Millisecond))
	// CI has other work beside it.
	if !testing.Short() && took > startWithin {
		t.Errorf("the lab took longer than %s to start", startWithin)
	}
	return l
}

func down(t *testing.T) (said string) {
	t.Helper()
	var words bytes.Buffer
	if err := lab.Down(t.Context(), io.MultiWriter(&words, t.Output())); err != nil {
		t.Fatal(err)
	}
	return words.String()
}

// crash ends the lab's first process behind its back.
func crash(t *testing.T) {
	t.Helper()
	l := up(t)
	if err := syscall.Kill(l.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Kill(l.PID(), 0) != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the lab lives on without its first process")
		}
	}
}

// interruptStart cancels a start while the cluster comes up.
func interruptStart(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := lab.Up(ctx, progress{t.Output(), cancel}); err == nil {
		t.Fatal("the lab was up before it could be interrupted")
	}
}

// killStart kills a start while it waits for Multus.
func killStart(t *testing.T) {
	t.Helper()
	start := startUp(t, "waiting for Multus")
	if err := start.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = start.Wait()
}

// downDuringStart ends the lab while another process starts it.
func downDuringStart(t *testing.T) {
	t.Helper()
	start := startUp(t, "importing images")
	said := down(t)
	if want := fmt.Sprintf("ending the start of the lab in process %d\n", start.Process.Pid); strings.Count(said, want) != 1 {
		t.Errorf("lab-down does not say %q once:\n%s", want, said)
	}
	ended := make(chan struct{})
	go func() {
		_ = start.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		if code := start.ProcessState.ExitCode(); code != 1 {
			t.Errorf("the start ended with %d, want 1", code)
		}
	case <-time.After(endWithin):
		t.Error("the start goes on after lab-down")
	}
}

// leaveInShell leaves two processes running that a shell of the lab has started,
// one of which heeds no hang-up.
func leaveInShell(t *testing.T, l *lab.Lab) {
	t.Helper()
	cmd, err := l.Shell(t.Context(), "sh", "-c", "sleep 1000 & trap '' HUP; sleep 1000 &")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// progress interrupts once the manifests are applied.
type progress struct {
	io.Writer
	interrupt func()
}

func (p progress) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "applying the manifests") {
		p.interrupt()
	}
	return p.Writer.Write(text)
}

// snapshot is what a lab could leave on a machine.
type snapshot struct {
	Namespaces, Processes, Mounts, Links, Cgroups, Files, Settings []string
}

// without leaves only what was not there before: others may end meanwhile.
func (s snapshot) without(before snapshot) snapshot {
	return snapshot{
		Namespaces: added(before.Namespaces, s.Namespaces), Processes: added(before.Processes, s.Processes),
		Mounts: added(before.Mounts, s.Mounts), Links: added(before.Links, s.Links),
		Cgroups: added(before.Cgroups, s.Cgroups), Files: added(before.Files, s.Files),
		Settings: added(before.Settings, s.Settings),
	}
}

func added(before, after []string) []string {
	var all []string
	for _, item := range after {
		if _, found := slices.BinarySearch(before, item); !found {
			all = append(all, item)
		}
	}
	return all
}

func machine(fail func(...any)) snapshot {
	cache, err := os.UserCacheDir()
	if err != nil {
		fail(err)
	}
	cache = filepath.Join(cache, "kubectl-vlan50")
	namespaces, running := processes(fail)
	s := snapshot{
		Namespaces: namespaces, Processes: running,
		Mounts: mounts(fail), Links: links(fail), Cgroups: cgroups(fail), Files: files(fail, cache), Settings: settings(fail),
	}
	for _, list := range [][]string{s.Namespaces, s.Processes, s.Mounts, s.Links, s.Cgroups, s.Files, s.Settings} {
		slices.Sort(list)
	}
	return s
}

// processes gives the namespaces that any process is in, and the processes of
// the lab's programs.
func processes(fail func(...any)) (namespaces, running []string) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		fail(err)
	}
	for _, link := range links {
		// A process that has just ended has none.
		if target, err := os.Readlink(link); err == nil && !slices.Contains(namespaces, target) {
			namespaces = append(namespaces, target)
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		fail(err)
	}
	for _, path := range lines {
		data, _ := os.ReadFile(path)
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if strings.HasPrefix(line, "vlan50-lab") || strings.HasPrefix(line, node.ToolDir) {
			running = append(running, line)
		}
	}
	return namespaces, running
}

func mounts(fail func(...any)) []string {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		fail(err)
	}
	return slices.Collect(strings.Lines(string(data)))
}

func links(fail func(...any)) []string {
	interfaces, err := net.Interfaces()
	if err != nil {
		fail(err)
	}
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	return names
}

// cgroups are the folders a kubelet makes, in any hierarchy.
func cgroups(fail func(...any)) []string {
	return walk(fail, "/sys/fs/cgroup", func(path string, entry fs.DirEntry) bool {
		return entry.IsDir() && (strings.Contains(path, node.CgroupName) || strings.Contains(path, "kubepods"))
	})
}

// files are those of the folders that clusters and package managers write to,
// and the lab's own in the cache that are of one run.
func files(fail func(...any), cache string) []string {
	var all []string
	home, err := os.UserHomeDir()
	if err != nil {
		fail(err)
	}
	for _, dir := range []string{"/etc", "/opt", "/run", "/usr/libexec", "/usr/local/bin", "/var/lib", "/var/log", filepath.Join(home, ".kube")} {
		all = append(all, walk(fail, dir, func(string, fs.DirEntry) bool { return true })...)
	}
	return append(all, walk(fail, cache, func(path string, _ fs.DirEntry) bool {
		// The lock of a start stays, as one that is held must not be replaced.
		lab := filepath.Join(cache, "lab")
		return strings.HasPrefix(path, lab) && path != lab+".up"
	})...)
}

// settings are the kernel's, as far as they are no counters: those of memory
// and of panics belong to the whole machine, and a kubelet likes to change them;
// what a cgroup hierarchy's root hands down is needed by a kubelet as well.
func settings(fail func(...any)) []string {
	var all []string
	for _, pattern := range []string{
		"/proc/sys/vm/*", "/proc/sys/kernel/panic*", "/proc/sys/kernel/keys/*", "/proc/sys/net/ipv4/ip_forward",
		"/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/*/cgroup.subtree_control",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			fail(err)
		}
		for _, path := range paths {
			// Some can be written only.
			if value, err := os.ReadFile(path); err == nil {
				all = append(all, path+" = "+strings.TrimSpace(string(value)))
			}
		}
	}
	return all
}

func walk(fail func(...any), root string, wanted func(string, fs.DirEntry) bool) []string {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && wanted(path, entry) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		fail(err)
	}
	return found
}
