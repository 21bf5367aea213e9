package canary

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/address"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// scanPage is how many Pods one page of the scan over all namespaces has.
const scanPage = 500

// otherHolders scans all namespaces for Pods that ask for or hold an address of
// the canary on the same segment. Only metadata is listed; the few Pods with a
// networks annotation are read whole.
func (r *Retest) otherHolders(ctx context.Context) ([]string, error) {
	lookup := r.Clients.NewNetworks(ctx).Conf
	mine, err := address.Claims(r.manifest, lookup)
	if err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		return nil, nil
	}
	var holders []string
	err = r.Clients.EachPodMeta(ctx, scanPage, func(meta *metav1.PartialObjectMetadata) error {
		if !multus.AsksForNetworks(meta.Annotations) || r.isCanary(meta.Namespace, meta.Name) {
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
func (r *Retest) holder(ctx context.Context, meta *metav1.PartialObjectMetadata, mine []address.Claim, lookup address.Lookup) (string, error) {
	asks := &corev1.Pod{ObjectMeta: meta.ObjectMeta}
	if _, err := multus.AllNetworks(asks); err != nil {
		// Multus refuses an annotation that does not parse: no address there.
		return "", nil //nolint:nilerr // a foreign Pod's broken annotation is no trouble of ours
	}
	claims, err := address.Claims(asks, lookup)
	if err != nil {
		return "", fmt.Errorf("reading the networks of Pod %s/%s: %w", meta.Namespace, meta.Name, err)
	}
	both := address.Overlaps(mine, claims)
	if len(both) == 0 {
		return "", nil
	}
	pod, err := r.Clients.Core.Pods(meta.Namespace).Get(ctx, meta.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading Pod %s/%s, which asks for the canary's address: %w", meta.Namespace, meta.Name, err)
	case address.Finished(pod):
		return "", nil
	}
	return fmt.Sprintf("Pod %s/%s (%s, on node %s) claims %s on %s",
		pod.Namespace, pod.Name, pod.Status.Phase, orNone(pod.Spec.NodeName), both[0].Address, both[0].Segment), nil
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
