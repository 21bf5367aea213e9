//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Lab is the one lab of this machine, up or not.
type Lab struct {
	// Node is the first one, which is always there.
	Node
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
	first, err := findNode(filepath.Join(cache, "lab"), node.Name)
	return &Lab{first}, err
}

// Open gives the lab that is up.
func Open() (*Lab, error) {
	l, err := find()
	if err != nil {
		return nil, err
	}
	if l.pid == 0 {
		if err := l.elsewhere(); err != nil {
			return nil, err
		}
		return nil, errDown
	}
	return l, nil
}

// Kubeconfig is the path of the cluster administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, node.Kubeconfig) }

// AuditLog is the path of the log of all requests to the API server.
func (l *Lab) AuditLog() string { return filepath.Join(l.dir, node.AuditLog) }

// kubectl is the path of the lab's own kubectl.
func (l *Lab) kubectl() string { return l.path(node.ToolDir + "/kubectl") }
