package canary

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/address"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// scanPage is how many Pods one page of the scan over all namespaces has.
const scanPage = 500

// otherHolders scans all namespaces for Pods that ask for or hold an address of
// the canary on the same segment. Only metadata is listed; the few Pods with a
// networks annotation are read whole.
func (r *Retest) otherHolders(ctx context.Context) ([]string, error) {
	networks := r.Clients.NewNetworks(ctx)
	mine, err := address.Claims(r.manifest, networks.Conf)
	if err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		if dark := forbiddenNetwork(networks, r.manifest); dark != "" {
			return nil, refusef("Pod %s is not created, which address it asks for cannot be told: this user may not get NetworkAttachmentDefinition %s; ask for config/rbac/retest.yaml, or use another user (%s)", r.Canary, dark, r.state)
		}
		return nil, nil
	}
	var holders []string
	err = r.Clients.EachPodMeta(ctx, scanPage, func(meta *metav1.PartialObjectMetadata) error {
		if !multus.AsksForNetworks(meta.Annotations) || r.isCanary(meta.Namespace, meta.Name) {
			return nil
		}
		holder, err := r.holder(ctx, meta, mine, networks)
		if holder != "" {
			holders = append(holders, holder)
		}
		return err
	})
	return holders, err
}

// holder describes the Pod if it claims one of the canary's addresses.
func (r *Retest) holder(ctx context.Context, meta *metav1.PartialObjectMetadata, mine []address.Claim, networks *cluster.Networks) (string, error) {
	asks := &corev1.Pod{ObjectMeta: meta.ObjectMeta}
	if _, err := multus.AllNetworks(asks); err != nil {
		// Multus refuses an annotation that does not parse: no address there.
		return "", nil //nolint:nilerr // a foreign Pod's broken annotation is no trouble of ours
	}
	claims, err := address.Claims(asks, networks.Conf)
	if err != nil {
		return "", fmt.Errorf("reading the networks of Pod %s/%s: %w", meta.Namespace, meta.Name, err)
	}
	both, doubt := address.Overlaps(mine, claims), ""
	if len(both) == 0 {
		if both = address.SameAddress(mine, claims); len(both) == 0 {
			return "", nil
		}
		// A wire that cannot be looked at may be the same one.
		if dark := cmp.Or(forbiddenNetwork(networks, asks), forbiddenNetwork(networks, r.manifest)); dark != "" {
			doubt = "this user may not get NetworkAttachmentDefinition " + dark
		} else if lost := lostNetwork(networks, asks, both); lost != "" {
			doubt = fmt.Sprintf("NetworkAttachmentDefinition %s, by which it got the address, is gone or broken", lost)
		} else {
			return "", nil
		}
		doubt = "; whether that is the same wire cannot be told, as " + doubt
	}
	// A list of one: whoever may list Pods everywhere needs no other right.
	pods, err := r.Clients.Core.Pods(meta.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + meta.Name})
	switch {
	case err != nil:
		return "", fmt.Errorf("reading Pod %s/%s, which asks for the canary's address: %w", meta.Namespace, meta.Name, err)
	case len(pods.Items) == 0 || address.Finished(&pods.Items[0]):
		return "", nil
	}
	pod := &pods.Items[0]
	return fmt.Sprintf("Pod %s/%s (%s, on node %s) claims %s on %s%s",
		pod.Namespace, pod.Name, pod.Status.Phase, orNone(pod.Spec.NodeName), both[0].Address, both[0].Segment, doubt), nil
}

// forbiddenNetwork names a network of the Pod that this user may not read; empty
// where there is none.
func forbiddenNetwork(networks *cluster.Networks, pod *corev1.Pod) string {
	selections, err := multus.AllNetworks(pod)
	if err != nil {
		return ""
	}
	for _, selection := range selections {
		if _, err := networks.Get(selection.Namespace, selection.Name); apierrors.IsForbidden(err) {
			return selection.Network()
		}
	}
	return ""
}

// lostNetwork names a network by which the Pod holds one of the addresses, and which
// tells no wire any more: a Pod keeps its interface when its definition goes. Empty
// where there is none.
func lostNetwork(networks *cluster.Networks, pod *corev1.Pod, claims []address.Claim) string {
	selections, err := multus.AllNetworks(pod)
	if err != nil {
		return ""
	}
	for _, selection := range selections {
		conf, err := networks.Conf(selection.Namespace, selection.Name)
		if err != nil || conf.Type != "" {
			continue
		}
		for _, held := range address.Held(pod, selection) {
			if slices.ContainsFunc(claims, func(c address.Claim) bool { return c.Address == held }) {
				return selection.Network()
			}
		}
	}
	return ""
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
