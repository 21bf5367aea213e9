package rollback

import (
	"cmp"
	"fmt"
	"strings"
)

// standing says what stands where a run has ended early.
func (r *Rollback) standing() string {
	var done, open []string
	for _, step := range r.result.Steps {
		switch step.State {
		case StepDone:
			done = append(done, fmt.Sprint(step.Number))
		case StepFailed, StepPending:
			open = append(open, fmt.Sprint(step.Number))
		case StepKept:
		}
	}
	if len(done) == 0 && r.current < 0 {
		return "nothing was changed"
	}
	text := "no step is done"
	if len(done) > 0 {
		text = fmt.Sprintf("%s %s %s done", plural(len(done), "step", "steps"), span(done), plural(len(done), "is", "are"))
	}
	if len(open) == 0 {
		return text
	}
	next := r.result.Steps[max(r.current, 0)]
	return fmt.Sprintf("%s; step %d (%s: %s) is not, and %s; run the same command again to go on",
		text, next.Number, next.Subject(), next.Text, left(len(open)-1))
}

func left(n int) string {
	if n == 0 {
		return "none comes after it"
	}
	return fmt.Sprintf("%d more %s untouched", n, plural(n, "is", "are"))
}

// span shortens 1, 2, 3 to 1-3.
func span(numbers []string) string {
	if len(numbers) > 2 {
		return numbers[0] + "-" + numbers[len(numbers)-1]
	}
	return strings.Join(numbers, " and ")
}

func (r *Rollback) cleanMessage() string {
	text := "Multus is gone: no DaemonSet, network, role or configuration of it is left"
	if kept := r.kept(); len(kept) > 0 {
		text = "nothing is left to do; " + join(kept)
	}
	if n := len(r.state.Nodes); n > 0 && r.state.Access == AccessPod {
		text = fmt.Sprintf("%s, and no Multus conf on %d %s", text, n, plural(n, "node", "nodes"))
	}
	return text + r.unseen()
}

// unseen names the nodes that this run has not looked at.
func (r *Rollback) unseen() string {
	n := len(r.state.Unseen)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(". Not looked at: %s, where no daemon Pod was; kubectl vlan50 rollback status looks at every node that is Ready", cut(join(r.state.Unseen)))
}

func (r *Rollback) doneMessage() string {
	text := "Multus is gone"
	if kept := r.kept(); len(kept) > 0 {
		text += "; " + join(kept)
	}
	text += r.unseen()
	if r.result.Saved != "" {
		text += ". The manifests of what was deleted are in " + r.result.Saved
	}
	return text
}

func (r *Rollback) doneNext() string {
	if r.result.Saved == "" {
		return ""
	}
	return fmt.Sprintf("to come back: kubectl apply -f %s (again until it finds every kind: that of the networks is made by the first), then kubectl vlan50 canary retest; --undo puts the nodes' conf back", r.result.Saved)
}

func (r *Rollback) kept() []string {
	var kept []string
	for _, step := range r.result.Steps {
		if step.State == StepKept {
			kept = append(kept, step.Subject()+" stays ("+strings.TrimPrefix(cmp.Or(step.Message, step.Text), "it stays: ")+")")
		}
	}
	return kept
}

func joinSentences(texts []string) string { return strings.Join(texts, "; ") }
