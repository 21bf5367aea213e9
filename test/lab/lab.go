//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Lab is the one lab of this machine, up or not.
type Lab struct {
	// dir is the state folder. It lies in the user's cache and is gone when the
	// lab is down.
	dir string
	// pid is the lab's first process as the host sees it, 0 when it is down.
	pid int
}

// errDown is what everything but Up says where no lab runs.
var errDown = errors.New("no lab is up: start one with \"make lab-up\"")

// cacheDir is where the lab keeps its files.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache folder: %w", err)
	}
	return filepath.Join(cache, "kubectl-vlan50"), nil
}

// find looks for the machine's lab.
func find() (*Lab, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("the lab needs root: it makes namespaces, mounts and cgroups")
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: filepath.Join(cache, "lab")}
	l.pid, err = lockHolder(filepath.Join(l.dir, node.LockFile))
	return l, err
}

// Open gives the lab that is up.
func Open() (*Lab, error) {
	l, err := find()
	if err != nil {
		return nil, err
	}
	if l.pid == 0 {
		return nil, errDown
	}
	return l, nil
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

// Kubeconfig is the path of the cluster administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, node.Kubeconfig) }

// AuditLog is the path of the log of all requests to the API server.
func (l *Lab) AuditLog() string { return filepath.Join(l.dir, node.AuditLog) }

// PID is the lab's first process as the host sees it: that of its namespaces.
func (l *Lab) PID() int { return l.pid }

// path is where the host finds a file of the node.
func (l *Lab) path(file string) string {
	return filepath.Join("/proc", strconv.Itoa(l.pid), "root", file)
}

// kubectl is the path of the lab's own kubectl.
func (l *Lab) kubectl() string { return l.path(node.ToolDir + "/kubectl") }
