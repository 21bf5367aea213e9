package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/status"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// statusView shows the states of a watch, one after the other.
type statusView interface {
	// show is told each state, also one that is the same as the last.
	show(document *v1alpha1.SiteStatus) error
	// lost is told that there is no newer one, and why.
	lost(last *v1alpha1.SiteStatus, err error)
	// close ends the showing.
	close(last *v1alpha1.SiteStatus) error
}

// errNotReached ends a watch that was out of time.
var errNotReached = errors.New("it was not reached in time")

// watch shows each change until what was asked for is reached.
func (o *StatusOptions) watch(ctx context.Context) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errNotReached)
		defer cancel()
	}
	view := o.view()
	var last *v1alpha1.SiteStatus
	var away error // why the last state is old
	err := o.Collector.Watch(ctx, func(data *status.Data, lost error) (bool, error) {
		last, away = o.summarize(data), lost
		if lost != nil {
			view.lost(last, reachError(lost))
			return false, nil
		}
		return o.Until.reached(&last.Status), view.show(last)
	})
	if closed := view.close(last); err == nil && closed != nil {
		return closed
	}
	switch {
	case errors.Is(err, errNotReached):
		return o.timeUp(last, away)
	case errors.As(err, new(signalled)):
		return &ended{err}
	case err != nil:
		return reachError(err)
	}
	return o.outcome(last)
}

// ended is a watch that the user ended: that needs no line of its own.
type ended struct{ err error }

func (e *ended) Error() string { return e.err.Error() }
func (e *ended) Unwrap() error { return e.err }

// timeUp is the end of a watch that was out of time: nothing was proven, and
// the last known state says how far it got.
func (o *StatusOptions) timeUp(last *v1alpha1.SiteStatus, away error) error {
	what, state := "the time to watch is over", "nothing was read"
	if o.Until != "" {
		what = fmt.Sprintf("%s was not reached within %s", o.Until, o.Timeout)
	}
	if last != nil {
		state = string(last.Status.State) + ": " + report.Line(last.Status.Message)
	}
	fmt.Fprintf(o.streams.ErrOut, "%s; last known state: %s\n", what, state)
	if o.Until == "" && away != nil {
		return reachError(away) // what was seen last is not the state now
	}
	if o.Until == "" && last != nil {
		return o.outcome(last)
	}
	return &judged{verdict.Inconclusive}
}

func (o *StatusOptions) view() statusView {
	if o.result.printer != nil {
		return &documentView{options: o}
	}
	if file, ok := terminal(o.result.out); ok {
		rows := func() int {
			_, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 0
			}
			return height
		}
		return &screenView{options: o, redraw: report.Redraw{Out: o.result.out, Rows: rows}}
	}
	return &lineView{options: o, log: report.StatusLog{Out: o.result.out}}
}

// screenView redraws a terminal.
type screenView struct {
	options *StatusOptions
	redraw  report.Redraw
	// noNews says since when the state is old; empty while it is new.
	noNews string
}

func (v *screenView) show(document *v1alpha1.SiteStatus) error {
	v.noNews = ""
	v.redraw.Show(v.options.screen(v.options.result.text).Render(document))
	return nil
}

func (v *screenView) lost(last *v1alpha1.SiteStatus, err error) {
	v.noNews = "NO NEWS since " + last.Status.CollectedAt.Format("15:04:05 UTC") + ": " + report.Line(err.Error()) + "\n\n"
	v.redraw.Show(v.noNews + v.options.screen(v.options.result.text).Render(last))
}

// close leaves the last state behind on the ordinary screen.
func (v *screenView) close(last *v1alpha1.SiteStatus) error {
	v.redraw.Close()
	if last == nil {
		return nil
	}
	fmt.Fprint(v.options.result.out, v.noNews)
	return v.options.show(last)
}

// lineView tells what is new, a line each.
type lineView struct {
	options *StatusOptions
	log     report.StatusLog
	trouble string
}

func (v *lineView) show(document *v1alpha1.SiteStatus) error {
	v.trouble = ""
	v.log.Show(document, v.options.Collector.Now())
	return nil
}

func (v *lineView) lost(_ *v1alpha1.SiteStatus, err error) {
	v.trouble = tellOnce(v.options, v.trouble, err)
}

func (v *lineView) close(*v1alpha1.SiteStatus) error { return nil }

// documentView prints a document for each state that differs from the last.
type documentView struct {
	options *StatusOptions
	printed string
	trouble string
}

func (v *documentView) show(document *v1alpha1.SiteStatus) error {
	v.trouble = ""
	compared := *document
	compared.Status.CollectedAt = metav1.MicroTime{}
	text, err := json.Marshal(compared)
	if err != nil {
		return fmt.Errorf("comparing states: %w", err)
	}
	if string(text) == v.printed {
		return nil
	}
	v.printed = string(text)
	return v.options.show(document)
}

func (v *documentView) lost(_ *v1alpha1.SiteStatus, err error) {
	v.trouble = tellOnce(v.options, v.trouble, err)
}

func (v *documentView) close(*v1alpha1.SiteStatus) error { return nil }

// tellOnce says on standard error that there is no news, once for each reason.
func tellOnce(o *StatusOptions, told string, err error) string {
	text := report.Line(err.Error())
	if text != told {
		fmt.Fprintln(o.streams.ErrOut, "no news: "+text)
	}
	return text
}
