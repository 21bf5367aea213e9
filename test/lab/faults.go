//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// KillDaemon ends the Multus daemon as the OOM killer would, without a chance
// to remove its conf. The daemon shares the node's PID namespace.
func (l *Lab) KillDaemon() error {
	own, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(l.pid), "ns/pid"))
	if err != nil {
		return err
	}
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, path := range names {
		name, _ := os.ReadFile(path)
		namespace, _ := os.Readlink(filepath.Join(filepath.Dir(path), "ns/pid"))
		if namespace != own || strings.TrimSpace(string(name)) != "multus-daemon" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.New("no Multus daemon runs in the lab")
}

// HoldAddress makes the switch answer for the canary's address.
func (l *Lab) HoldAddress(ctx context.Context) error {
	return l.InNode(ctx, "ip", "-netns", node.Switch, "addr", "replace", node.CanaryAddress+"/32", "dev", node.SwitchPort)
}

// MuteSwitch makes the switch answer no ARP request any more: the gateway is
// there, and cannot be reached.
func (l *Lab) MuteSwitch(ctx context.Context) error {
	return l.InNode(ctx, "ip", "-netns", node.Switch, "link", "set", node.SwitchPort, "arp", "off")
}

// MendSwitch ends HoldAddress and MuteSwitch.
func (l *Lab) MendSwitch(ctx context.Context) error {
	return errors.Join(
		l.InNode(ctx, "ip", "-netns", node.Switch, "addr", "flush", "dev", node.SwitchPort, "to", node.CanaryAddress+"/32"),
		l.InNode(ctx, "ip", "-netns", node.Switch, "link", "set", node.SwitchPort, "arp", "on"),
	)
}

// RemovePlugins takes away the plugins that k3s does not ship, as on a node
// where no Multus ever ran.
func (l *Lab) RemovePlugins() error {
	for _, name := range []string{"macvlan", "static"} {
		if err := l.RemoveNode(filepath.Join(node.BinDir, name)); err != nil {
			return err
		}
	}
	return nil
}
