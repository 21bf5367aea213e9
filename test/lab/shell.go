//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Shell is a shell on the host, or a command there, that reaches the lab: with
// its network, its kubeconfig, its kubectl and the project's plugin.
func (l *Lab) Shell(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		argv = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	root, err := buildcache.Root(ctx)
	if err != nil {
		return nil, err
	}
	programs, err := l.shellPrograms()
	if err != nil {
		return nil, err
	}
	args := []string{"--target", strconv.Itoa(l.pid), "--net", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	path := []string{programs, filepath.Join(root, "bin"), os.Getenv("PATH")}
	upper, lower := os.Getenv("NO_PROXY"), os.Getenv("no_proxy")
	cmd.Env = append(os.Environ(), shellVariable+"="+l.dir, "KUBECONFIG="+l.path(node.InnerKubeconfig), l.kubectlCache(),
		"PATH="+strings.Join(path, string(os.PathListSeparator)),
		// Programs read the one or the other, some fall back to the second.
		"NO_PROXY="+unproxied(cmp.Or(upper, lower)), "no_proxy="+unproxied(cmp.Or(lower, upper)))
	return cmd, nil
}

// shellPrograms is the folder of what a shell finds first: the lab's kubectl alone,
// as others of the node's programs would hide the machine's own.
func (l *Lab) shellPrograms() (string, error) {
	dir := filepath.Join(l.dir, "shell")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(l.kubectl(), filepath.Join(dir, "kubectl")); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("laying out the shell: %w", err)
	}
	return dir, nil
}

// unproxied adds the lab's network to a list of what is reached without a proxy.
func unproxied(list string) string {
	return strings.TrimPrefix(list+","+node.Network, ",")
}

// quote makes a word of what the shell would take apart or expand.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:,@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
