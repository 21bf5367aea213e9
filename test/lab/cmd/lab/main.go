//go:build linux

// Command lab starts, shows and ends the lab.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

const usage = `usage: lab COMMAND
  up                start the lab, or what has ended of it
  build             build and fetch all that it is made of, and start nothing
  down              end the lab and remove what it left
  status            what runs
  shell [COMMAND]   a shell on this machine that reaches the lab
  node [COMMAND]    a shell inside the node: its files, processes and network
  join              start a second node
  part              take the second node away again
`

func main() {
	if code, mine := node.Main(os.Args); mine {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	err := command(ctx, args[0], args[1:])
	if ended, ok := errors.AsType[exited](err); ok {
		return int(ended)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

func command(ctx context.Context, name string, args []string) error {
	switch name {
	case "up":
		return up(ctx, os.Stdout)
	case "build":
		return lab.Build(ctx, os.Stdout)
	case "down":
		return lab.Down(ctx, os.Stdout)
	}
	l, err := lab.Open()
	if err != nil {
		return err
	}
	switch name {
	case "status":
		return l.Status(ctx, os.Stdout)
	case "shell":
		cmd, err := l.Shell(ctx, args...)
		if err != nil {
			return err
		}
		return attach(cmd)
	case "node":
		if len(args) == 0 {
			args = []string{"/bin/sh"}
		}
		return attach(l.NodeCommand(ctx, args...))
	case "join":
		_, err := l.Join(ctx)
		return err
	case "part":
		return l.Part(ctx)
	default:
		return fmt.Errorf("no command %q\n%s", name, usage)
	}
}

func up(ctx context.Context, out io.Writer) error {
	l, err := lab.Up(ctx, out)
	if err != nil {
		return err
	}
	l.Usage(out)
	return nil
}

// exited is the exit code of a command that the user runs in the lab; it has said
// itself what was wrong.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// attach runs a command on the terminal. Signals of the terminal are the
// command's to heed.
func attach(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return nil }
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exited(exit.ExitCode())
	}
	return err
}
