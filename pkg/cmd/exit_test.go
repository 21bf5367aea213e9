package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func TestExitCode(t *testing.T) {
	interrupted := func(cause error) error { return &canary.Interruption{Cause: cause, Left: "nothing was changed"} }
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"pass", &judged{verdict.Pass}, 0},
		{"trouble", errors.New("connection refused"), 1},
		{"the deadline before anything was judged", fmt.Errorf("x: %w", canary.ErrDeadline), 1},
		{"wrong usage", usage(errors.New("unknown flag")), 2},
		{"wrong usage, wrapped", fmt.Errorf("x: %w", usage(errors.New("y"))), 2},
		{"fail", &judged{verdict.Fail}, 3},
		{"inconclusive", &judged{verdict.Inconclusive}, 4},
		{"a verdict that is none", &judged{"maybe"}, 4},
		{"a guard", &canary.Refusal{Reason: "no"}, 5},
		{"a guard, wrapped", fmt.Errorf("x: %w", &canary.Refusal{Reason: "no"}), 5},
		{"Ctrl-C", interrupted(signalled{os.Interrupt}), 130},
		{"Ctrl-C in a request", fmt.Errorf("x: %w", signalled{os.Interrupt}), 130},
		{"cancelled by no signal", interrupted(context.Canceled), 130},
		{"cancelled in a request", fmt.Errorf("x: %w", context.Canceled), 130},
		{"terminated", interrupted(signalled{syscall.SIGTERM}), 143},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := exitCode(test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// Each code a command can end with is told, and no other.
func TestExitCodesAreTold(t *testing.T) {
	var told []int
	for _, row := range exitCodes() {
		told = append(told, row.Code)
		if !strings.Contains(exitCodeHelp(), fmt.Sprintf("\n  %3d  %s", row.Code, row.Meaning)) {
			t.Errorf("help does not tell code %d", row.Code)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 130, 143}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadmeTellsTheExitCodes(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, begun := strings.Cut(string(readme), "<!-- exit codes: begin -->\n")
	table, _, ended := strings.Cut(after, "<!-- exit codes: end -->")
	if !begun || !ended {
		t.Fatal("README.md has no table between the exit code markers")
	}
	var want strings.Builder
	want.WriteString("| code | meaning |\n|---|---|\n")
	for _, row := range exitCodes() {
		fmt.Fprintf(&want, "| %d | %s |\n", row.Code, row.Meaning)
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("README.md (-want +got):\n%s", diff)
	}
}
