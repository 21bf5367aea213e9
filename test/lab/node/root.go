//go:build linux

package node

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// enterRoot gives the process, and all that it starts, a root file system of
// its own in memory. Of the host it sees the programs (/usr and the like),
// devices and /sys; its programs cannot be written by accident, no folder has to
// be made there, and all is gone with the mount namespace.
func (m machine) enterRoot(state string, tools map[string]string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	root := filepath.Join(state, "root-"+m.name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("lab", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting the root file system: %w", err)
	}
	if err := fillRoot(root, state, tools); err != nil {
		return err
	}
	return pivot(root)
}

func fillRoot(root, state string, tools map[string]string) error {
	for _, dir := range []string{"etc", "home", "lab/bin", "lab/state", "opt/cni/bin", "proc", "root", "run/netns", "tmp", "var/lib", "var/log"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	// containerd names network namespaces by the old path, Multus by the new.
	if err := os.Symlink("/run", root+"/var/run"); err != nil {
		return err
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		if err := share(dir, root+dir, syscall.MS_RDONLY); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/dev", "/sys"} {
		if err := share(dir, root+dir, 0); err != nil {
			return err
		}
	}
	// /sys stays the host's: the cgroup mounts hang on it. /proc is new, it
	// shows this PID namespace.
	if err := syscall.Mount("proc", root+"/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := shieldSettings(root); err != nil {
		return err
	}
	if err := bind(state, root+stateDir); err != nil {
		return err
	}
	for name, path := range tools {
		target := filepath.Join(root+ToolDir, name)
		if err := os.WriteFile(target, nil, 0o755); err != nil {
			return err
		}
		if err := bind(path, target); err != nil {
			return err
		}
	}
	return fillEtc(root)
}

// kubeletSettings are the kernel's settings that a kubelet makes what it likes.
// They are the whole machine's: no namespace has its own.
func kubeletSettings() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// shieldSettings covers those settings with files that hold what the kubelet
// wants to see, so that it never changes the machine's.
func shieldSettings(root string) error {
	for name, value := range kubeletSettings() {
		cover := filepath.Join(root, "lab/settings", name)
		if err := os.MkdirAll(filepath.Dir(cover), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(cover, filepath.Join(root, "proc/sys", name)); err != nil {
			return err
		}
	}
	return nil
}

// share makes a folder of the host visible, or repeats it where it is a
// symlink, as /bin often is.
func share(dir, target string, flags uintptr) error {
	info, err := os.Lstat(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		to, err := os.Readlink(dir)
		if err != nil {
			return err
		}
		return os.Symlink(to, target)
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	if err := bind(dir, target); err != nil || flags == 0 {
		return err
	}
	// A bind mount takes no flags of its own before it is there.
	if err := syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", dir, err)
	}
	return nil
}

func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", from, err)
	}
	return nil
}

// fillEtc writes the few files that programs look for. The host's own name
// servers are of no use here: no network leads to them.
func fillEtc(root string) error {
	for _, name := range []string{"passwd", "group", "ld.so.cache", "nsswitch.conf"} {
		if err := copyFile("/etc/"+name, root+"/etc/"+name, 0o644); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := os.WriteFile(root+"/etc/hosts", []byte("127.0.0.1 localhost\n"+address+" "+Name+"\n"+secondAddress+" "+Second+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(root+"/etc/resolv.conf", nil, 0o644)
}

func copyFile(from, to string, mode os.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}

// pivot makes root the root and lets go of the host's. The result is shared:
// without that, Bidirectional mounts of pods are refused.
func pivot(root string) error {
	old := filepath.Join(root, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := syscall.PivotRoot(root, old); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := syscall.Unmount("/old", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("letting go of the host's root: %w", err)
	}
	if err := os.Remove("/old"); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared: %w", err)
	}
	return nil
}
