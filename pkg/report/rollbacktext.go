package report

import (
	"fmt"
	"strings"

	"github.com/fatih/color"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// RollbackPlan renders a plan: its guards, then its numbered steps.
func (t Text) RollbackPlan(document *v1alpha1.RollbackPlan) {
	status := document.Status
	fmt.Fprintf(t.Out, "Rollback of DaemonSet %s/%s\n\nGuards:\n", document.Namespace, document.Name)
	for _, guard := range status.Guards {
		fmt.Fprintf(t.Out, "  %s  %-18s %s\n", t.guardTruth(guard.State), guard.Name, Line(guard.Message))
	}
	if status.Empty {
		fmt.Fprintln(t.Out, "\nNothing is left to do.")
	} else {
		fmt.Fprintln(t.Out, "\nSteps:")
	}
	t.rollbackSteps(status.Steps)
	for _, note := range status.Notes {
		fmt.Fprintf(t.Out, "\nNote: %s\n", Line(note))
	}
}

// guardTruth is a guard's state, of one width.
func (t Text) guardTruth(state string) string {
	paint := color.New(color.FgYellow)
	switch rollback.Truth(state) {
	case rollback.Holds:
		paint = color.New(color.FgGreen)
	case rollback.Broken:
		paint = color.New(color.Bold, color.FgRed)
	case rollback.Unknown:
	}
	return t.paint(paint, fmt.Sprintf("%-7s", state))
}

func (t Text) rollbackSteps(steps []v1alpha1.RollbackStep) {
	for _, step := range steps {
		subject := step.Object
		if subject == "" && step.Node != "" {
			subject = "node " + step.Node
		}
		if subject == "" {
			subject = "all of these"
		}
		text := step.Text
		if step.Message != "" {
			text = step.Message
		}
		fmt.Fprintf(t.Out, "  %2d. %-11s %s: %s\n", step.Number, stepVerb(step), Line(subject), Line(text))
	}
}

// stepVerb is the action of a plan's step, the state of one that was tried.
func stepVerb(step v1alpha1.RollbackStep) string {
	if step.State == "planned" {
		return step.Action
	}
	return step.State
}

// RollbackResult renders a run: the outcome first, then what became of each
// step.
func (t Text) RollbackResult(document *v1alpha1.RollbackResult) {
	status := document.Status
	fmt.Fprintf(t.Out, "%s  rollback of DaemonSet %s/%s\n", t.rollbackOutcome(status.Outcome), document.Namespace, document.Name)
	t.field("what", status.Message)
	t.field("next", status.Next)
	if status.Outcome == string(rollback.Clean) && !t.Wide {
		return
	}
	t.rollbackSteps(status.Steps)
	for _, node := range status.Nodes {
		t.rollbackNode(node)
	}
}

func (t Text) rollbackOutcome(outcome string) string {
	paint := color.New(color.Bold, color.FgYellow)
	switch rollback.Outcome(outcome) {
	case rollback.Done, rollback.Clean:
		paint = color.New(color.Bold, color.FgGreen)
	case rollback.Failed:
		paint = color.New(color.Bold, color.FgRed)
	case rollback.Unfinished:
	}
	return t.paint(paint, strings.ToUpper(outcome))
}

// rollbackNode renders one node of a result or a status.
func (t Text) rollbackNode(node v1alpha1.RollbackNode) {
	words := []string{"node " + node.Name}
	if node.State != "" {
		words = append(words, node.State)
	}
	if node.ConfDir != "" {
		words = append(words, node.ConfDir)
	}
	if node.Primary != "" {
		words = append(words, node.Primary+" in effect")
		if node.State == rolledMultus || node.State == rolledBroken {
			words[len(words)-1] = commaList(node.Confs) + " before " + node.Primary
		}
	}
	if node.Message != "" {
		words = append(words, node.Message)
	}
	fmt.Fprintf(t.Out, "  %s\n", Line(strings.Join(words, ", ")))
	for _, kept := range node.Backups {
		if kept.Path == "" {
			continue
		}
		fmt.Fprintf(t.Out, "    kept %s\n         SHA-256 %s\n", Line(kept.Path), Line(kept.SHA256))
	}
	for _, note := range node.Notes {
		fmt.Fprintf(t.Out, "    %s\n", Line(note))
	}
}

// RollbackStatus renders what is left.
func (t Text) RollbackStatus(document *v1alpha1.RollbackStatus) {
	status := document.Status
	word := t.paint(color.New(color.Bold, color.FgYellow), "LEFT")
	if status.Clean {
		word = t.paint(color.New(color.Bold, color.FgGreen), "CLEAN")
	}
	fmt.Fprintf(t.Out, "%s  %s\n", word, Line(status.Message))
	t.field("next", status.Next)
	for _, object := range status.Objects {
		text := object.Name
		if object.Deleting {
			text += " (being deleted)"
		}
		if object.Stays != "" {
			text += " (" + object.Stays + ")"
		}
		fmt.Fprintf(t.Out, "  %s\n", Line(text))
	}
	for _, node := range status.Nodes {
		t.rollbackNode(node)
	}
	for _, pod := range status.Pods {
		fmt.Fprintf(t.Out, "  Pod %s, of a run that goes on or was killed\n", Line(pod))
	}
	for _, note := range status.Notes {
		fmt.Fprintf(t.Out, "  note: %s\n", Line(note))
	}
}

func commaList(names []string) string { return strings.Join(names, ", ") }
