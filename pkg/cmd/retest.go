package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/history"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// RetestFlags are what the user typed.
type RetestFlags struct {
	config   *genericclioptions.ConfigFlags
	target   targetFlags
	files    resource.FilenameOptions
	result   *resultFlags
	progress progressFlags

	attempts int
	dryRun   string
}

// RetestOptions is a retest ready to run.
type RetestOptions struct {
	Retest   *canary.Retest
	Timeout  time.Duration
	result   *resultPrinter
	progress report.Progress
}

func newCmdRetest(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	flags := &RetestFlags{config: configFlags, result: newResultFlags(), attempts: 1, dryRun: string(canary.DryRunNone)}
	command := &cobra.Command{
		Use:   "retest",
		Short: "Recreate the canary once Multus is ready, and judge the new one",
		Long: strings.TrimSpace(`
Recreate the canary once Multus is ready, and judge the new one.

Waits until the Multus DaemonSet is rolled out on the canary's node and its
daemon has written its CNI conf, deletes the canary Pod (this UID and no other,
never by force), waits until it is gone, creates it again and judges the new UID
from its own events, container states and network-status: pass, fail or
inconclusive, each with its cause and what to do next.

Nothing is deleted before it is certain that the canary can be created again:
its manifest is saved on this machine, the server has admitted it in a dry run,
and no other Pod asks for its address. A run that was interrupted is taken up by
running the same command again.

` + exitCodeHelp()),
		Example: example(`
  # Retest the canary that is there
  kubectl vlan50 canary retest

  # Create it from a manifest, and print the verdict as JSON
  kubectl vlan50 canary retest -f canary.yaml -o json

  # Another site: its own names
  kubectl vlan50 canary retest --canary media/vlan20-canary --daemonset multus/multus

  # Say what would be done
  kubectl vlan50 canary retest --dry-run=server`),
		Args: func(command *cobra.Command, args []string) error {
			return usage(noArgs(command, args))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := flags.toOptions(command, streams)
			if err != nil {
				return err
			}
			return options.Run(command.Context())
		},
	}
	flags.target.add(command)
	flags.result.add(command)
	flags.progress.add(command)
	files := genericclioptions.FileNameFlags{
		Usage: "with the canary's manifest; without it the live Pod's is taken", Filenames: &flags.files.Filenames,
		Kustomize: &flags.files.Kustomize, Recursive: &flags.files.Recursive,
	}
	files.AddFlags(command.Flags())
	command.Flags().IntVar(&flags.attempts, "attempts", flags.attempts, "How often to try while the verdict is inconclusive")
	command.Flags().StringVar(&flags.dryRun, "dry-run", flags.dryRun, `Only say what would be done: "client" from what can be read, "server" with the server's word on it, "none" to do it`)
	command.Flags().Lookup("dry-run").NoOptDefVal = string(canary.DryRunClient)
	return command
}

func noArgs(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: '%s' takes flags only; see '%s --help'", args[0], command.CommandPath(), command.CommandPath())
}

// toOptions does all that can fail before the first request: parsing, files,
// clients.
func (f *RetestFlags) toOptions(command *cobra.Command, streams genericiooptions.IOStreams) (*RetestOptions, error) {
	if f.attempts < 1 {
		return nil, usage(fmt.Errorf("--attempts %d: at least one", f.attempts))
	}
	dryRun := canary.DryRun(f.dryRun)
	if !slices.Contains([]canary.DryRun{canary.DryRunNone, canary.DryRunClient, canary.DryRunServer}, dryRun) {
		return nil, usage(fmt.Errorf("--dry-run %q is none of none, client, server", f.dryRun))
	}
	settings, err := f.target.resolve(f.config)
	if err != nil {
		return nil, usage(err)
	}
	ref, manifest, err := f.subject(command, settings)
	if err != nil {
		return nil, usage(err)
	}
	result, err := f.result.toPrinter(streams)
	if err != nil {
		return nil, err
	}
	config, err := restConfig(f.config)
	if err != nil {
		return nil, err
	}
	clients, err := cluster.New(config)
	if err != nil {
		return nil, reachError(err)
	}
	progress, err := f.progress.toProgress(streams.ErrOut)
	if err != nil {
		return nil, err
	}
	store, process, err := localState(config.Host)
	if err != nil {
		progress.Close()
		return nil, err
	}
	options := &RetestOptions{
		Timeout: settings.timeout, result: result, progress: progress,
		Retest: &canary.Retest{
			Clients: clients, Canary: ref, File: manifest, Settle: settings.settle,
			Attempts: f.attempts, DryRun: dryRun, Holder: holder(time.Now()), Process: process,
			Store: store, Notify: progress.Note, Now: time.Now,
		},
	}
	options.Retest.Locate = func(ctx context.Context) (evidence.Ref, error) {
		return options.findDaemonSet(ctx, settings.DaemonSet)
	}
	return options, nil
}

