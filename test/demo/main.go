// Command demo shows the main job on a machine with Go and nothing else: the
// real binary through three retests. As root on Linux it uses the lab, a real
// node with real Multus; elsewhere a real API server with a scripted node.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

func main() {
	if code, mine := reenter(os.Args); mine {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// stage is a cluster to show a scene on.
type stage interface {
	// set prepares the cluster for a scene, so that the retest can begin.
	set(ctx context.Context, s scene) error
	// kubeconfig and manifest are the paths of what the user needs.
	kubeconfig() string
	manifest() string
	// leave takes everything away that the stage has brought.
	leave() error
}

func run(ctx context.Context, out io.Writer) (err error) {
	root, err := buildcache.Root(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vlan50-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	on, err := stages{missing: labMissing, lab: enterLab, scripted: enterScripted}.enter(ctx, os.Getenv(stageVariable), dir, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.leave()) }()

	s := show{out: out, stage: on, dir: dir, binary: filepath.Join(root, "bin", "kubectl-vlan50")}
	for _, scene := range scenes() {
		if err := s.play(ctx, scene); err != nil {
			return fmt.Errorf("scene %q: %w", scene.title, err)
		}
	}
	fmt.Fprintln(out, "\nDone: three retests, three verdicts. Nothing is left behind.")
	return nil
}

// show plays scenes with the real binary.
type show struct {
	out         io.Writer
	stage       stage
	dir, binary string
}

func (s show) play(ctx context.Context, scene scene) error {
	fmt.Fprintf(s.out, "\n=== %s\n%s\n\n", scene.title, scene.story)
	if err := s.stage.set(ctx, scene); err != nil {
		return err
	}
	args := append([]string{"canary", "retest", "-f", s.stage.manifest()}, scene.args...)
	fmt.Fprintf(s.out, "$ kubectl vlan50 %s\n", strings.Join(args, " "))
	code, err := s.retest(ctx, args)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "(exit code %d)\n", code)
	if code != scene.code {
		return fmt.Errorf("exit code %d, expected %d", code, scene.code)
	}
	return nil
}

func (s show) retest(ctx context.Context, args []string) (int, error) {
	command := exec.CommandContext(ctx, s.binary, args...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "KUBECONFIG="+s.stage.kubeconfig(), "VLAN50_STATE_DIR="+filepath.Join(s.dir, "state"))
	// Ctrl-C reaches the whole process group: the retest ends by itself.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return command.ProcessState.ExitCode(), nil
}
