package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/fatih/color"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

// StatusScreen renders the status for a person, at a moment: ages are counted
// from Now.
type StatusScreen struct {
	Color bool
	// Wide shows every row and every text whole.
	Wide bool
	// Width is how many columns there are.
	Width int
	Now   time.Time

	out *strings.Builder
}

const (
	// subjectWidth is the column of what a line is about.
	subjectWidth = 9
	// textLines bounds how many lines one text takes in the short form.
	textLines = 3
	// minWidth is from where on a line is rather cut by the terminal.
	minWidth = 40
)

// Render gives the whole screen, each line ended by a newline.
func (t StatusScreen) Render(document *v1alpha1.SiteStatus) string {
	t.out = &strings.Builder{}
	t.Width = max(t.Width, minWidth)
	s := &document.Status
	t.headline(s)
	t.multus(s)
	t.section("Network", "", v1alpha1.SectionNetwork, s, s.Network.Lines)
	t.canaries(s)
	t.section("Does it still speak?", "", v1alpha1.SectionFreshness, s, t.freshness(s.Canaries))
	t.addresses(s)
	t.section("Argo CD", "", v1alpha1.SectionArgoCD, s, s.ArgoCD.Lines)
	t.next(s.Next)
	return t.out.String()
}

// headline answers the question before anything else.
func (t StatusScreen) headline(s *v1alpha1.SiteStatusStatus) {
	word, paint := "NOT PROVEN", color.New(color.Bold, color.FgYellow)
	switch s.State {
	case v1alpha1.StateFreshPass:
		word, paint = "PROVEN", color.New(color.Bold, color.FgGreen)
	case v1alpha1.StateFreshFail:
		word, paint = "FAILED", color.New(color.Bold, color.FgRed)
	case v1alpha1.StateInconclusive, v1alpha1.StateStale, v1alpha1.StateUnknown, v1alpha1.StateConflict, v1alpha1.StateNoCanary:
	}
	t.hanging(t.paint(paint, word)+"  ", len(word)+2, s.Message)
}

// section prints a title, its lines, and what could not be read.
func (t StatusScreen) section(title, about string, section v1alpha1.Section, s *v1alpha1.SiteStatusStatus, lines []v1alpha1.StatusLine) {
	t.title(title, about)
	for _, line := range lines {
		t.line(line)
	}
	for _, gap := range s.Unreadable {
		if gap.Section == section {
			t.line(v1alpha1.StatusLine{Mark: v1alpha1.MarkUnknown, Subject: "unread", Text: gap.Text})
		}
	}
}

func (t StatusScreen) title(title, about string) {
	fmt.Fprintln(t.out)
	fmt.Fprint(t.out, t.paint(color.New(color.Bold), title))
	if about != "" {
		fmt.Fprint(t.out, "  "+Line(about))
	}
	fmt.Fprintln(t.out)
}

func (t StatusScreen) line(line v1alpha1.StatusLine) {
	subject := Line(line.Subject)
	pad := strings.Repeat(" ", max(1, subjectWidth+1-ansi.StringWidth(subject)))
	t.hanging("  "+t.mark(line.Mark)+" "+subject+pad, 4+ansi.StringWidth(subject+pad), line.Text)
}

// hanging prints a text behind its head, wrapped below itself.
func (t StatusScreen) hanging(head string, width int, text string) {
	room := max(t.Width-width, minWidth/2)
	lines := wrap(Line(text), room)
	if len(lines) > textLines && !t.Wide {
		lines = append(lines[:textLines-1:textLines-1], ansi.Truncate(lines[textLines-1], room-len(cutHere), "")+cutHere)
	}
	for i, text := range lines {
		if i > 0 {
			head = strings.Repeat(" ", width)
		}
		fmt.Fprintln(t.out, strings.TrimRight(head+text, " "))
	}
}

// cutHere ends a text that is not shown whole.
const cutHere = " ... (-o wide)"

// wrap breaks a text at its spaces alone, so that names and commands stay whole;
// a word longer than the room is cut into pieces.
func wrap(text string, room int) []string {
	lines := []string{""}
	for word := range strings.SplitSeq(text, " ") {
		last := len(lines) - 1
		if lines[last] != "" && ansi.StringWidth(lines[last])+1+ansi.StringWidth(word) <= room {
			lines[last] += " " + word
			continue
		}
		if lines[last] != "" {
			lines = append(lines, "")
			last++
		}
		for ansi.StringWidth(word) > room {
			head := ansi.Truncate(word, room, "")
			lines[last] = head
			lines = append(lines, "")
			last, word = last+1, word[len(head):]
		}
		lines[last] = word
	}
	return lines
}

// mark is the state mark of a line or a row.
func (t StatusScreen) mark(mark v1alpha1.Mark) string {
	switch mark {
	case v1alpha1.MarkOK:
		return t.paint(color.New(color.FgGreen), "✓")
	case v1alpha1.MarkWarn:
		return t.paint(color.New(color.FgYellow), "!")
	case v1alpha1.MarkBad:
		return t.paint(color.New(color.FgRed), "✗")
	case v1alpha1.MarkUnknown:
		return t.paint(color.New(color.FgYellow), "?")
	case v1alpha1.MarkNone:
	}
	return "·"
}

func (t StatusScreen) paint(paint *color.Color, text string) string {
	return Text{Color: t.Color}.paint(paint, text)
}

// freshness are the lines of the question whether a verdict still holds.
func (t StatusScreen) freshness(canaries []v1alpha1.CanaryStatus) []v1alpha1.StatusLine {
	var lines []v1alpha1.StatusLine
	for i := range canaries {
		c := &canaries[i]
		who := ""
		if len(canaries) > 1 {
			who = c.Namespace + "/" + c.Name + ": "
		}
		mark := freshnessMark(c.Freshness)
		subject := cmp.Or(string(c.Freshness), "nothing")
		switch c.Freshness {
		case v1alpha1.Fresh:
			lines = append(lines, v1alpha1.StatusLine{Mark: mark, Subject: subject, Text: who + "nothing that the verdict of " + t.since(c) + " rests on has changed"})
		case "":
			lines = append(lines, v1alpha1.StatusLine{Mark: mark, Subject: subject, Text: who + "there is no verdict that could hold"})
		case v1alpha1.Stale, v1alpha1.FreshnessUnknown: // the changes below tell
		}
		for _, change := range c.Changes {
			lines = append(lines, v1alpha1.StatusLine{Mark: mark, Subject: subject, Text: who + change})
		}
	}
	return lines
}

// since is when a verdict was reached.
func (t StatusScreen) since(c *v1alpha1.CanaryStatus) string {
	if c.DecidedAt == nil {
		return "an unknown time"
	}
	return fmt.Sprintf("%s (%s ago)", c.DecidedAt.UTC().Format(time.DateTime+" UTC"), t.age(c.DecidedAt.Time))
}

func (t StatusScreen) next(step v1alpha1.NextStep) {
	t.title("Next", "")
	fmt.Fprintln(t.out, "  "+t.paint(color.New(color.Bold), Line(step.Command)))
	t.hanging("    ", 4, cmp.Or(step.Reason, "-"))
}
