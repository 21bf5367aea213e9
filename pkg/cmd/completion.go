package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// completeScript is what kubectl runs for completion: an executable of this
// name on PATH. krew links the plugin alone, so users put it there.
const (
	completeName   = "kubectl_complete-vlan50"
	completeScript = `#!/bin/sh
# Completion of kubectl vlan50: kubectl runs this with the words typed so far.
exec kubectl vlan50 __complete "$@"
`
	// Windows finds an executable by its extension.
	completeBatch = "@rem Completion of kubectl vlan50: kubectl runs this with the words typed so far.\r\n@kubectl vlan50 __complete %*\r\n"
)

// completeFile is the executable's name and content on an operating system.
func completeFile(goos string) (name, content string) {
	if goos == "windows" {
		return completeName + ".bat", completeBatch
	}
	return completeName, completeScript
}

func newCmdCompletion(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print or install shell completion",
		Long: strings.TrimSpace(`
Print or install shell completion.

"completion kubectl" is for use as a plugin: kubectl completes a plugin by an
executable named ` + completeName + ` on PATH, whatever the shell. The other
forms are for a binary that is called by its own name.`),
		Example: example(`
  # Complete "kubectl vlan50 ..." wherever kubectl itself is completed
  kubectl vlan50 completion kubectl --install ~/.local/bin

  # Complete the bare binary in bash
  source <(kubectl-vlan50 completion bash)`),
	}
	command.AddCommand(newCmdCompletionKubectl(streams))
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command.AddCommand(newCmdCompletionShell(shell, streams))
	}
	return command
}

func newCmdCompletionKubectl(streams genericiooptions.IOStreams) *cobra.Command {
	folder := ""
	command := &cobra.Command{
		Use:   "kubectl",
		Short: "Print the script " + completeName + ", or put it into a folder on PATH",
		Args:  func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(*cobra.Command, []string) error {
			if folder == "" {
				_, content := completeFile(runtime.GOOS)
				fmt.Fprint(streams.Out, content)
				return nil
			}
			return installScript(streams, folder)
		},
	}
	command.Flags().StringVar(&folder, "install", "", "The folder to put the script into; it must be on PATH")
	return command
}

func installScript(streams genericiooptions.IOStreams, folder string) error {
	name, content := completeFile(runtime.GOOS)
	path := filepath.Join(folder, name)
	if old, err := os.ReadFile(path); err == nil && string(old) != content {
		return usage(fmt.Errorf("%s is there already and is not this script: remove it first", path))
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil { //nolint:gosec // a script must be executable
		return fmt.Errorf("installing completion: %w", err)
	}
	// An older file keeps its mode when it is written over.
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // as above
		return fmt.Errorf("installing completion: %w", err)
	}
	fmt.Fprintf(streams.Out, "%s installed\n", path)
	if !onPath(folder) {
		fmt.Fprintf(streams.ErrOut, "note: %s is not on PATH; kubectl finds the script only there\n", folder)
	}
	return nil
}

func onPath(folder string) bool {
	want, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	for _, entry := range filepath.SplitList(os.Getenv("PATH")) {
		if got, err := filepath.Abs(entry); err == nil && got == want {
			return true
		}
	}
	return false
}

func newCmdCompletionShell(shell string, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   shell,
		Short: "Print completion for the bare binary in " + shell,
		Args:  func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			root := command.Root()
			switch shell {
			case "bash":
				return root.GenBashCompletionV2(streams.Out, true)
			case "zsh":
				return root.GenZshCompletion(streams.Out)
			case "fish":
				return root.GenFishCompletion(streams.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(streams.Out)
			}
			return usage(errors.New("unknown shell"))
		},
	}
}
