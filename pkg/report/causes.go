package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// Causes lists the catalogue, a line a cause.
func Causes(out io.Writer, entries []verdict.Entry) {
	width := 0
	for _, entry := range entries {
		width = max(width, len(entry.Cause))
	}
	for _, entry := range entries {
		fmt.Fprintf(out, "%-*s  %-12s  %s\n", width, entry.Cause, entry.Outcome, entry.Summary)
	}
}

// Cause tells one cause.
func Cause(out io.Writer, entry verdict.Entry) {
	fmt.Fprintf(out, "%s (%s)\n\n%s\n\nNext: %s\n\nSee %s\n", entry.Cause, outcomes(entry), entry.Summary, entry.Next, entry.Anchor())
}

// CausesMarkdown is docs/causes.md.
func CausesMarkdown(out io.Writer, entries []verdict.Entry) {
	fmt.Fprint(out, `# Causes

<!-- Generated from the catalogue in pkg/verdict by "make docs". -->

Every verdict names one of these causes. kubectl vlan50 explain tells them
without a network.

| cause | verdict | meaning |
|---|---|---|
`)
	for _, entry := range entries {
		fmt.Fprintf(out, "| [%s](#%s) | %s | %s |\n", entry.Cause, entry.Cause, outcomes(entry), escapePipes(entry.Summary))
	}
	for _, entry := range entries {
		fmt.Fprintf(out, "\n## %s\n\n%s\n\nVerdict: %s.\n\nNext: %s.\n", entry.Cause, escapeAngles(entry.Summary), outcomes(entry), escapeAngles(entry.Next))
	}
}

// outcomes names the verdicts a cause can mean.
func outcomes(entry verdict.Entry) string {
	if entry.Window {
		return string(entry.Outcome) + ", or inconclusive while the daemon was changing"
	}
	return string(entry.Outcome)
}

func escapePipes(text string) string { return strings.ReplaceAll(escapeAngles(text), "|", `\|`) }

// escapeAngles keeps <node> from being taken for HTML.
func escapeAngles(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
}
