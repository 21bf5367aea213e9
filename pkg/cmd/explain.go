package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func newCmdExplain(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CAUSE]",
		Short: "Tell what a cause means and what to do, or list all",
		Long: strings.TrimSpace(`
Tell what a cause means and what to do, or list all causes. Needs no cluster.

The same texts stand in docs/causes.md.`),
		Example: example(`
  # All causes
  kubectl vlan50 explain

  # One of them
  kubectl vlan50 explain delegate-plugin-missing`),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(noArgs(command, args[1:]))
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(causes(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				report.Causes(streams.Out, verdict.Catalogue())
				return nil
			}
			entry, ok := verdict.Lookup(verdict.Cause(args[0]))
			if !ok {
				return usage(unknownCause(args[0]))
			}
			report.Cause(streams.Out, entry)
			return nil
		},
	}
}

func causes() []string {
	var names []string
	for _, entry := range verdict.Catalogue() {
		names = append(names, string(entry.Cause))
	}
	return names
}

// unknownCause names those that share a word with what was typed.
func unknownCause(typed string) error {
	var near []string
	for _, name := range causes() {
		if slices.ContainsFunc(strings.Split(typed, "-"), func(word string) bool { return len(word) > 2 && strings.Contains(name, word) }) {
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("there is no cause %q; 'kubectl vlan50 explain' lists all", typed)
	}
	return fmt.Errorf("there is no cause %q; near it: %s", typed, strings.Join(near, ", "))
}
