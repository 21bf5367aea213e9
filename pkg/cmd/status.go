package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/status"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// StatusFlags are what the user typed.
type StatusFlags struct {
	config *genericclioptions.ConfigFlags
	target targetFlags
	result *resultFlags

	watch    bool
	until    string
	exitCode bool
}

// StatusOptions is a look, or a watch, ready to begin.
type StatusOptions struct {
	Collector *status.Collector
	Settings  status.Settings
	// Watch goes on until Until is reached, Timeout has passed (zero: never), or
	// the user ends it.
	Watch   bool
	Until   until
	Timeout time.Duration
	// ExitCode turns the state into the exit code.
	ExitCode bool

	result  *resultPrinter
	streams genericiooptions.IOStreams
}

// screenWidth is how wide the screen is where there is no terminal to ask.
const screenWidth = 100

func newCmdStatus(configFlags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	flags := &StatusFlags{config: configFlags, result: newResultFlags()}
	command := &cobra.Command{
		Use:   "status",
		Short: "Tell in one screen whether the network is proven now, and what to do next",
		Long: strings.TrimSpace(`
Tell in one screen whether the network is proven now, and what to do next.

Shows the Multus rollout and whether a Pod made now would be attached, the
network's definition, the canary with its verdict, whether that verdict still
speaks for the present configuration (FRESH, STALE with each thing that changed,
UNKNOWN), who asks for which address, and what Argo CD says and what that is
worth. It writes nothing, starts nothing, and waits for nothing unless told to.

What may not be read is named with the right that is missing; the rest stands.

Plain status exits 0 when it could look. With --exit-code the state decides:
0 where the network is proven now, 3 where the canary failed and nothing has
changed since, 4 for everything in between.

` + exitCodeHelp()),
		Example: example(`
  # One look
  kubectl vlan50 status

  # Watch until Multus is ready, then until a canary has passed
  kubectl vlan50 status --watch --until ready
  kubectl vlan50 status --watch --until fresh-pass --timeout 10m

  # For scripts
  kubectl vlan50 status --exit-code -o json
  kubectl vlan50 status -o jsonpath='{.status.state}'`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
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
	command.Flags().BoolVarP(&flags.watch, "watch", "w", flags.watch, "Show each change: redrawn on a terminal, as lines otherwise")
	command.Flags().StringVar(&flags.until, "until", flags.until, "Watch until this is reached: "+strings.Join(untils(), " or "))
	command.Flags().BoolVar(&flags.exitCode, "exit-code", flags.exitCode, "Let the state decide the exit code")
	command.Flags().Lookup("timeout").Usage = fmt.Sprintf("How long to watch, with a unit; 0s for ever (with --until default %s; VLAN50_TIMEOUT)", target.DefaultTimeout)
	return command
}

func (f *StatusFlags) toOptions(command *cobra.Command, streams genericiooptions.IOStreams) (*StatusOptions, error) {
	settings, err := f.target.resolve(f.config)
	if err != nil {
		return nil, usage(err)
	}
	if f.until != "" && !slices.Contains(untils(), f.until) {
		return nil, usage(fmt.Errorf("--until %q is none of %s", f.until, strings.Join(untils(), ", ")))
	}
	result, err := f.result.toPrinter(streams)
	if err != nil {
		return nil, err
	}
	config, err := restConfig(f.config)
	if err != nil {
		return nil, err
	}
	// What is asked for at once is bounded in the collector; a limit by time
	// would only make the user wait.
	config.QPS = -1
	clients, err := cluster.New(config)
	if err != nil {
		return nil, reachError(err)
	}
	o := &StatusOptions{
		Watch: f.watch || f.until != "", Until: until(f.until), ExitCode: f.exitCode,
		result: result, streams: streams, Settings: status.Settings{Settle: settings.settle},
		Collector: &status.Collector{
			Clients: clients, Canary: settings.canary, DaemonSet: settings.DaemonSet, Now: clients.Clock.Now,
			Named: settings.Canary != "" || *f.config.Namespace != "",
		},
	}
	if f.until != "" || command.Flags().Changed("timeout") {
		o.Timeout = settings.timeout
	}
	o.Settings.Flags, o.Settings.ClusterFlags = nextFlags(command, settings)
	return o, nil
}

// nextFlags are the flags that the user's next command needs to be about the
// same things. A token is never among them.
func nextFlags(command *cobra.Command, settings resolved) (all, clusterOnly []string) {
	if name := settings.canary.String(); name != target.DefaultCanary {
		all = append(all, "--canary", name)
	}
	if name := settings.DaemonSet; name != "" && name != target.DefaultDaemonSet {
		all = append(all, "--daemonset", name)
	}
	for _, name := range []string{"context", "kubeconfig", "cluster", "user", "server", "as"} {
		if flag := command.Flags().Lookup(name); flag != nil && flag.Changed {
			clusterOnly = append(clusterOnly, "--"+name, flag.Value.String())
		}
	}
	return append(all, clusterOnly...), clusterOnly
}

// skewTold is from what difference of two clocks on the user is told.
const skewTold = 30 * time.Second

// Run looks once, or watches.
func (o *StatusOptions) Run(ctx context.Context) error {
	if o.Watch {
		return o.watch(ctx)
	}
	data, err := o.Collector.Collect(ctx)
	if err != nil {
		return reachError(err)
	}
	if off := o.Collector.Clients.Clock.Offset().Abs(); off >= skewTold {
		fmt.Fprintf(o.streams.ErrOut, "note: this machine's clock is %s off the API server's; ages are taken by the server's\n", off.Round(time.Second))
	}
	document := o.summarize(data)
	if err := o.show(document); err != nil {
		return err
	}
	return o.outcome(document)
}

func (o *StatusOptions) summarize(data *status.Data) *v1alpha1.SiteStatus {
	document := status.Summarize(data, o.Collector.Now(), o.Settings)
	report.Harmless(document)
	return document
}

func (o *StatusOptions) show(document *v1alpha1.SiteStatus) error {
	return o.result.show(document, func(text report.Text) {
		fmt.Fprint(text.Out, o.screen(text).Render(document))
	})
}

func (o *StatusOptions) screen(text report.Text) report.StatusScreen {
	return report.StatusScreen{Color: text.Color, Wide: text.Wide, Width: columns(text.Out), Now: o.Collector.Now()}
}

func columns(out io.Writer) int {
	if file, ok := terminal(out); ok {
		return width(file)
	}
	return screenWidth
}

// outcome is the exit code of a state, where it was asked for.
func (o *StatusOptions) outcome(document *v1alpha1.SiteStatus) error {
	if !o.ExitCode {
		return nil
	}
	switch document.Status.State {
	case v1alpha1.StateFreshPass:
		return nil
	case v1alpha1.StateFreshFail:
		return &judged{verdict.Fail}
	case v1alpha1.StateInconclusive, v1alpha1.StateStale, v1alpha1.StateUnknown, v1alpha1.StateConflict, v1alpha1.StateNoCanary:
	}
	return &judged{verdict.Inconclusive}
}

// until is what ends a watch.
type until string

const (
	untilFreshPass until = "fresh-pass"
	untilReady     until = "ready"
)

func untils() []string { return []string{string(untilFreshPass), string(untilReady)} }

func (u until) reached(s *v1alpha1.SiteStatusStatus) bool {
	switch u {
	case untilFreshPass:
		return s.State == v1alpha1.StateFreshPass
	case untilReady:
		return s.Ready
	}
	return false
}
