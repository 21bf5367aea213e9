package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

func newCmdRollbackStatus(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var site rollbackSite
	var progress progressFlags
	result := newResultFlags()
	command := &cobra.Command{
		Use:   "status",
		Short: "Tell whether Multus is gone and each node is clean",
		Long: strings.TrimSpace(`
Tell whether Multus is gone, whether each node is clean, and what is left:
objects, confs on nodes, kept copies, Pods of a run that was killed. What others
use as well stays, and does not count as left.

Nothing is changed. To look at a node's CNI conf dir a short-lived Pod is run
there that sees that folder alone, read-only; --node-access=manual does without.
It ends with 0 whenever the state could be read, clean or not: ask "-o json" for
status.clean.`),
		Example: example(`
  # What is left, on every node
  kubectl vlan50 rollback status

  # For a script
  kubectl vlan50 rollback status -o jsonpath='{.status.clean}'`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := result.toPrinter(streams)
			if err != nil {
				return err
			}
			teller, err := progress.toProgress(streams.ErrOut)
			if err != nil {
				return err
			}
			return runRollbackStatus(command.Context(), configFlags, &site, printer, teller)
		},
	}
	site.add(command)
	result.add(command)
	progress.add(command)
	return command
}

func runRollbackStatus(ctx context.Context, configFlags *genericclioptions.ConfigFlags, site *rollbackSite, printer *resultPrinter, progress report.Progress) error {
	r, timeout, err := site.toRollback(configFlags, progress)
	if err != nil {
		progress.Close()
		return err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, canary.ErrDeadline)
		defer cancel()
	}
	status, err := r.Inspect(ctx)
	progress.Close()
	if err != nil {
		return reachError(err)
	}
	document := report.RollbackStatus(r.Subject(), status)
	return printer.show(document, func(text report.Text) { text.RollbackStatus(document) })
}
