package status

import (
	"context"
	"fmt"
	"maps"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/address"
	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// scanPage is how many Pods one page of the scan over all namespaces has.
const scanPage = 500

// PodMeta is what the scan keeps of a Pod that asks for a secondary network or
// is a canary.
type PodMeta struct {
	Namespace, Name string
	// Networks are its annotations that ask for networks, by their keys.
	Networks map[string]string
	Canary   bool
}

// Interesting is the part of a Pod's metadata that the scan keeps, if any.
func Interesting(meta *metav1.PartialObjectMetadata) (PodMeta, bool) {
	m := PodMeta{
		Namespace: meta.Namespace, Name: meta.Name, Canary: meta.Labels[CanaryLabel] == CanaryLabelValue,
	}
	if multus.AsksForNetworks(meta.Annotations) {
		m.Networks = networksOf(meta.Annotations)
	}
	return m, m.Networks != nil || m.Canary
}

// networksOf are those of the annotations that ask for networks.
func networksOf(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for _, key := range []string{nadv1.NetworkAttachmentAnnot, multus.DefaultNetworkAnnot} {
		if text := annotations[key]; text != "" {
			kept[key] = text
		}
	}
	return kept
}

// pod is the Pod as far as its claims need it.
func (m PodMeta) pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Annotations: maps.Clone(m.Networks)}}
}

// findPods scans the metadata of all Pods, or of the canary's namespace where
// more may not be read.
func (r *reader) findPods() error {
	find := r.Pods
	if find == nil {
		find = r.scan
	}
	metas, search, err := find(r.ctx)
	right := cluster.Right{Verb: "list", Resource: "pods"}
	ok, err := r.got(want{v1alpha1.SectionAddresses, "the Pods of other namespaces", right}, err)
	if !ok && err == nil {
		metas, search, err = r.scanIn(r.ctx, r.Canary.Namespace)
		right.Namespace = r.Canary.Namespace
		ok, err = r.got(want{v1alpha1.SectionAddresses, "the Pods of namespace " + r.Canary.Namespace, right}, err)
		search.Failed = !ok
	}
	r.metas, r.data.Search = metas, search
	return err
}

func (r *reader) scan(ctx context.Context) ([]PodMeta, Search, error) {
	return r.scanIn(ctx, metav1.NamespaceAll)
}

func (r *reader) scanIn(ctx context.Context, namespace string) ([]PodMeta, Search, error) {
	return Scan(ctx, r.Clients, namespace)
}

// Scan looks through the metadata of a namespace's Pods, or of all, in pages.
func Scan(ctx context.Context, clients *cluster.Clients, namespace string) ([]PodMeta, Search, error) {
	search := Search{Namespace: namespace}
	var metas []PodMeta
	err := clients.EachPodMetaIn(ctx, namespace, scanPage, func(meta *metav1.PartialObjectMetadata) error {
		search.Pods++
		if m, ok := Interesting(meta); ok {
			metas = append(metas, m)
		}
		return nil
	})
	return metas, search, err
}

// pods reads, whole, the Pods that are on a wire of the networks in question.
func (r *reader) pods() error {
	wires := r.wires()
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, meta := range r.metas {
		if meta.Networks == nil || !r.touches(meta, wires) {
			continue
		}
		group.Go(func() error { return r.pod(meta) })
	}
	return group.Wait()
}

// wires are the segments of the networks in question.
func (r *reader) wires() map[string]bool {
	wires := map[string]bool{}
	for _, n := range r.data.Networks {
		selection := multus.Selection{NetworkSelectionElement: nadv1.NetworkSelectionElement{Namespace: n.Namespace, Name: n.Name}}
		conf, err := r.networks.Conf(n.Namespace, n.Name)
		if err == nil {
			wires[address.Segment(selection, conf)] = true
		}
	}
	return wires
}

// touches reports whether a Pod asks for a network on one of the wires.
func (r *reader) touches(meta PodMeta, wires map[string]bool) bool {
	selections, err := multus.AllNetworks(meta.pod())
	if err != nil {
		return false // Multus refuses such a Pod: it gets no address
	}
	touches := false
	for _, s := range selections {
		switch _, err := r.networks.Get(s.Namespace, s.Name); {
		case err == nil, apierrors.IsNotFound(err):
		case s.Namespace == r.Canary.Namespace && apierrors.IsForbidden(err): // told with the networks
			r.data.Search.Blind = true
		case !apierrors.IsForbidden(err):
			r.data.Search.Blind = true
			r.gap(v1alpha1.SectionAddresses, fmt.Sprintf("the NetworkAttachmentDefinition %s/%s, which Pod %s/%s asks for, cannot be read: %v", s.Namespace, s.Name, meta.Namespace, meta.Name, err))
		default:
			r.data.Search.Blind = true
			r.gap(v1alpha1.SectionAddresses, fmt.Sprintf("the NetworkAttachmentDefinitions of other namespaces cannot be read, so that a Pod there may be on the same wire (right missing: %s)",
				cluster.Right{Verb: "get", Group: "k8s.cni.cncf.io", Resource: "network-attachment-definitions"}))
		}
		// Each is kept: the claims on all of them are judged.
		conf, err := r.networks.Conf(s.Namespace, s.Name)
		r.data.OtherNetworks[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = conf
		touches = touches || err == nil && wires[address.Segment(s, conf)]
	}
	return touches
}

// pod reads one Pod. Where only its metadata may be read, that is taken: its
// claim counts, its phase is unknown.
func (r *reader) pod(meta PodMeta) error {
	pod, err := r.Clients.Core.Pods(meta.Namespace).Get(r.ctx, meta.Name, metav1.GetOptions{})
	right := cluster.Right{Verb: "get", Resource: "pods", Namespace: meta.Namespace}
	ok, fatal := r.got(want{v1alpha1.SectionAddresses, "Pods of namespace " + meta.Namespace, right}, err)
	if fatal != nil || apierrors.IsNotFound(err) {
		return fatal
	}
	if !ok {
		pod = meta.pod()
	}
	pod.ManagedFields = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data.Pods = append(r.data.Pods, *pod)
	return nil
}
