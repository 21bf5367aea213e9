package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// JudgeFlags are what the user typed.
type JudgeFlags struct {
	config *genericclioptions.ConfigFlags
	target targetFlags
	result *resultFlags

	file string
	uid  string
}

// JudgeOptions is a judgement ready to be made.
type JudgeOptions struct {
	// Collect gives the evidence, from a file or the cluster.
	Collect func(context.Context) (evidence.Evidence, error)
	// Live: the evidence is the cluster's of now.
	Live   bool
	result *resultPrinter
}

func newCmdJudge(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	flags := &JudgeFlags{config: configFlags, result: newResultFlags()}
	command := &cobra.Command{
		Use:   "judge",
		Short: "Judge the canary that is there, or saved evidence",
		Long: strings.TrimSpace(`
Judge the canary that is there, or saved evidence, as it stands now. Nothing is
waited for and nothing is changed. Of a canary that is there, what waiting may
still change is inconclusive (attempt-in-progress), and what its retest noted on
it is heeded where the Pod itself says no more.

Evidence is what a retest saves, or what kubectl prints: Pods, events, the
DaemonSet and whatever else is at hand, as YAML or JSON. A folder is read whole.
A kind that the evidence has no object of counts as not looked at.

` + exitCodeHelp()),
		Example: example(`
  # The canary that is there
  kubectl vlan50 canary judge

  # One Pod by its UID, and no namesake
  kubectl vlan50 canary judge --uid 0d3a4f4e-5a61-4cf5-9b1e-3c2f1e0b7a11

  # Evidence that somebody sent
  kubectl vlan50 canary judge -f evidence.yaml -o json
  kubectl get pods,events,ds,net-attach-def -A -o yaml | kubectl vlan50 canary judge -f -`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := flags.toOptions(command, streams)
			if err != nil {
				return err
			}
			return options.Run(command.Context())
		},
	}
	flags.target.addNames(command)
	flags.result.add(command)
	command.Flags().StringVarP(&flags.file, "filename", "f", "", `File or folder of evidence, "-" for standard input; without it the cluster is asked`)
	command.Flags().StringVar(&flags.uid, "uid", "", "Judge the Pod with this UID only")
	return command
}

func (f *JudgeFlags) toOptions(command *cobra.Command, streams genericiooptions.IOStreams) (*JudgeOptions, error) {
	settings, err := f.target.resolve(f.config)
	if err != nil {
		return nil, usage(err)
	}
	result, err := f.result.toPrinter(streams)
	if err != nil {
		return nil, err
	}
	o := &JudgeOptions{result: result}
	if f.file != "" {
		o.Collect = func(context.Context) (evidence.Evidence, error) {
			e, err := f.load(command, settings, streams.In)
			return e, usage(err)
		}
		return o, nil
	}
	config, err := restConfig(f.config)
	if err != nil {
		return nil, err
	}
	clients, err := cluster.New(config)
	if err != nil {
		return nil, reachError(err)
	}
	o.Live = true
	o.Collect = func(ctx context.Context) (evidence.Evidence, error) {
		daemonSet, _, err := target.FindDaemonSet(ctx, clients.Apps, settings.DaemonSet)
		// The canary can be judged without Multus in sight.
		if err != nil && daemonSet.Name == "" {
			return evidence.Evidence{}, err
		}
		subject := settings.canary
		subject.UID = types.UID(f.uid)
		return canary.Snapshot(ctx, clients, subject, daemonSet, clients.Clock.Now())
	}
	return o, nil
}

// load reads evidence. Names that the user gave win over those in the file.
func (f *JudgeFlags) load(command *cobra.Command, settings resolved, stdin io.Reader) (evidence.Evidence, error) {
	options := evidence.Options{Canary: evidence.Ref{UID: types.UID(f.uid)}}
	if f.target.named(command) {
		options.Canary.Namespace, options.Canary.Name = settings.canary.Namespace, settings.canary.Name
	}
	if settings.DaemonSet != "" {
		ref, err := target.ParseRef(settings.DaemonSet, "kube-system")
		if err != nil {
			return evidence.Evidence{}, fmt.Errorf("DaemonSet %w", err)
		}
		options.DaemonSet = ref
	}
	e, err := read(f.file, stdin, options)
	if errors.Is(err, evidence.ErrNoCanary) {
		err = fmt.Errorf("%w: name it with --canary NAMESPACE/NAME", err)
	}
	if err != nil {
		return e, fmt.Errorf("evidence %s: %w", f.file, err)
	}
	return e, nil
}

func read(path string, stdin io.Reader, options evidence.Options) (evidence.Evidence, error) {
	if path == "-" {
		return evidence.Load(stdin, options)
	}
	info, err := os.Stat(path)
	if err != nil {
		return evidence.Evidence{}, errors.Unwrap(err)
	}
	if info.IsDir() {
		return evidence.LoadFS(os.DirFS(path), options)
	}
	file, err := os.Open(path)
	if err != nil {
		return evidence.Evidence{}, err
	}
	defer file.Close()
	return evidence.Load(file, options)
}

// judge judges saved evidence as it stands. Of a canary that is there it heeds as
// well what its retest noted on it, and what waiting may change is none yet.
func (o *JudgeOptions) judge(e *evidence.Evidence) verdict.Verdict {
	v := verdict.Decide(*e, e.CollectedAt)
	pod := e.CanaryPod()
	switch {
	case !o.Live || pod == nil || v.Cause == verdict.StaleAttempt:
		return v
	case v.Outcome != verdict.Inconclusive && canary.UnderWay(pod, v, e.CollectedAt):
		return canary.Unfinished(v)
	}
	// One that says nothing about this Pod is no record.
	record, _ := canary.Recorded(pod)
	word := canary.Weigh(pod, v, record)
	if word.Outcome == v.Outcome && word.Cause == v.Cause {
		return v
	}
	// What was recorded holds for the configuration that it was reached under.
	return verdict.CrossCheck(word, record.Configuration, evidence.FingerprintOf(*e))
}

// Run judges and prints the verdict.
func (o *JudgeOptions) Run(ctx context.Context) error {
	e, err := o.Collect(ctx)
	if err != nil {
		return reachError(err)
	}
	v := o.judge(&e)
	document := report.Verdict(e.Canary, v)
	if fingerprint := evidence.FingerprintOf(e); e.CanaryPod() != nil {
		document.Status.Configuration = &fingerprint
	}
	if err := o.result.show(document, func(text report.Text) { text.Verdict(document) }); err != nil {
		return err
	}
	return &judged{v.Outcome}
}
