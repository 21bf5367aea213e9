package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

// outputFlags are the flags that say what is printed where.
type outputFlags struct {
	print  *genericclioptions.PrintFlags
	color  string
	quiet  bool
	events string
}

func newOutputFlags() *outputFlags {
	return &outputFlags{print: genericclioptions.NewPrintFlags(""), color: "auto"}
}

func (f *outputFlags) add(command *cobra.Command) {
	f.print.AddFlags(command)
	command.Flags().Lookup("output").Usage = fmt.Sprintf("Output format. One of: (%s, wide)", strings.Join(f.print.AllowedFormats(), ", "))
	command.Flags().StringVar(&f.color, "color", f.color, "Colour the verdict: auto, always or never. NO_COLOR is honoured")
	command.Flags().BoolVarP(&f.quiet, "quiet", "q", f.quiet, "Print no progress")
	command.Flags().StringVar(&f.events, "events", f.events, `Print progress as one JSON object a line on standard error: "json"`)
}

// output is where the result and the progress go.
type output struct {
	// print renders the result on standard output.
	print    func(*v1alpha1.CanaryVerdict) error
	progress report.Progress
}

func (f *outputFlags) toOutput(streams genericiooptions.IOStreams) (*output, error) {
	if !slices.Contains([]string{"auto", "always", "never"}, f.color) {
		return nil, usage(fmt.Errorf("--color %q is none of auto, always, never", f.color))
	}
	o := &output{}
	switch format := *f.print.OutputFormat; format {
	case "", "wide":
		text := report.Text{Out: streams.Out, Color: f.colored(streams.Out), Wide: format == "wide"}
		o.print = func(document *v1alpha1.CanaryVerdict) error {
			text.Verdict(document)
			return nil
		}
	default:
		printer, err := f.print.ToPrinter()
		if err != nil {
			return nil, usage(err)
		}
		o.print = func(document *v1alpha1.CanaryVerdict) error { return printer.PrintObj(document, streams.Out) }
	}
	progress, err := f.toProgress(streams.ErrOut)
	o.progress = progress
	return o, err
}

func (f *outputFlags) toProgress(out io.Writer) (report.Progress, error) {
	switch {
	case f.events != "" && f.events != "json":
		return nil, usage(fmt.Errorf("--events %q: the only form is json", f.events))
	case f.events != "" && f.quiet:
		return nil, usage(errors.New("--events and --quiet exclude each other"))
	case f.events != "":
		return report.Events{Out: out}, nil
	case f.quiet:
		return report.Quiet{}, nil
	}
	if file, ok := terminal(out); ok {
		return report.NewLive(out, func() int { return width(file) }, time.Now), nil
	}
	return report.Lines{Out: out}, nil
}

// colored decides for this stream alone: --color, then NO_COLOR, then whether
// it is a terminal that can.
func (f *outputFlags) colored(out io.Writer) bool {
	switch {
	case f.color == "always":
		return true
	case f.color == "never", os.Getenv("NO_COLOR") != "":
		return false
	}
	_, ok := terminal(out)
	return ok
}

// terminal reports whether a stream is a terminal that understands control
// sequences.
func terminal(out io.Writer) (*os.File, bool) {
	file, ok := out.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

func width(file *os.File) int {
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 80
	}
	return columns
}
