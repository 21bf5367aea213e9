//go:build linux

package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// callWithin bounds a call to the cluster that answers at once or never.
const callWithin = 30 * time.Second

// Up starts the lab, or starts what has ended of one that is up already, and
// waits until the canary has been made. An interrupted Up leaves no process
// behind.
func Up(ctx context.Context, progress io.Writer) (*Lab, error) {
	l, err := find()
	if err != nil {
		return nil, err
	}
	release, err := lock(ctx, l.startLock(), func(pid int) {
		fmt.Fprintf(progress, "waiting for the start of the lab in process %d\n", pid)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for another start of the lab: %w", err)
	}
	defer release()
	if l, err = find(); err != nil {
		return nil, err
	}
	if l.pid != 0 {
		return l, l.resume(ctx, progress)
	}
	if l.inShell() {
		return nil, errors.New("this is a shell of a lab that has ended: leave it first (exit), then run make lab-up")
	}
	// What a lab that crashed has left.
	if err := l.clean(progress); err != nil {
		return nil, err
	}
	references, err := l.prepare(ctx, progress)
	if err != nil {
		return nil, err
	}
	return l, l.boot(ctx, references, progress)
}

// startLock is the path of the file that whoever starts or ends the lab holds.
func (l *Lab) startLock() string { return l.dir + ".up" }

// resume starts the services that are not running.
func (l *Lab) resume(ctx context.Context, progress io.Writer) error {
	services, err := l.Services(ctx)
	if err != nil {
		return fmt.Errorf("the lab is up but does not answer; \"make lab-down\" ends it: %w", err)
	}
	for _, service := range services {
		if service.Running {
			continue
		}
		fmt.Fprintf(progress, "starting %s, which had ended\n", service.Name)
		if err := l.StartService(ctx, service.Name); err != nil {
			return err
		}
	}
	return nil
}

// prepare builds and fetches everything and lays it out in the state folder.
func (l *Lab) prepare(ctx context.Context, progress io.Writer) (references map[string]string, err error) {
	if err := checkHost(ctx); err != nil {
		return nil, err
	}
	programs, err := allPrograms(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(l.dir, node.LogDir), 0o700); err != nil {
		return nil, err
	}
	references, err = writeImages(ctx, filepath.Join(l.dir, node.ImageArchive), programs)
	if err != nil {
		return nil, err
	}
	return references, l.writeConfig(node.Config{
		Tools:        tools(programs),
		Plugins:      k3sPlugins(),
		SandboxImage: references["pause"],
	})
}

// allPrograms builds and fetches all programs, or takes them from the cache.
func allPrograms(ctx context.Context, progress io.Writer) (map[string]string, error) {
	// What is missing and cannot be had is known at once, a build takes minutes.
	packages, err := findPackages(ctx, progress)
	if err != nil {
		return nil, err
	}
	programs, err := buildPrograms(ctx, progress)
	if err != nil {
		return nil, err
	}
	maps.Copy(programs, packages)
	return programs, nil
}

// Build fills the cache with all that the lab is made of, and starts nothing.
func Build(ctx context.Context, progress io.Writer) error {
	if err := Check(ctx); err != nil {
		return err
	}
	_, err := allPrograms(ctx, progress)
	return err
}

// tools are the programs that the node itself runs.
func tools(programs map[string]string) map[string]string {
	names := []string{
		"controlplane", "nodeparts", "kubectl",
		"containerd", "containerd-shim-runc-v2", "ctr", "runc", "busybox",
	}
	chosen := map[string]string{}
	for _, name := range slices.Concat(names, k3sPlugins()) {
		chosen[name] = programs[name]
	}
	return chosen
}

func (l *Lab) writeConfig(config node.Config) error {
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.dir, node.ConfigFile), data, 0o600)
}

// boot starts the node and sets up the reference site on it.
func (l *Lab) boot(ctx context.Context, references map[string]string, progress io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, l.endAfterFailure(ctx))
		}
	}()
	if err := l.makeCgroup(node.Name); err != nil {
		return err
	}
	leash, err := l.startNode(ctx, progress)
	if err != nil {
		return err
	}
	defer leash.Close()
	if err := l.writeManifests(references); err != nil {
		return err
	}
	if err := l.install(ctx, progress); err != nil {
		return err
	}
	// From here on the node outlives this process.
	_, err = leash.WriteString("free")
	return err
}

// failedDir keeps the logs of a start that failed, until the next one.
func (l *Lab) failedDir() string { return l.dir + "-failed-start" }

// endAfterFailure takes a half-started lab down. Where it was not interrupted,
// its logs are kept.
func (l *Lab) endAfterFailure(ctx context.Context) error {
	err := errors.Join(l.kill(), l.removeCgroups())
	if ctx.Err() == nil && os.Rename(filepath.Join(l.dir, node.LogDir), l.failedDir()) == nil {
		err = errors.Join(err, fmt.Errorf("the logs are in %s", l.failedDir()))
	}
	if err != nil {
		return err // the next lab-down goes on from what is noted
	}
	return os.RemoveAll(l.dir)
}

// startNode starts the lab's first process and waits until the node is up. The
// node dies with this process, or with ctx, until something is written to the
// leash.
func (l *Lab) startNode(ctx context.Context, progress io.Writer) (leash *os.File, err error) {
	listener, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	held, leash, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	context.AfterFunc(ctx, func() { leash.Close() })
	said, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	defer say.Close()
	log, err := os.Create(filepath.Join(l.dir, node.LogDir, "lab.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := node.Command(l.dir, held, say, listener)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("making the lab's namespaces: %w", err)
	}
	l.pid = cmd.Process.Pid
	go func() { _ = cmd.Wait() }()
	say.Close()
	return leash, follow(ctx, said, progress)
}

// follow prints what the node says until it is ready. A node that ends with ctx has
// no say in why.
func follow(ctx context.Context, said io.Reader, progress io.Writer) error {
	last := "the node ended without a word: see its log"
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if lines.Text() == node.Ready {
			return nil
		}
		last = lines.Text()
		fmt.Fprintln(progress, last)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("starting the node: %w", context.Cause(ctx))
	}
	return fmt.Errorf("starting the node: %s", strings.TrimSpace(last))
}

// listen opens the host's door to the API server on a free loopback port.
func listen(ctx context.Context) (*os.File, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.New("no TCP listener")
	}
	return tcp.File()
}
