package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// asker talks to the operator. Questions go to standard error: standard output
// is for the result alone.
type asker struct {
	in       *bufio.Reader
	out      io.Writer
	terminal bool
	yes      bool
	quiet    bool
	rollback *rollback.Rollback
}

func newAsker(in io.Reader, out io.Writer, yes, quiet bool, r *rollback.Rollback) *asker {
	return &asker{in: bufio.NewReader(in), out: out, terminal: isTerminal(in), yes: yes, quiet: quiet, rollback: r}
}

func onTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// confirm is nil where nobody has agreed and nobody can be asked.
func (a *asker) confirm() func(context.Context, rollback.Plan) (bool, error) {
	if !a.yes && !a.terminal {
		return nil
	}
	return func(ctx context.Context, plan rollback.Plan) (bool, error) {
		if !a.quiet || !a.yes {
			report.Text{Out: a.out}.RollbackPlan(report.RollbackPlan(a.rollback.Subject(), plan))
			fmt.Fprintln(a.out)
		}
		if a.yes {
			return true, nil
		}
		fmt.Fprintf(a.out, "This takes away: %s.\nGo on? (y/N) ", report.Line(strings.Join(goes(plan), "; ")))
		return a.answer(ctx)
	}
}

// goes names what will be gone.
func goes(plan rollback.Plan) []string {
	var names []string
	for _, step := range plan.Steps {
		switch step.Action {
		case rollback.ActionDelete:
			names = append(names, step.Object.String())
		case rollback.ActionRemoveConf:
			names = append(names, "the Multus conf on node "+step.Node)
		case rollback.ActionRestore:
			names = append(names, "nothing; it puts the kept conf back on node "+step.Node)
		case rollback.ActionProbe, rollback.ActionMark, rollback.ActionRecheck, rollback.ActionKeep:
		}
	}
	if len(names) == 0 {
		return []string{"nothing but leftovers on the nodes"}
	}
	return names
}

// operator shows shell lines and waits. --yes agrees to the plan; that the
// lines were run only the operator can say.
func (a *asker) operator(ctx context.Context, node, lines string) (bool, error) {
	fmt.Fprintf(a.out, "\n%s\nWere these lines run on node %s, with the result that they promise? (y/N) ", report.Clean(strings.TrimSpace(lines)), report.Line(node))
	return a.answer(ctx)
}

// answer reads one line. The end of input, and anything but yes, is no.
func (a *asker) answer(ctx context.Context) (bool, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := a.in.ReadString('\n')
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.out)
		return false, context.Cause(ctx)
	case got := <-read:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return false, fmt.Errorf("reading the answer: %w", got.err)
		}
		if !strings.HasSuffix(got.text, "\n") {
			fmt.Fprintln(a.out)
		}
		word := strings.ToLower(strings.TrimSpace(got.text))
		return word == "y" || word == "yes", nil
	}
}
