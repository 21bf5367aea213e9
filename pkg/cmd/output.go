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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

// resultFlags say how a result is printed on standard output.
type resultFlags struct {
	print *genericclioptions.PrintFlags
	color string
}

func newResultFlags() *resultFlags {
	return &resultFlags{print: genericclioptions.NewPrintFlags(""), color: "auto"}
}

func (f *resultFlags) add(command *cobra.Command) {
	f.print.AddFlags(command)
	command.Flags().Lookup("output").Usage = fmt.Sprintf("Output format. One of: (%s, wide)", strings.Join(f.print.AllowedFormats(), ", "))
	command.Flags().StringVar(&f.color, "color", f.color, "Colour the result: auto, always or never. NO_COLOR is honoured")
}

// resultPrinter prints documents as the user asked.
type resultPrinter struct {
	out     io.Writer
	text    report.Text
	printer printers.ResourcePrinter // nil for the human forms
}

func (f *resultFlags) toPrinter(streams genericiooptions.IOStreams) (*resultPrinter, error) {
	if !slices.Contains([]string{"auto", "always", "never"}, f.color) {
		return nil, usage(fmt.Errorf("--color %q is none of auto, always, never", f.color))
	}
	p := &resultPrinter{out: streams.Out}
	switch format := *f.print.OutputFormat; format {
	case "", "wide":
		p.text = report.Text{Out: streams.Out, Color: f.colored(streams.Out), Wide: format == "wide"}
	default:
		printer, err := f.print.ToPrinter()
		if err != nil {
			return nil, usage(err)
		}
		p.printer = printer
	}
	return p, nil
}

// show prints a document; human renders it where no machine form was asked for.
func (p *resultPrinter) show(document runtime.Object, human func(report.Text)) error {
	if p.printer == nil {
		human(p.text)
		return nil
	}
	if err := p.printer.PrintObj(document, p.out); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// progressFlags say how progress is told on standard error.
type progressFlags struct {
	quiet  bool
	events string
}

func (f *progressFlags) add(command *cobra.Command) {
	command.Flags().BoolVarP(&f.quiet, "quiet", "q", f.quiet, "Print no progress")
	command.Flags().StringVar(&f.events, "events", f.events, `Print progress as one JSON object a line on standard error: "json"`)
}

func (f *progressFlags) toProgress(out io.Writer) (report.Progress, error) {
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
func (f *resultFlags) colored(out io.Writer) bool {
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

// example keeps the indentation of the first line too.
func example(text string) string { return strings.Trim(text, "\n") }
