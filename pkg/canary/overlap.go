package canary

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Claim is an address a Pod asks for, or holds, on one L2 segment.
type Claim struct {
	Address netip.Addr
	// Segment is what two networks must share to be the same wire.
	Segment string
}

// networks resolves NetworkAttachmentDefinitions to their parsed configs.
type networks func(namespace, name string) (multus.NetConf, error)

// Claims are the addresses a Pod asks for in its networks annotation, in the
// NAD's own static IPAM, or already holds by its network-status.
func Claims(pod *corev1.Pod, lookup networks) ([]Claim, error) {
	selections, err := multus.RequestedNetworks(pod)
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, selection := range selections {
		conf, err := lookup(selection.Namespace, selection.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		for _, address := range multus.RequestedAddresses(selection, conf) {
			claims = append(claims, Claim{Address: address, Segment: segment(selection, conf)})
		}
	}
	return claims, nil
}

// segment names the wire behind a network: macvlan and ipvlan children of one
// parent share it, whatever their NetworkAttachmentDefinitions are called.
func segment(selection multus.Selection, conf multus.NetConf) string {
	if conf.Master != "" {
		return "master " + conf.Master
	}
	return "network " + selection.Network()
}

// overlaps are the claims both Pods make.
func overlaps(a, b []Claim) []Claim {
	var both []Claim
	for _, claim := range a {
		if slices.Contains(b, claim) {
			both = append(both, claim)
		}
	}
	return both
}

// finished reports whether a Pod's sandbox is down, so that it holds no
// address: kubelet tears it down before the phase says so.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// scanPage is how many Pods one page of the scan over all namespaces has.
const scanPage = 500

// otherHolders scans all namespaces for Pods that ask for an address of the
// canary on the same segment. Only metadata is listed; the few Pods with a
// networks annotation are read whole.
func (r *Retest) otherHolders(ctx context.Context) ([]string, error) {
	lookup := r.networkLookup(ctx)
	mine, err := Claims(r.manifest, lookup)
	if err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		return nil, nil
	}
	var holders []string
	err = r.Clients.EachPodMeta(ctx, scanPage, func(meta *metav1.PartialObjectMetadata) error {
		if meta.Annotations[nadv1.NetworkAttachmentAnnot] == "" || r.isCanary(meta.Namespace, meta.Name) {
			return nil
		}
		holder, err := r.holder(ctx, meta, mine, lookup)
		if holder != "" {
			holders = append(holders, holder)
		}
		return err
	})
	return holders, err
}

// holder describes the Pod if it claims one of the canary's addresses.
func (r *Retest) holder(ctx context.Context, meta *metav1.PartialObjectMetadata, mine []Claim, lookup networks) (string, error) {
	claims, err := Claims(&corev1.Pod{ObjectMeta: meta.ObjectMeta}, lookup)
	if err != nil {
		// Multus refuses an annotation that does not parse: no address there.
		return "", nil //nolint:nilerr // a foreign Pod's broken annotation is no trouble of ours
	}
	both := overlaps(mine, claims)
	if len(both) == 0 {
		return "", nil
	}
	pod, err := r.Clients.Core.Pods(meta.Namespace).Get(ctx, meta.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading Pod %s/%s, which asks for the canary's address: %w", meta.Namespace, meta.Name, err)
	case finished(pod):
		return "", nil
	}
	return fmt.Sprintf("Pod %s/%s (%s, on node %s) asks for %s on %s",
		pod.Namespace, pod.Name, pod.Status.Phase, orNone(pod.Spec.NodeName), both[0].Address, both[0].Segment), nil
}

// networkLookup reads each NetworkAttachmentDefinition once.
func (r *Retest) networkLookup(ctx context.Context) networks {
	type answer struct {
		conf multus.NetConf
		err  error
	}
	known := map[types.NamespacedName]answer{}
	return func(namespace, name string) (multus.NetConf, error) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if found, ok := known[key]; ok {
			return found.conf, found.err
		}
		found := answer{}
		nad, err := r.Clients.Networks.NetworkAttachmentDefinitions(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			// A config that does not parse names no master; the judge will say so.
			found.conf, _ = multus.ParseNetConf(nad.Spec.Config)
		case !cluster.Unreadable(err):
			found.err = err
		}
		known[key] = found
		return found.conf, found.err
	}
}

func (r *Retest) isCanary(namespace, name string) bool {
	return namespace == r.Canary.Namespace && name == r.Canary.Name
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

func joinLines(lines []string) string { return strings.Join(lines, "; ") }