// subject is the canary: the one in the manifest, which must be the one that
// the flags name, if they do.
func (f *RetestFlags) subject(command *cobra.Command, settings resolved) (evidence.Ref, *canary.Manifest, error) {
	ref := settings.canary
	if f.files.Kustomize == "" && len(f.files.Filenames) == 0 {
		return ref, nil, nil
	}
	if err := f.files.RequireFilenameOrKustomize(); err != nil {
		return ref, nil, err
	}
	manifest, err := readManifest(f.config, f.files)
	if err != nil {
		return ref, nil, err
	}
	if manifest.Pod.Namespace == "" {
		manifest.Pod.Namespace = ref.Namespace
	}
	inFile := evidence.Ref{Namespace: manifest.Pod.Namespace, Name: manifest.Pod.Name}
	named := command.Flags().Changed("canary") && inFile.Name != ref.Name
	spaced := (command.Flags().Changed("canary") || command.Flags().Changed("namespace")) && inFile.Namespace != ref.Namespace
	if named || spaced {
		return ref, nil, fmt.Errorf("%s holds Pod %s, and the flags name %s: give one of them", manifest.Source, inFile, ref)
	}
	return inFile, manifest, nil
}

// findDaemonSet tells the user where another than the default was found.
func (o *RetestOptions) findDaemonSet(ctx context.Context, setting string) (evidence.Ref, error) {
	ref, found, err := target.FindDaemonSet(ctx, o.Retest.Clients.Apps, setting)
	if found != "" {
		o.progress.Note(canary.Note{Time: time.Now(), Step: canary.StepCheck, Text: found})
	}
	return ref, err
}

// Run retests and prints the verdict.
func (o *RetestOptions) Run(ctx context.Context) error {
	surviveBrokenPipe()
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, canary.ErrDeadline)
		defer cancel()
	}
	result, err := o.Retest.Run(ctx)
	o.progress.Close()
	if err != nil {
		return reachError(err)
	}
	if result.Verdict.Outcome == "" { // a dry run
		return nil
	}
	document := report.Result(o.Retest.Canary, result)
	if err := o.result.show(document, func(text report.Text) { text.Verdict(document) }); err != nil {
		return err
	}
	return &judged{result.Verdict.Outcome}
}

// holder names this run in the lock.
func holder(start time.Time) string {
	name := "unknown user"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s@%s (started %s)", name, host, start.UTC().Format(time.RFC3339))
}

// localState opens the history on this machine and names this process.
func localState(server string) (*history.Store, canary.Process, error) {
	folder, err := history.Folder(os.Getenv)
	if err != nil {
		return nil, canary.Process{}, fmt.Errorf("looking for a folder to save manifests in (set VLAN50_STATE_DIR): %w", err)
	}
	store := history.Open(folder, server)
	machine, err := store.Machine()
	if err != nil {
		return nil, canary.Process{}, fmt.Errorf("the folder for manifests and evidence cannot be used (set VLAN50_STATE_DIR to another): %w", err)
	}
	// A home on a shared disk gives one id to several machines, whose processes
	// must not be looked for here.
	host, err := os.Hostname()
	if err != nil {
		return nil, canary.Process{}, fmt.Errorf("asking for this machine's name: %w", err)
	}
	return store, canary.Process{Machine: machine + "@" + host, PID: os.Getpid(), Alive: alive}, nil
}

// alreadyTold reports whether an error needs no line of its own.
func alreadyTold(err error) bool {
	var outcome *judged
	var watched *ended
	return errors.As(err, &outcome) || errors.As(err, &watched)
}
