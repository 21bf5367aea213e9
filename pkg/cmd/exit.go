package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// The exit codes, the same for every output format.
const (
	exitOK           = 0
	exitTrouble      = 1
	exitUsage        = 2
	exitFail         = 3
	exitInconclusive = 4
	exitRefused      = 5
	exitInterrupted  = 130 // 128 + SIGINT
	exitTerminated   = 143 // 128 + SIGTERM
)

// exitCodes is the table that help and docs print.
func exitCodes() []struct {
	Code    int
	Meaning string
} {
	return []struct {
		Code    int
		Meaning string
	}{
		{exitOK, "pass, or done"},
		{exitTrouble, "trouble with the tool or the API: nothing was judged"},
		{exitUsage, "wrong usage"},
		{exitFail, "fail"},
		{exitInconclusive, "inconclusive"},
		{exitRefused, "refused by a guard, or declined"},
		{exitInterrupted, "interrupted (Ctrl-C)"},
		{exitTerminated, "terminated"},
	}
}

// usageError is the user's to mend: a flag, an argument, a manifest.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// judged carries a verdict's exit code; the verdict itself was printed already.
type judged struct{ outcome verdict.Outcome }

func (j *judged) Error() string { return "the verdict is " + string(j.outcome) }

// signalled is the cause of a context that a signal has ended.
type signalled struct{ signal os.Signal }

func (s signalled) Error() string { return s.signal.String() }

// exitCode is the one place that turns an error into a code.
func exitCode(err error) int {
	var (
		wrong        *usageError
		outcome      *judged
		refusal      *canary.Refusal
		interruption *canary.Interruption
		signal       signalled
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &outcome):
		return outcomeCode(outcome.outcome)
	case errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &refusal):
		return exitRefused
	case errors.As(err, &signal) && (signal.signal == syscall.SIGTERM || signal.signal == syscall.SIGHUP):
		return exitTerminated
	case errors.As(err, &interruption), errors.As(err, &signal), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitTrouble
}

func outcomeCode(outcome verdict.Outcome) int {
	switch outcome {
	case verdict.Pass:
		return exitOK
	case verdict.Fail:
		return exitFail
	case verdict.Inconclusive:
	}
	return exitInconclusive
}

// exitCodeHelp is the table as help text.
func exitCodeHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:")
	for _, row := range exitCodes() {
		fmt.Fprintf(&b, "\n  %3d  %s", row.Code, row.Meaning)
	}
	return b.String()
}
