//go:build linux

package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Status prints what runs, what stands in the CNI conf folder and what the
// cluster says of the reference site.
func (l *Lab) Status(ctx context.Context, out io.Writer) error {
	services, err := l.Services(ctx)
	if err != nil {
		return fmt.Errorf("the lab is up but does not answer: %w", err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "lab\tup (process %d)\n", l.pid)
	for _, service := range services {
		state := "ended: see " + filepath.Join(l.dir, node.LogDir, service.Name+".log")
		if service.Running {
			state = "running for " + time.Since(service.Since).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\n", service.Name, state)
	}
	fmt.Fprintf(table, "CNI confs\t%s\n", l.confs())
	fmt.Fprintf(table, "kubeconfig\t%s\n", l.Kubeconfig())
	if err := table.Flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	pods, err := l.Kubectl(ctx, "get", "nodes,daemonsets,pods", "--all-namespaces")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s", pods)
	return err
}

// confs lists the CNI confs in the order that containerd sees them.
func (l *Lab) confs() string {
	entries, err := os.ReadDir(l.path(node.ConfDir))
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

// Usage says how to work with the lab, from the top of the project.
func (l *Lab) Usage(out io.Writer) {
	fmt.Fprintf(out, `The lab is up. Reach it from any terminal with:
  export KUBECONFIG=%s
  bin/kubectl-vlan50 canary retest
"make lab-shell" opens a shell with that set and the lab's network, where "kubectl" and
"kubectl vlan50" work.
`, quote(l.Kubeconfig()))
}
