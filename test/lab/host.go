//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Check tells why no lab can run on this machine; nil where one can.
func Check(ctx context.Context) error {
	if _, err := find(); err != nil {
		return err
	}
	return checkHost(ctx)
}

// checkHost looks, before anything is built, for what the lab cannot bring
// along: programs of the machine's own, namespaces and cgroups.
func checkHost(ctx context.Context) error {
	for _, host := range [][2]string{{"ip", "iproute2"}, {"nsenter", "util-linux"}} {
		if lookIn("/", packaged{name: host[0]}) == "" {
			return fmt.Errorf("the lab needs the program %q: install the package %s", host[0], host[1])
		}
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: node.Namespaces}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the lab needs namespaces of its own, which this machine refuses (a container without the rights to make them?): %w", err)
	}
	v1, v2, err := cgroupMounts()
	if err != nil {
		return err
	}
	if len(v1)+len(v2) == 0 {
		return errors.New("the lab needs cgroups, and none are mounted on this machine")
	}
	return nil
}
