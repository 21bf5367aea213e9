//go:build linux

package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Shell is a shell on the host, or a command there, that reaches the lab: with
// its network, its kubeconfig and its kubectl.
func (l *Lab) Shell(ctx context.Context, argv ...string) *exec.Cmd {
	if len(argv) == 0 {
		argv = []string{shell()}
	}
	args := []string{"--target", strconv.Itoa(l.pid), "--net", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	path := filepath.Dir(l.kubectl()) + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.path(node.InnerKubeconfig), "PATH="+path, l.kubectlCache())
	return cmd
}

func shell() string {
	if shell := os.Getenv("SHELL"); shell != "" {
		return shell
	}
	return "/bin/sh"
}
