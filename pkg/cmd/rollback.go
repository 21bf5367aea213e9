package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// RollbackFlags are what the user typed.
type RollbackFlags struct {
	config   *genericclioptions.ConfigFlags
	site     rollbackSite
	files    resource.FilenameOptions
	result   *resultFlags
	progress progressFlags

	also           []string
	removeBinaries bool
	dryRun         string
	yes, undo      bool
}

// RollbackOptions is a rollback ready to run.
type RollbackOptions struct {
	Rollback *rollback.Rollback
	Timeout  time.Duration
	Undo     bool
	result   *resultPrinter
	progress report.Progress
}

func newCmdRollback(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	flags := &RollbackFlags{config: configFlags, result: newResultFlags(), dryRun: string(canary.DryRunNone)}
	command := &cobra.Command{
		Use:   "rollback",
		Short: "Take Multus away without breaking a node, or put its conf back",
		Long: strings.TrimSpace(`
Take Multus away without ever leaving a node on which no Pod can start.

Prints a numbered plan with the present truth of each guard, then asks. The CNI
conf of Multus is kept aside on each node and removed while the daemon still
serves, and only where another valid conf takes over; an ordinary Pod proves
that the node works without Multus. Then the objects go, in order, each by its
UID and waited for until it is gone; after the daemon has gone each node is
looked at and probed again, since the daemon can write its conf anew.

Every step is derived from what is there: a run that was cut short is finished
by running the same command again. What is deleted is saved on this machine
first. --undo puts the kept conf back on the nodes.

` + exitCodeHelp()),
		Example: example(`
  # What would be done, with the server's word on it
  kubectl vlan50 rollback --dry-run=server

  # Do it; a proxy that uses the network goes first
  kubectl vlan50 rollback --also deployment/downloads/proxy

  # Without a Pod on the nodes: prints the shell lines and waits
  kubectl vlan50 rollback --node-access=manual

  # Is Multus gone, and is each node clean?
  kubectl vlan50 rollback status

  # Put the kept conf back
  kubectl vlan50 rollback --undo`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := flags.toOptions(command, streams)
			if err != nil {
				return err
			}
			return options.Run(command.Context())
		},
	}
	flags.add(command)
	command.AddCommand(newCmdRollbackStatus(configFlags, streams))
	return command
}

func (f *RollbackFlags) add(command *cobra.Command) {
	f.site.add(command)
	f.result.add(command)
	f.progress.add(command)
	flags := command.Flags()
	files := genericclioptions.FileNameFlags{
		Usage: "with more objects to delete, in rollback order", Filenames: &f.files.Filenames,
		Kustomize: &f.files.Kustomize, Recursive: &f.files.Recursive,
	}
	files.AddFlags(flags)
	flags.StringArrayVar(&f.also, "also", nil, "An object to delete first, KIND/NAMESPACE/NAME, such as a proxy that uses the network; may be repeated")
	flags.BoolVar(&f.removeBinaries, "remove-binaries", false, "Also remove Multus' plugins from the nodes, where they are the image's own copies byte for byte")
	flags.StringVar(&f.dryRun, "dry-run", f.dryRun, `Only print the plan: "client" from what can be read, "server" with the server's word on it, "none" to do it`)
	flags.Lookup("dry-run").NoOptDefVal = string(canary.DryRunClient)
	flags.BoolVarP(&f.yes, "yes", "y", false, "Do not ask")
	flags.BoolVar(&f.undo, "undo", false, "Put the kept conf back on the nodes, byte for byte")
}

// toOptions does all that can fail before the first request.
func (f *RollbackFlags) toOptions(command *cobra.Command, streams genericiooptions.IOStreams) (*RollbackOptions, error) {
	dryRun := canary.DryRun(f.dryRun)
	if !slices.Contains([]canary.DryRun{canary.DryRunNone, canary.DryRunClient, canary.DryRunServer}, dryRun) {
		return nil, usage(fmt.Errorf("--dry-run %q is none of none, client, server", f.dryRun))
	}
	if f.undo && (len(f.also) > 0 || f.removeBinaries || f.files.Kustomize != "" || len(f.files.Filenames) > 0) {
		return nil, usage(errors.New("--undo puts confs back and deletes nothing: it takes neither --also, -f nor --remove-binaries"))
	}
	also, notes, err := f.consumers()
	if err != nil {
		return nil, usage(err)
	}
	result, err := f.result.toPrinter(streams)
	if err != nil {
		return nil, err
	}
	progress, err := f.progress.toProgress(streams.ErrOut)
	if err != nil {
		return nil, err
	}
	o := &RollbackOptions{result: result, progress: progress, Undo: f.undo}
	if o.Rollback, o.Timeout, err = f.site.toRollback(f.config, progress); err != nil {
		progress.Close()
		return nil, err
	}
	for _, note := range notes {
		progress.Note(canary.Note{Time: time.Now(), Step: rollback.StepCheck, Text: note})
	}
	r := o.Rollback
	r.Also, r.RemoveBinaries, r.DryRun = also, f.removeBinaries, dryRun
	asker := newAsker(command.InOrStdin(), streams.ErrOut, f.yes, f.progress.quiet || f.progress.events != "", r)
	r.Confirm, r.Operator = asker.confirm(), asker.operator
	return o, nil
}

// consumers are the objects that the user named, files after flags.
func (f *RollbackFlags) consumers() (objects []rollback.Object, notes []string, err error) {
	for _, text := range f.also {
		object, err := rollback.ParseObject(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--also %w", err)
		}
		objects = append(objects, object)
	}
	if f.files.Kustomize == "" && len(f.files.Filenames) == 0 {
		return objects, nil, nil
	}
	if err := f.files.RequireFilenameOrKustomize(); err != nil {
		return nil, nil, err
	}
	fromFiles, notes, err := readObjects(f.config, f.files)
	return append(objects, fromFiles...), notes, err
}

// Run does what was asked for and prints the result.
func (o *RollbackOptions) Run(ctx context.Context) error {
	surviveBrokenPipe()
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, canary.ErrDeadline)
		defer cancel()
	}
	if o.Rollback.DryRun != canary.DryRunNone {
		return o.plan(ctx)
	}
	run := o.Rollback.Run
	if o.Undo {
		run = o.Rollback.Undo
	}
	result, err := run(ctx)
	o.progress.Close()
	document := report.RollbackResult(o.Rollback.Subject(), result)
	if err != nil {
		if !result.Changed() {
			return reachError(err)
		}
		// A person is told by the error; a program needs the steps.
		return errors.Join(o.result.show(document, func(report.Text) {}), reachError(err))
	}
	if err := o.result.show(document, func(text report.Text) { text.RollbackResult(document) }); err != nil {
		return err
	}
	switch result.Outcome {
	case rollback.Done, rollback.Clean:
		return nil
	case rollback.Failed:
		return &judged{verdict.Fail}
	case rollback.Unfinished:
	}
	return &judged{verdict.Inconclusive}
}

// plan prints what would be done. A guard that is broken is a refusal here as
// well, so that a script can ask first.
func (o *RollbackOptions) plan(ctx context.Context) error {
	plan, err := o.Rollback.DryRunPlan(ctx, o.Undo)
	o.progress.Close()
	if err != nil && len(plan.Guards) == 0 {
		return reachError(err)
	}
	document := report.RollbackPlan(o.Rollback.Subject(), plan)
	return errors.Join(o.result.show(document, func(text report.Text) { text.RollbackPlan(document) }), err)
}

// isTerminal reports whether somebody can be asked on a stream.
func isTerminal(in any) bool {
	file, ok := in.(*os.File)
	return ok && onTerminal(file)
}
