//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// multusWithin is how long the first start of Multus may take.
const multusWithin = 2 * time.Minute

// Node is one node of the lab, up or not.
type Node struct {
	name string
	// dir is the lab's state folder. It lies in the user's cache and is gone when
	// the lab is down.
	dir string
	// pid is the node's first process as the host sees it, 0 when it is down.
	pid int
}

// findNode looks whether a node runs.
func findNode(dir, name string) (Node, error) {
	pid, err := lockHolder(filepath.Join(dir, node.LockFile(name)))
	return Node{name: name, dir: dir, pid: pid}, err
}

// lockHolder asks the kernel who holds the lock. Unlike a PID in a file, the
// answer cannot be out of date.
func lockHolder(path string) (int, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("looking who holds %s: %w", path, err)
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

// PID is the node's first process as the host sees it: that of its namespaces.
func (n Node) PID() int { return n.pid }

// path is where the host finds a file of the node.
func (n Node) path(file string) string {
	return filepath.Join("/proc", strconv.Itoa(n.pid), "root", file)
}

// NodeCommand is a command inside the node: its files, processes and network.
func (n Node) NodeCommand(ctx context.Context, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(n.pid), "--mount", "--pid", "--net", "--ipc", "--uts", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Env = append(node.Environment(), "TERM="+os.Getenv("TERM"), "KUBECONFIG="+node.InnerKubeconfig)
	cmd.Dir = "/"
	return cmd
}

// InNode runs a command in the node to its end.
func (n Node) InNode(ctx context.Context, argv ...string) error {
	if out, err := n.NodeCommand(ctx, argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("in the node: %s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ReadNode reads a file of the node.
func (n Node) ReadNode(path string) (string, error) {
	data, err := os.ReadFile(n.path(path))
	return string(data), err
}

// WriteNode writes a file of the node in place, as Multus and k3s write theirs.
func (n Node) WriteNode(path, content string) error {
	return os.WriteFile(n.path(path), []byte(content), 0o600)
}

// RenameNode renames a file of the node.
func (n Node) RenameNode(from, to string) error {
	return os.Rename(n.path(from), n.path(to))
}

// RemoveNode removes a file of the node, or does nothing.
func (n Node) RemoveNode(path string) error {
	if err := os.Remove(n.path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WaitConf waits until Multus has written its CNI conf.
func (n Node) WaitConf(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, multusWithin)
	defer cancel()
	for {
		if info, err := os.Stat(n.path(node.MultusConf)); err == nil && info.Size() > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %s from Multus: %w", node.MultusConf, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
