package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

// parallel bounds the requests of one kind that are under way at once.
const parallel = 10

// Collector looks at one site. It never writes.
type Collector struct {
	Clients *cluster.Clients
	// Canary is the named canary; where the user did not name it and it is not
	// there, labelled ones do.
	Canary evidence.Ref
	Named  bool
	// DaemonSet is the user's setting, empty for the default.
	DaemonSet string
	// Pods finds the Pods of interest; nil means a scan of all Pods.
	Pods func(context.Context) ([]PodMeta, Search, error)
	Now  func() time.Time
}

// looks bounds how often a look is taken anew because a canary was replaced
// during it.
const looks = 3

// Collect takes one look. It returns an error only where the server does not
// answer or does not know the user.
func (c *Collector) Collect(ctx context.Context) (*Data, error) {
	for try := 1; ; try++ {
		data, err := c.look(ctx)
		if err != nil || try == looks || !data.Replaced {
			return data, err
		}
	}
}

func (c *Collector) look(ctx context.Context) (*Data, error) {
	r := &reader{Collector: c, ctx: ctx, networks: c.Clients.NewNetworks(ctx), data: &Data{
		Subject: c.Canary, Named: c.Named,
		Shared: evidence.Evidence{Collected: map[evidence.Resource]bool{}},
		Logs:   map[types.UID]rollout.DaemonLog{}, OtherNetworks: map[types.NamespacedName]multus.NetConf{},
	}}
	for _, stage := range [][]func() error{
		{r.multus, r.named, r.findPods, r.crd},
		{r.canaries},
		{r.definitions, r.nodes},
		{r.logs, r.pods, r.applications},
	} {
		if err := together(stage); err != nil {
			return nil, err
		}
		// The server's time is known once it has answered.
		r.data.At = c.Now()
	}
	r.finish()
	return r.data, nil
}

// together runs the reads of one stage at once. What a stage needs was read by
// the one before it.
func together(reads []func() error) error {
	var group errgroup.Group
	for _, read := range reads {
		group.Go(read)
	}
	return group.Wait()
}

// finish puts everything in an order that does not depend on who was first, and
// gives each canary the evidence that all share.
func (r *reader) finish() {
	d := r.data
	d.Shared.CollectedAt, d.Shared.DaemonSet = d.At, d.DaemonSet
	if d.CRD.Object != nil {
		d.Shared.CRDs = append(d.Shared.CRDs, *d.CRD.Object)
		d.Shared.Collected[evidence.CRDs] = true
	}
	for i := range d.Canaries {
		if pod := d.Canaries[i].Evidence.CanaryPod(); pod != nil {
			// The scan's may be an older or a younger one of that name.
			d.Replaced = d.Replaced || slices.ContainsFunc(d.Pods, func(p corev1.Pod) bool { return sameName(&p, pod) && p.UID != pod.UID })
			d.Pods = append(slices.DeleteFunc(d.Pods, func(p corev1.Pod) bool { return sameName(&p, pod) }), *pod)
		}
		d.Canaries[i].share(&d.Shared)
	}
	slices.SortFunc(d.Pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(d.Argo.Applications, func(a, b argocd.Application) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	slices.SortStableFunc(d.Gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Text, b.Text))
	})
}

func sameName(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// share adds what all canaries rest on.
func (c *Canary) share(s *evidence.Evidence) {
	e := &c.Evidence
	e.CollectedAt, e.DaemonSet = s.CollectedAt, s.DaemonSet
	e.DaemonSets, e.ControllerRevisions, e.Nodes, e.CRDs = s.DaemonSets, s.ControllerRevisions, s.Nodes, s.CRDs
	e.Pods = append(e.Pods, s.Pods...)
	e.PodLogs = append(e.PodLogs, s.PodLogs...)
	maps.Copy(e.Collected, s.Collected)
}
