package canary

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

// live is what an attempt watches. Each change wakes the run, which then
// decides from the whole of it.
type live struct {
	ctx     context.Context //nolint:containedctx // the lifetime of the watches, which begin at different steps
	wg      sync.WaitGroup
	changed chan struct{}

	canary     *cluster.Mirror[corev1.Pod]
	daemonSets *cluster.Mirror[appsv1.DaemonSet]
	daemons    *cluster.Mirror[corev1.Pod]
	revisions  *cluster.Mirror[appsv1.ControllerRevision]
	node       *cluster.Mirror[corev1.Node]
	// nodeName is where the canary will run; empty where only the scheduler
	// will tell.
	nodeName string
	placed   bool

	// config is what the canary refers to, read once an attempt.
	config *evidence.Evidence

	events map[types.UID]*cluster.Mirror[corev1.Event]
	logs   map[types.UID]*daemonLog
}

func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// follow begins to watch what every step needs.
func (r *Retest) follow(ctx context.Context) *live {
	l := &live{
		ctx: ctx, changed: make(chan struct{}, 1),
		events: map[types.UID]*cluster.Mirror[corev1.Event]{},
		logs:   map[types.UID]*daemonLog{},
	}
	l.canary = cluster.Follow[corev1.Pod](ctx, &l.wg, r.Clients.Core.Pods(r.Canary.Namespace), named(r.Canary.Name), l.wake)
	l.daemonSets = cluster.Follow[appsv1.DaemonSet](ctx, &l.wg, r.Clients.Apps.DaemonSets(r.DaemonSet.Namespace), named(r.DaemonSet.Name), l.wake)
	return l
}

// followDaemons begins to watch the DaemonSet's Pods and revisions, as soon as
// its selector is known.
func (r *Retest) followDaemons(ds *appsv1.DaemonSet) {
	l := r.live
	if l.daemons != nil {
		return
	}
	options := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)}
	l.daemons = cluster.Follow[corev1.Pod](l.ctx, &l.wg, r.Clients.Core.Pods(ds.Namespace), options, l.wake)
	l.revisions = cluster.Follow[appsv1.ControllerRevision](l.ctx, &l.wg, r.Clients.Apps.ControllerRevisions(ds.Namespace), options, l.wake)
}

// followNode begins to watch the canary's node, where it is known.
func (r *Retest) followNode(name string) {
	if r.live.nodeName = name; name != "" {
		r.live.node = cluster.Follow[corev1.Node](r.live.ctx, &r.live.wg, r.Clients.Core.Nodes(), named(name), r.live.wake)
	}
}

// followEvents begins to watch the events of one UID: the server selects, and
// the judge looks at the UID again.
func (r *Retest) followEvents(uid types.UID) *cluster.Mirror[corev1.Event] {
	if events, ok := r.live.events[uid]; ok {
		return events
	}
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()}
	events := cluster.Follow[corev1.Event](r.live.ctx, &r.live.wg, r.Clients.Core.Events(r.Canary.Namespace), options, r.live.wake)
	r.live.events[uid] = events
	return events
}

// wake tells the run to look again; several changes wake it once.
func (l *live) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// wait ends when every watch has.
func (l *live) wait() { l.wg.Wait() }

// observation is what the rollout is judged from.
func (l *live) observation(now time.Time) rollout.Observation {
	o := rollout.Observation{Now: now, DaemonSet: l.daemonSets.One(), NodeName: l.nodeName}
	if l.daemons != nil {
		o.Pods = l.daemons.Items()
		// Without the right to read revisions there are none, and the counters
		// of the DaemonSet must do.
		o.Revisions = l.revisions.Items()
	}
	if l.node != nil {
		o.Node = l.node.One()
		o.NodeMissing = o.Node == nil && l.node.Synced()
	}
	return o
}

// known reports whether what the rollout is judged from has been read once.
func (l *live) known() bool {
	if !l.daemonSets.Synced() {
		return false
	}
	if l.daemonSets.One() == nil {
		return true
	}
	return l.daemons != nil && l.daemons.Synced() &&
		settled(l.revisions) && (l.node == nil || settled(l.node))
}

// settled reports whether a Mirror has an answer, be it that reading is
// forbidden.
func settled[T any](m *cluster.Mirror[T]) bool {
	return m.Synced() || cluster.Unreadable(m.Err())
}
