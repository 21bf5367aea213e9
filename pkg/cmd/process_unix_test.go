//go:build unix

package cmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

func TestAlive(t *testing.T) {
	if !alive(os.Getpid()) {
		t.Error("this process does not run")
	}
	if !alive(1) {
		t.Error("the first process does not run")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if alive(child.Process.Pid) {
		t.Error("a process that has ended runs")
	}
}

// The first signal ends the context and says which it was.
func TestSignals(t *testing.T) {
	for name, test := range map[string]struct {
		signal syscall.Signal
		code   int
	}{"Ctrl-C": {syscall.SIGINT, exitInterrupted}, "terminated": {syscall.SIGTERM, exitTerminated}} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := Signals()
			defer stop()
			if err := syscall.Kill(os.Getpid(), test.signal); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			if code := exitCode(&canary.Interruption{Cause: context.Cause(ctx)}); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
		})
	}
	ctx, stop := Signals()
	stop()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("stopped without a signal: %v", context.Cause(ctx))
	}
}
