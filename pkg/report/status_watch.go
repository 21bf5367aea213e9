package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

// nextLines is how many lines the end of a screen is, with the next step.
const nextLines = 3

// Redraw shows one text after the other at the same place of a terminal, on its
// alternate screen: what was there before comes back at the end.
type Redraw struct {
	Out io.Writer
	// Rows is how many lines the terminal has now.
	Rows func() int

	begun bool
	last  string
}

// Show draws a text over the one before; the same text is not drawn again.
func (r *Redraw) Show(text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if rows := r.Rows(); rows > 1 && len(lines) > rows {
		// What stands at the top and what to do now, which is at the end, are kept.
		last := min(nextLines, (rows-1)/2)
		first := rows - 1 - last
		hidden := len(lines) - first - last
		lines = slices.Concat(lines[:first], []string{fmt.Sprintf("... %d more lines: make the window higher", hidden)}, lines[len(lines)-last:])
	}
	drawn := strings.Join(lines, ansi.EraseLineRight+"\r\n") + ansi.EraseLineRight + ansi.EraseScreenBelow
	if r.begun && drawn == r.last {
		return
	}
	r.last = drawn
	if !r.begun {
		r.begun = true
		fmt.Fprint(r.Out, ansi.SetModeAltScreenSaveCursor+ansi.HideCursor)
	}
	fmt.Fprint(r.Out, ansi.CursorHomePosition+drawn)
}

// Close gives the terminal back.
func (r *Redraw) Close() {
	if r.begun {
		fmt.Fprint(r.Out, ansi.ShowCursor+ansi.ResetModeAltScreenSaveCursor)
	}
}

// StatusLog tells a watch in lines: at first what is not well, then each
// statement that is new.
type StatusLog struct {
	Out io.Writer

	told map[string]bool
}

// Show tells what is new in a state.
func (l *StatusLog) Show(document *v1alpha1.SiteStatus, now time.Time) {
	s := &document.Status
	first := l.told == nil
	told := map[string]bool{}
	tell := func(section string, mark v1alpha1.Mark, text string) {
		text = fmt.Sprintf("%-9s %s %s", section, StatusScreen{}.mark(mark), Line(text))
		told[text] = true
		well := mark == v1alpha1.MarkOK || mark == v1alpha1.MarkNone
		if !l.told[text] && (!first || !well || section == "state") {
			fmt.Fprintf(l.Out, "%s  %s\n", now.UTC().Format(time.TimeOnly), text)
		}
	}
	tell("state", s.State.Mark(), strings.ToUpper(string(s.State))+": "+s.Message)
	for _, part := range []struct {
		section string
		lines   []v1alpha1.StatusLine
	}{
		{"multus", s.Multus.Lines},
		{"network", s.Network.Lines},
		{"canary", canaryLines(s.Canaries)},
		{"addresses", s.Addresses.Lines},
		{"argoCD", s.ArgoCD.Lines},
	} {
		for _, line := range part.lines {
			tell(part.section, line.Mark, strings.TrimSpace(line.Subject+" "+line.Text))
		}
	}
	for _, gap := range s.Unreadable {
		tell(string(gap.Section), v1alpha1.MarkUnknown, gap.Text)
	}
	tell("next", v1alpha1.MarkNone, s.Next.Command+" # "+s.Next.Reason)
	l.told = told
}

// canaryLines are what is said of each canary, and whether it still speaks.
func canaryLines(canaries []v1alpha1.CanaryStatus) []v1alpha1.StatusLine {
	var lines []v1alpha1.StatusLine
	for i := range canaries {
		c := &canaries[i]
		name := c.Namespace + "/" + c.Name + ": "
		for _, line := range c.Lines {
			lines = append(lines, v1alpha1.StatusLine{Mark: line.Mark, Text: name + line.Subject + " " + line.Text})
		}
		if c.Freshness == v1alpha1.Fresh {
			lines = append(lines, v1alpha1.StatusLine{Mark: v1alpha1.MarkOK, Text: name + "its verdict is FRESH"})
		}
		for _, change := range c.Changes {
			lines = append(lines, v1alpha1.StatusLine{Mark: freshnessMark(c.Freshness), Text: name + string(c.Freshness) + ": " + change})
		}
	}
	return lines
}

func freshnessMark(freshness v1alpha1.Freshness) v1alpha1.Mark {
	switch freshness {
	case v1alpha1.Fresh:
		return v1alpha1.MarkOK
	case v1alpha1.Stale:
		return v1alpha1.MarkWarn
	case v1alpha1.FreshnessUnknown:
		return v1alpha1.MarkUnknown
	}
	return v1alpha1.MarkNone
}
