//go:build linux

// Command status measures what `kubectl vlan50 status` costs on a large cluster,
// against `kubectl get pods -A -o json`: a real API server with 10,000 Pods and
// 50,000 events. It fails where the bounds are not kept.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// The bounds: peak memory, and the share of kubectl's time and bytes. Most of a
// Pod's metadata is its managedFields, which no request can leave out.
const (
	maxMemory = 60 << 20
	maxTime   = 1.0 / 5
	maxBytes  = 1.0 / 3
)

func main() {
	size := size{namespaces: 20, runs: 5}
	plugin := flag.String("plugin", "", "the binary to measure (default bin/kubectl-vlan50)")
	flag.IntVar(&size.pods, "pods", 10_000, "how many Pods")
	flag.IntVar(&size.events, "events", 50_000, "how many events")
	flag.IntVar(&size.onNetwork, "on-network", 50, "how many of the Pods are on the canary's network")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if args := flag.Args(); len(args) > 1 && args[0] == weigher {
		err = weigh(ctx, os.Stdout, args[1], args[2:]...)
	} else {
		err = run(ctx, os.Stdout, *plugin, size)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// size is how large the cluster is, and how often each command runs.
type size struct{ pods, events, namespaces, onNetwork, runs int }

func run(ctx context.Context, out io.Writer, plugin string, size size) error {
	dir, err := os.MkdirTemp("", "vlan50-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBench(ctx, dir)
	if err != nil {
		return err
	}
	defer b.server.Stop()
	b.plugin = cmp.Or(plugin, b.plugin)
	if err := b.fill(ctx, os.Stderr, size); err != nil {
		return err
	}
	node, err := b.canary(ctx)
	if err != nil {
		return err
	}
	defer node.Stop()
	ours, err := b.measure(ctx, size.runs, b.plugin, "status", "-o", "json")
	if err != nil {
		return err
	}
	theirs, err := b.measure(ctx, size.runs, b.kubectl, "get", "pods", "-A", "-o", "json")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "status on %d Pods (%d on the network) and %d events, median of %d runs:\n", size.pods, size.onNetwork, size.events, size.runs)
	fmt.Fprintf(out, "%-28s %10s %12s %12s %12s\n", "", "time", "bytes", "uncompressed", "peak memory")
	ours.print(out, "kubectl vlan50 status")
	theirs.print(out, "kubectl get pods -A -o json")
	fmt.Fprintf(out, "%-28s %9.1f%% %11.1f%% %11.1f%%\n", "share", 100*share(ours.time, theirs.time), 100*share(ours.bytes, theirs.bytes), 100*share(ours.plain, theirs.plain))
	return ours.within(theirs)
}

// within checks the bounds.
func (c cost) within(other cost) error {
	var errs []error
	if c.memory >= maxMemory {
		errs = append(errs, fmt.Errorf("peak memory is %d MB, the bound is %d", c.memory>>20, maxMemory>>20))
	}
	if s := share(c.bytes, other.bytes); s >= maxBytes {
		errs = append(errs, fmt.Errorf("%.2f of kubectl's bytes, the bound is %.2f", s, maxBytes))
	}
	if s := share(c.time, other.time); s >= maxTime {
		errs = append(errs, fmt.Errorf("%.2f of kubectl's time, the bound is %.2f", s, maxTime))
	}
	return errors.Join(errs...)
}

// newBench starts the API server and finds the two programs.
func newBench(ctx context.Context, dir string) (*bench, error) {
	root, err := buildcache.Root(ctx)
	if err != nil {
		return nil, err
	}
	kubectl, err := buildcache.Build(ctx, buildcache.Program{Name: "kubectl", Module: "test/lab/programs/kubectl", Package: "."}, os.Stderr)
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, kubectl: kubectl, plugin: filepath.Join(root, "bin", "kubectl-vlan50"), site: scriptednode.Reference()}
	if b.server, err = apiserver.Start(ctx, filepath.Join(dir, "server"), os.Stderr); err != nil {
		return nil, err
	}
	if b.config, err = b.server.Config(); err != nil {
		b.server.Stop()
		return nil, err
	}
	return b, nil
}
