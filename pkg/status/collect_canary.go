package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// eventsRead bounds the events of one Pod: kubelet and Multus aggregate theirs.
const eventsRead = 500

// named reads the canary that was named.
func (r *reader) named() error {
	c, err := r.readCanary(r.Canary)
	r.first = c
	return err
}

// canaries adds those that are labelled. A default that is not there gives way
// to them.
func (r *reader) canaries() error {
	var refs []evidence.Ref
	for _, meta := range r.metas {
		if ref := (evidence.Ref{Namespace: meta.Namespace, Name: meta.Name}); meta.Canary && ref != r.Canary {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b evidence.Ref) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	labelled := make([]Canary, len(refs))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, ref := range refs {
		group.Go(func() (err error) {
			labelled[i], err = r.readCanary(ref)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if r.Named || len(labelled) == 0 || r.first.Evidence.CanaryPod() != nil {
		labelled = slices.Insert(labelled, 0, r.first)
	} else {
		r.data.DefaultAbsent = true
	}
	r.data.Canaries = labelled
	return nil
}

// readCanary reads a canary, its events and what its failed containers said.
func (r *reader) readCanary(ref evidence.Ref) (Canary, error) {
	c := Canary{Evidence: evidence.Evidence{Canary: ref, Collected: map[evidence.Resource]bool{}}}
	pod, err := r.Clients.Core.Pods(ref.Namespace).Get(r.ctx, ref.Name, metav1.GetOptions{})
	right := cluster.Right{Verb: "get", Resource: "pods", Namespace: ref.Namespace}
	ok, fatal := r.got(want{v1alpha1.SectionCanary, "Pod " + ref.String(), right}, err)
	c.Unreadable = !ok && !apierrors.IsNotFound(err)
	if !ok {
		return c, fatal
	}
	pod.ManagedFields = nil
	c.Evidence.Canary.UID = pod.UID
	c.Evidence.Pods = []corev1.Pod{*pod}
	if err := r.events(&c.Evidence); err != nil {
		return c, err
	}
	c.Evidence.PodLogs, err = canary.FailedLogs(r.ctx, r.Clients, pod)
	r.noLogs(ref, err)
	return c, nil
}

// noLogs tells why what a canary's failed containers said is not known. That a
// container has no log any more is no gap.
func (r *reader) noLogs(ref evidence.Ref, err error) {
	right := cluster.Right{Verb: "get", Resource: "pods", Subresource: "log", Namespace: ref.Namespace}
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsBadRequest(err):
	case apierrors.IsForbidden(err):
		r.gap(v1alpha1.SectionCanary, fmt.Sprintf("what the containers of Pod %s said cannot be read (right missing: %s)", ref, right))
	default:
		r.gap(v1alpha1.SectionCanary, fmt.Sprintf("what the containers of Pod %s said cannot be read: %v", ref, err))
	}
}

// events reads the events of the canary's UID alone.
func (r *reader) events(e *evidence.Evidence) error {
	options := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(e.Canary.UID)).String(), Limit: eventsRead,
	}
	list, err := r.Clients.Core.Events(e.Canary.Namespace).List(r.ctx, options)
	right := cluster.Right{Verb: "list", Resource: "events", Namespace: e.Canary.Namespace}
	ok, err := r.got(want{v1alpha1.SectionCanary, "the events of namespace " + e.Canary.Namespace, right}, err)
	if ok {
		e.Events, e.Collected[evidence.Events] = list.Items, true
	}
	return err
}

// definitions reads the networks that the canaries ask for, or, where there is
// no canary, those beside the place it should have; and the guards' ConfigMaps.
func (r *reader) definitions() error {
	wanted := map[evidence.Ref]bool{}
	for i := range r.data.Canaries {
		if err := r.definitionsOf(&r.data.Canaries[i].Evidence, wanted); err != nil {
			return err
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(wanted), func(a, b evidence.Ref) int { return cmp.Compare(a.String(), b.String()) }) {
		nad, err := r.networks.Get(ref.Namespace, ref.Name)
		r.data.Networks = append(r.data.Networks, NetworkRead{
			Namespace: ref.Namespace, Name: ref.Name, Definition: nad, Absent: apierrors.IsNotFound(err),
		})
	}
	if len(wanted) > 0 {
		return nil
	}
	return r.neighbours()
}

// definitionsOf reads what one canary refers to.
func (r *reader) definitionsOf(e *evidence.Evidence, wanted map[evidence.Ref]bool) error {
	pod := e.CanaryPod()
	if pod == nil {
		return nil
	}
	selections, err := multus.RequestedNetworks(pod)
	e.Collected[evidence.Networks] = err == nil
	for _, s := range selections {
		wanted[evidence.Ref{Namespace: s.Namespace, Name: s.Name}] = true
		nad, err := r.networks.Get(s.Namespace, s.Name)
		right := cluster.Right{Verb: "get", Group: "k8s.cni.cncf.io", Resource: "network-attachment-definitions", Namespace: s.Namespace}
		ok, fatal := r.got(want{v1alpha1.SectionNetwork, "NetworkAttachmentDefinition " + s.Network(), right}, err)
		switch {
		case fatal != nil:
			return fatal
		case ok:
			e.Networks = append(e.Networks, *nad)
		case !apierrors.IsNotFound(err):
			e.Collected[evidence.Networks] = false
		}
	}
	return r.configMaps(e, pod)
}

// configMaps reads the metadata of the guard's ConfigMaps: contents are never
// evidence.
func (r *reader) configMaps(e *evidence.Evidence, pod *corev1.Pod) error {
	client := r.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(pod.Namespace)
	e.Collected[evidence.ConfigMaps] = true
	for _, name := range evidence.ConfigMapsOf(&pod.Spec) {
		configMap, err := client.Get(r.ctx, name, metav1.GetOptions{})
		right := cluster.Right{Verb: "get", Resource: "configmaps", Namespace: pod.Namespace}
		ok, fatal := r.got(want{v1alpha1.SectionFreshness, "ConfigMap " + pod.Namespace + "/" + name, right}, err)
		switch {
		case fatal != nil:
			return fatal
		case ok:
			e.ConfigMaps = append(e.ConfigMaps, *configMap)
		case !apierrors.IsNotFound(err):
			e.Collected[evidence.ConfigMaps] = false
		}
	}
	return nil
}

// neighbours are the networks of the namespace in which the canary should be.
func (r *reader) neighbours() error {
	list, err := r.Clients.Networks.NetworkAttachmentDefinitions(r.Canary.Namespace).List(r.ctx, metav1.ListOptions{})
	right := cluster.Right{Verb: "list", Group: "k8s.cni.cncf.io", Resource: "network-attachment-definitions", Namespace: r.Canary.Namespace}
	ok, err := r.got(want{v1alpha1.SectionNetwork, "the NetworkAttachmentDefinitions of namespace " + r.Canary.Namespace, right}, err)
	if !ok {
		return err
	}
	for i := range list.Items {
		nad := &list.Items[i]
		r.data.Networks = append(r.data.Networks, NetworkRead{Namespace: nad.Namespace, Name: nad.Name, Definition: nad})
	}
	return nil
}
