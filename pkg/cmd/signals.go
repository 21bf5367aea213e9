package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals gives a context that the first SIGINT, SIGTERM or SIGHUP ends, with the
// signal as its cause. After it the default behaviour is back, so that a second
// Ctrl-C leaves at once.
func Signals() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	// Under nohup it stays ignored.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(received, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-received:
			signal.Stop(received)
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(context.Canceled)
	}
}

// surviveBrokenPipe lets a command that changes the cluster go on where nobody
// reads its progress any more: it must not die in the middle.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
