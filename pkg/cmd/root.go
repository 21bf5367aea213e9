// Package cmd is the command line: flags, help, wiring and exit codes.
package cmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

// Main runs one command line and gives its exit code. The caller owns signals
// (see Signals) and is the only one to exit.
func Main(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	// client-go would log its retries to standard error, between our lines.
	klog.SetLogger(logr.Discard())

	root := NewCmd(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := exitCode(err)
	if err != nil && !alreadyTold(err) {
		fmt.Fprintln(streams.ErrOut, "error: "+report.Line(err.Error()))
	}
	return code
}

// NewCmd builds the whole command tree.
func NewCmd(streams genericiooptions.IOStreams) *cobra.Command {
	configFlags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:   "kubectl-vlan50",
		Short: "Retest the canary of a Multus network and judge it",
		Long: strings.TrimSpace(`
Retest the canary Pod of a Multus network and judge it.

A canary is a bare Pod with one static address on the secondary network, whose
guard proves the network from inside. kubectl vlan50 recreates it safely and
tells pass, fail or inconclusive from the new Pod's own evidence.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(os.Args[0])},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see '%s --help'", err, command.CommandPath()))
	})
	configFlags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newCmdCanary(configFlags, streams),
		newCmdExplain(streams),
		newCmdStatus(configFlags, streams),
		newCmdRollback(configFlags, streams),
		newCmdVersion(configFlags, streams),
		newCmdCompletion(streams),
	)
	root.CompletionOptions.DisableDefaultCmd = true
	refuseUnknown(root)
	return root
}

// refuseUnknown makes a word that is no subcommand a usage error, at any depth;
// cobra alone would print the help and call it success.
func refuseUnknown(command *cobra.Command) {
	if command.HasSubCommands() && command.RunE == nil {
		command.Args = cobra.ArbitraryArgs
		command.RunE = func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Help()
			}
			return usage(fmt.Errorf("there is no command %q; see '%s --help'", args[0], command.CommandPath()))
		}
	}
	for _, child := range command.Commands() {
		refuseUnknown(child)
	}
}

// displayName is how help calls the tool: by its plugin name, unless the binary
// was given another name.
func displayName(argv0 string) string {
	name := strings.TrimSuffix(argv0[strings.LastIndexAny(argv0, `/\`)+1:], ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return "kubectl vlan50"
}
