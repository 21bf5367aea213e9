//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// bench is one API server and the two programs that are compared on it.
type bench struct {
	dir             string
	server          *apiserver.Server
	config          *rest.Config
	plugin, kubectl string
	site            scriptednode.Site
}

// cost is what one run of a program took: the middle one of several, by time.
type cost struct {
	time   time.Duration
	bytes  int64 // both ways on the wire
	plain  int64 // the same, where answers are not compressed
	memory int64 // peak resident set
}

func (c cost) print(out io.Writer, name string) {
	fmt.Fprintf(out, "%-28s %8.2f s %9.2f MB %9.2f MB %9.1f MB\n", name, c.time.Seconds(), float64(c.bytes)/1e6, float64(c.plain)/1e6, float64(c.memory)/(1<<20))
}

func share[T ~int64](a, b T) float64 { return float64(a) / float64(b) }

// measure runs a program several times; the first run, which fills the server's
// caches, does not count.
func (b *bench) measure(ctx context.Context, runs int, program string, args ...string) (cost, error) {
	var costs []cost
	for i := range runs + 1 {
		c, err := b.once(ctx, true, program, args...)
		if err != nil {
			return cost{}, err
		}
		if i > 0 {
			costs = append(costs, c)
		}
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.time, b.time) })
	middle := costs[len(costs)/2]
	// Memory and bytes are bounds: the largest counts.
	for _, c := range costs {
		middle.memory, middle.bytes = max(middle.memory, c.memory), max(middle.bytes, c.bytes)
	}
	plain, err := b.once(ctx, false, program, args...)
	middle.plain = plain.bytes
	return middle, err
}

func (b *bench) once(ctx context.Context, compressed bool, program string, args ...string) (cost, error) {
	wire, err := b.newWire(ctx)
	if err != nil {
		return cost{}, err
	}
	defer wire.close()
	kubeconfig, err := b.kubeconfig(wire.address(), compressed)
	if err != nil {
		return cost{}, err
	}
	var stderr bytes.Buffer
	own, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	var used bytes.Buffer
	command := exec.CommandContext(ctx, own, append([]string{weigher, program}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "VLAN50_STATE_DIR="+filepath.Join(b.dir, "state"), "HOME="+b.dir)
	command.Stdout, command.Stderr = &used, &stderr
	if err := command.Run(); err != nil {
		return cost{}, fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, stderr.String())
	}
	c := cost{bytes: wire.bytes.Load()}
	_, err = fmt.Sscan(used.String(), &c.time, &c.memory)
	return c, err
}

// weigher is the first argument of this program where it runs another one and
// says what that took. Linux counts what a process was before its exec into its
// peak memory: only a parent that is small itself can tell.
const weigher = "weigh"

// weigh runs a program and prints its time in nanoseconds and its peak resident
// set in bytes.
func weigh(ctx context.Context, out io.Writer, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = os.Stderr
	start := time.Now()
	if err := command.Run(); err != nil {
		return err
	}
	took := time.Since(start)
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("the system does not tell what a process used")
	}
	_, err := fmt.Fprintln(out, int64(took), usage.Maxrss<<10)
	return err
}

// kubeconfig is the administrator's, by way of the counted wire.
func (b *bench) kubeconfig(address string, compressed bool) (string, error) {
	const name = "bench"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: b.config.CAData, DisableCompression: !compressed}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: b.config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	path := filepath.Join(b.dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*kubeconfig, path)
}

// wire passes bytes on to the API server and counts them, as they are on the
// network: compressed and encrypted.
type wire struct {
	listener net.Listener
	server   string
	bytes    atomic.Int64
	wg       sync.WaitGroup
}

func (b *bench) newWire(ctx context.Context) (*wire, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, server: strings.TrimPrefix(b.server.Host(), "https://")}
	w.wg.Go(func() { w.accept(ctx) })
	return w, nil
}

func (w *wire) address() string { return w.listener.Addr().String() }

func (w *wire) accept(ctx context.Context) {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.wg.Go(func() { w.pass(server, client) })
		w.wg.Go(func() { w.pass(client, server) })
	}
}

// pass copies one direction, and ends both when it ends.
func (w *wire) pass(to, from net.Conn) {
	_, _ = io.Copy(io.MultiWriter(to, counter{&w.bytes}), from)
	_, _ = to.Close(), from.Close()
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.wg.Wait()
}

type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
