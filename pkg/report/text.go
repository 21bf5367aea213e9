package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// Text renders documents for people.
type Text struct {
	Out   io.Writer
	Color bool
	// Wide shows all the evidence in full, and adds the steps' times.
	Wide bool
}

// evidenceShown bounds the lines of evidence in the short form; the last ones
// are what decided.
const evidenceShown = 8

// lineShown bounds one line of evidence in the short form, in runes.
const lineShown = 200

// Verdict renders a judgement: the word first, then why, then what to do.
func (t Text) Verdict(document *v1alpha1.CanaryVerdict) {
	status := document.Status
	name := document.Namespace + "/" + document.Name
	if document.UID != "" {
		name += " (UID " + string(document.UID) + ")"
	}
	fmt.Fprintf(t.Out, "%s  Pod %s\n", t.word(status.Verdict), Line(name))
	t.field("cause", status.Cause)
	if status.Interface != "" {
		t.field("attached", fmt.Sprintf("%s %s from %s on node %s",
			status.Interface, strings.Join(status.Addresses, " "), status.Network, cmp.Or(status.Node, "<unknown>")))
	}
	t.field("why", status.Message)
	t.field("next", status.Next)
	t.evidence(status.Evidence)
	if t.Wide {
		t.attempt(status.Attempt)
	}
}

// word is the verdict in capitals and, where wanted, in its colour.
func (t Text) word(outcome string) string {
	paint := color.New(color.Bold, color.FgYellow)
	switch verdict.Outcome(outcome) {
	case verdict.Pass:
		paint = color.New(color.Bold, color.FgGreen)
	case verdict.Fail:
		paint = color.New(color.Bold, color.FgRed)
	case verdict.Inconclusive:
	}
	return t.paint(paint, strings.ToUpper(outcome))
}

// paint colours text by this renderer's own switch, never by the process's.
func (t Text) paint(paint *color.Color, text string) string {
	if !t.Color {
		return text
	}
	paint.EnableColor()
	return paint.Sprint(text)
}

func (t Text) field(name, value string) {
	if value != "" {
		fmt.Fprintf(t.Out, "  %-9s %s\n", name+":", strings.ReplaceAll(value, "\n", "\n            "))
	}
}

func (t Text) evidence(lines []v1alpha1.EvidenceLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(t.Out, "  evidence:")
	if hidden := len(lines) - evidenceShown; hidden > 0 && !t.Wide {
		fmt.Fprintf(t.Out, "    ... %d earlier lines (-o wide shows all)\n", hidden)
		lines = lines[hidden:]
	}
	for _, line := range lines {
		fmt.Fprintf(t.Out, "    %s  %-9s %s\n", clock(line.Time), Line(line.Source), t.cut(Line(line.Text)))
	}
}

// cut keeps a line of evidence readable: kubelet's messages run to a kilobyte.
// Who speaks stands at their beginning and what it comes down to at their end,
// so that the middle goes.
func (t Text) cut(text string) string {
	const gap = " ... "
	runes := []rune(text)
	if t.Wide || len(runes) <= lineShown+len(gap) {
		return text
	}
	head := lineShown / 2
	return string(runes[:head]) + gap + string(runes[len(runes)-(lineShown-head):]) + " (-o wide shows all)"
}

func (t Text) attempt(attempt *v1alpha1.Attempt) {
	if attempt == nil || attempt.StartedAt == nil {
		return
	}
	fmt.Fprintln(t.Out, "  steps:")
	for _, step := range []struct {
		name string
		at   *metav1.MicroTime
	}{
		{"started", attempt.StartedAt},
		{"rollout ready", attempt.RolloutReadyAt},
		{"attach ready", attempt.AttachReadyAt},
		{"deleted", attempt.DeletedAt},
		{"gone", attempt.GoneAt},
		{"created", attempt.CreatedAt},
		{"decided", attempt.DecidedAt},
	} {
		if step.at != nil {
			fmt.Fprintf(t.Out, "    %s  %-14s +%s\n", clock(step.at), step.name, step.at.Sub(attempt.StartedAt.Time).Round(time.Millisecond))
		}
	}
}

// clock is a time of day in UTC; dashes where it is unknown.
func clock(at *metav1.MicroTime) string {
	if at == nil {
		return "--:--:--"
	}
	return at.UTC().Format(time.TimeOnly)
}
