// Command demo shows the main job on a machine with Go and nothing else: a real
// API server, a scripted node in the place of kubelet and Multus, and the real
// binary through three retests.
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
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	root, err := buildcache.Root(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vlan50-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	fmt.Fprintln(out, "This demo uses a scripted node: the API server is real, kubelet and Multus are played.")
	server, err := apiserver.Start(ctx, filepath.Join(dir, "server"), out)
	if err != nil {
		return err
	}
	defer server.Stop()
	config, err := server.Config()
	if err != nil {
		return err
	}
	if err := scriptednode.InstallCRD(ctx, config); err != nil {
		return err
	}
	d := demo{out: out, dir: dir, config: config, binary: filepath.Join(root, "bin", "kubectl-vlan50")}
	if err := server.WriteKubeconfig(d.file("kubeconfig"), ""); err != nil {
		return err
	}
	return d.play(ctx)
}

// demo is one showing.
type demo struct {
	out         io.Writer
	dir, binary string
	config      *rest.Config
}

func (d demo) file(name string) string { return filepath.Join(d.dir, name) }

// scene is one retest to watch.
type scene struct {
	title, story string
	script       scriptednode.Script
	// restart has the Multus DaemonSet restarted just before.
	restart *scriptednode.Daemon
	args    []string
	// code is the exit code that must come: the demo is a test of itself.
	code int
}

func scenes() []scene {
	return []scene{
		{
			title: "1. A pass, right after a restart of Multus",
			story: "The DaemonSet is restarted, and its daemon writes the CNI conf 3 s after it is Ready.\n" +
				"The retest waits for the conf, not for Ready.",
			script:  scriptednode.Pass(),
			restart: &scriptednode.Daemon{ConfAfterReady: 3 * time.Second},
		},
		{
			title: "2. The false failure of the runbook",
			story: "The same restart, done as by hand: the daemon's log is silent and --settle=0s takes Ready\n" +
				"for ready. The canary comes up without Multus and fails. That says nothing about the VLAN,\n" +
				"and the verdict says so.",
			script:  scriptednode.Pass(),
			restart: &scriptednode.Daemon{ConfAfterReady: 8 * time.Second, LogLevel: "error"},
			args:    []string{"--settle=0s"},
			code:    4,
		},
		{
			title:  "3. A real failure: the macvlan plugin is missing on the node",
			story:  "kubelet tries again and again; the retest stops as soon as the fault is certain.",
			script: scriptednode.MissingPlugin("macvlan"),
			code:   3,
		},
	}
}

func (d demo) play(ctx context.Context) error {
	site := scriptednode.Reference()
	if err := site.Apply(ctx, d.config); err != nil {
		return err
	}
	if err := os.WriteFile(d.file("canary.yaml"), site.CanaryManifest(), 0o600); err != nil {
		return err
	}
	node, err := scriptednode.New(d.config, site, scriptednode.Options{Pace: pace()})
	if err != nil {
		return err
	}
	if err := node.Start(ctx); err != nil {
		return err
	}
	defer node.Stop()
	for _, scene := range scenes() {
		if err := d.show(ctx, node, scene); err != nil {
			return fmt.Errorf("scene %q: %w", scene.title, err)
		}
	}
	fmt.Fprintln(d.out, "\nDone: three retests, three verdicts. Nothing is left behind.")
	return node.Err()
}

// pace is that of a real node, with the waits that only bore cut short.
func pace() scriptednode.Pace {
	pace := scriptednode.Measured()
	pace.Retry = 2 * time.Second
	pace.Guard, pace.GuardWait = 1500*time.Millisecond, 3*time.Second
	return pace
}

func (d demo) show(ctx context.Context, node *scriptednode.Node, scene scene) error {
	fmt.Fprintf(d.out, "\n=== %s\n%s\n\n", scene.title, scene.story)
	node.Play(scene.script)
	if scene.restart != nil {
		if err := node.RestartDaemonSet(ctx, *scene.restart); err != nil {
			return err
		}
	}
	args := append([]string{"canary", "retest", "-f", "canary.yaml"}, scene.args...)
	fmt.Fprintf(d.out, "$ kubectl vlan50")
	for _, arg := range args {
		fmt.Fprintf(d.out, " %s", arg)
	}
	fmt.Fprintln(d.out)
	code, err := d.retest(ctx, args)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "(exit code %d)\n", code)
	if code != scene.code {
		return fmt.Errorf("exit code %d, expected %d", code, scene.code)
	}
	return nil
}

func (d demo) retest(ctx context.Context, args []string) (int, error) {
	command := exec.CommandContext(ctx, d.binary, args...)
	command.Dir = d.dir
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "KUBECONFIG="+d.file("kubeconfig"), "VLAN50_STATE_DIR="+d.file("state"))
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
