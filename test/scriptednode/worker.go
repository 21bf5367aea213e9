package scriptednode

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// worker is the life of one Pod UID on the node, as kubelet's pod workers are:
// one goroutine plays it, and ends it when it is deleted.
type worker struct {
	node   *Node
	id     podID
	script Script
	daemon bool // a Pod of the Multus DaemonSet
	pod    atomic.Pointer[corev1.Pod]

	bound   *gate // open when the Pod has a node
	deleted *gate // open when deletion was asked for or the UID is gone
	settled *gate // open when a daemon that ran before the node was watched is taken over
}

// podSeen takes up a Pod that is this node's business, or tells its worker what
// changed. It must not block: the watch waits for it.
func (n *Node) podSeen(ctx context.Context, pod *corev1.Pod) {
	if n.isDaemon(pod) {
		n.wake()
	}
	n.mu.Lock()
	w := n.workers[pod.UID]
	n.mu.Unlock()
	if w == nil {
		if !n.wants(pod) {
			return
		}
		w = n.newWorker(pod)
		w.update(pod)
		n.spawn(ctx, "Pod "+w.id.String(), w.run)
		return
	}
	w.update(pod)
}

func (n *Node) newWorker(pod *corev1.Pod) *worker {
	w := &worker{
		node: n, id: identity(pod), daemon: n.isDaemon(pod),
		bound: newGate(false), deleted: newGate(false), settled: newGate(false),
	}
	switch {
	case w.daemon:
	case !n.site.isCanary(pod):
		w.script = n.pods(pod)
	case !terminal(pod.Status.Phase): // one that ended before is nobody's attempt
		w.script = n.nextScript()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.workers[pod.UID] = w
	return w
}

// podGone ends the worker of a UID that is no longer in the API.
func (n *Node) podGone(pod *corev1.Pod) {
	if n.isDaemon(pod) {
		n.wake()
	}
	n.mu.Lock()
	w := n.workers[pod.UID]
	delete(n.workers, pod.UID)
	n.mu.Unlock()
	if w != nil {
		n.book.add(Entry{Kind: PodGone, Pod: w.id.NamespacedName, UID: w.id.uid})
		w.deleted.open()
	}
}

func (w *worker) update(pod *corev1.Pod) {
	w.pod.Store(pod)
	if pod.Spec.NodeName != "" {
		w.bound.open()
	}
	if pod.DeletionTimestamp != nil {
		w.deleted.open()
	}
}

// run plays the Pod until it is deleted, then takes it down.
func (w *worker) run(ctx context.Context) error {
	attempt := &attempt{node: w.node, worker: w, id: w.id}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.node.note(playing, "playing "+w.id.String(), w.play(playing, attempt))
	}()
	err := w.deleted.wait(ctx)
	stop()
	<-done
	if err != nil {
		return nil // the node was stopped
	}
	return attempt.end(ctx)
}

func (w *worker) play(ctx context.Context, a *attempt) error {
	if err := w.node.schedule(ctx, w); err != nil {
		return err
	}
	if err := w.bound.wait(ctx); err != nil {
		return err
	}
	if err := a.admit(ctx, w.pod.Load()); err != nil {
		return err
	}
	if w.daemon {
		return a.playDaemon(ctx)
	}
	return a.playScript(ctx, w.script)
}

// wants tells whether a Pod is this node's business: it is bound to it, or
// nobody else on this API server would schedule it.
func (n *Node) wants(pod *corev1.Pod) bool {
	switch {
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName == n.site.Node
	case n.isDaemon(pod):
		return daemonTarget(pod) == n.site.Node
	case pod.Spec.NodeSelector[corev1.LabelHostname] == n.site.Node:
		return true
	default:
		return pod.Namespace == n.site.Namespace
	}
}

// isDaemon tells the Pods of the site's DaemonSet by their controller.
func (n *Node) isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.Name == n.site.DaemonSet.Name && pod.Namespace == n.site.DaemonSet.Namespace
}

func identity(pod *corev1.Pod) podID {
	return podID{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID}
}
