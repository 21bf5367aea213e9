package scriptednode

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// userAgent tells the node's requests from those of the tool under test, in
// the API server's audit log.
const userAgent = "scriptednode"

// hostIP is the address of every scripted node: its kubelet listens there.
const hostIP = "127.0.0.1"

// Options are how a node behaves.
type Options struct {
	// Pace is how fast it is; the zero value means Fast.
	Pace Pace
	// Plan is what happens to the canary, attempt by attempt.
	Plan Plan
	// Pods scripts Pods that are neither the canary nor the Multus daemon. If
	// nil they get their networks and run.
	Pods func(*corev1.Pod) Script
	// Daemon is how the next daemon container behaves. The one that runs when
	// the node starts is healthy.
	Daemon Daemon
	// ConfAbsent starts the node without the Multus conf.
	ConfAbsent bool
	// OnError hears of each error at once; Node.Err has them all.
	OnError func(error)
}

// Node plays one node of a site. It is driven by watches and timers alone.
type Node struct {
	site     Site
	pace     Pace
	pods     func(*corev1.Pod) Script
	onError  func(error)
	config   *rest.Config
	client   kubernetes.Interface
	networks nadclient.Interface

	cni     *cniState
	logs    *logBook
	book    *journalBook
	alive   *gate // closed while the kubelet is stopped
	stuck   *gate // closed until Unstick
	restart *gate // closed while a dead daemon is not started again
	kubelet record.EventRecorder
	kick    chan struct{} // wakes the DaemonSet controller

	mu       sync.Mutex
	plan     Plan
	attempts int
	daemon   Daemon
	address  byte // the last octet of the newest Pod address
	workers  map[types.UID]*worker
	errs     []error

	// background is the node's life, for what outlives the call that starts it.
	background context.Context
	server     *kubeletServer
	cancel     context.CancelFunc
	wg         sync.WaitGroup
}

// New prepares a node; Start starts it.
func New(config *rest.Config, site Site, options Options) (*Node, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = userAgent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("scripted node: %w", err)
	}
	networks, err := nadclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("scripted node: %w", err)
	}
	if options.Pace == (Pace{}) {
		options.Pace = Fast()
	}
	if options.Pods == nil {
		options.Pods = func(*corev1.Pod) Script { return PassRunning() }
	}
	n := &Node{
		site: site, pace: options.Pace, pods: options.Pods, onError: options.OnError,
		config: config, client: client, networks: networks,
		cni: newCNIState(), logs: newLogBook(), book: &journalBook{},
		alive: newGate(true), stuck: newGate(false), restart: newGate(true), kick: make(chan struct{}, 1),
		plan: options.Plan, daemon: options.Daemon, workers: map[types.UID]*worker{},
	}
	n.cni.conf = !options.ConfAbsent
	return n, nil
}

// Start registers the node's kubelet and plays from then on, until Stop or the
// end of ctx. It returns when the Pods that are there have been seen.
func (n *Node) Start(ctx context.Context) error {
	// client-go would tell on standard error of each lost connection; what
	// matters goes to note.
	ctx, n.cancel = context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	n.background = ctx
	server, err := startKubelet(ctx, n.logs)
	if err != nil {
		n.cancel()
		return fmt.Errorf("scripted node %s: %w", n.site.Node, err)
	}
	n.server = server
	if err := n.register(ctx, server.port); err != nil {
		n.Stop()
		return fmt.Errorf("registering the node %s: %w", n.site.Node, err)
	}
	n.kubelet = newRecorder(ctx, n.client, corev1.EventSource{Component: "kubelet", Host: n.site.Node})
	synced := n.watch(ctx)
	n.spawn(ctx, "DaemonSet controller", n.controlDaemonSet)
	if err := n.settle(ctx, synced); err != nil {
		n.Stop()
		return fmt.Errorf("starting the node %s: %w", n.site.Node, err)
	}
	return nil
}

// settle waits until what was there at the start has been taken over: a test
// that kills the daemon right away must find one.
func (n *Node) settle(ctx context.Context, synced []<-chan struct{}) error {
	for _, done := range synced {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, w := range n.running() {
		if !w.daemon {
			continue
		}
		select {
		case <-w.settled.door():
		case <-w.deleted.door():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Stop ends all that the node does and waits for it. The API objects stay.
func (n *Node) Stop() {
	if n.cancel == nil {
		return // never started
	}
	n.cancel()
	if n.server != nil {
		n.server.stop()
	}
	n.wg.Wait()
}

// Err is all that went wrong so far.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return errors.Join(n.errs...)
}

// Site is the site that the node belongs to.
func (n *Node) Site() Site { return n.site }

// Journal is what the node did so far.
func (n *Node) Journal() Journal { return n.book.copy() }

// Play replaces the plan: scripts are for the attempts from the next one on.
func (n *Node) Play(scripts ...Script) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan, n.attempts = scripts, 0
}

// Unstick lets the Pods go whose teardown was stuck, and all later ones.
func (n *Node) Unstick() { n.stuck.open() }

// nextScript counts an attempt and gives its script.
func (n *Node) nextScript() Script {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempts++
	return n.plan.For(n.attempts)
}

// spawn runs a goroutine that Stop waits for.
func (n *Node) spawn(ctx context.Context, what string, run func(context.Context) error) {
	n.wg.Go(func() { n.note(ctx, what, run(ctx)) })
}

// note keeps an error, unless it only says that the node was stopped.
func (n *Node) note(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	err = fmt.Errorf("scripted node %s: %s: %w", n.site.Node, what, err)
	n.mu.Lock()
	n.errs = append(n.errs, err)
	n.mu.Unlock()
	if n.onError != nil {
		n.onError(err)
	}
}
