package cmd

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newCmdCanary(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "canary",
		Short: "Retest and judge the canary Pod",
	}
	command.AddCommand(newCmdRetest(configFlags, streams), newCmdJudge(configFlags, streams))
	return command
}
