// Package address tells which Pod claims which address on which wire, so that
// no two Pods are ever taken for the one holder. It is pure.
package address

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Claim is an address a Pod asks for on one L2 segment.
type Claim struct {
	Address netip.Addr
	// Segment is what two networks must share to be the same wire.
	Segment string
}

// Lookup gives the parsed configuration of a NetworkAttachmentDefinition.
type Lookup func(namespace, name string) (multus.NetConf, error)

// Claims are the addresses a Pod asks for, in its networks annotations or in the
// NetworkAttachmentDefinition's own static IPAM, and those that it was given.
func Claims(pod *corev1.Pod, lookup Lookup) ([]Claim, error) {
	selections, err := multus.AllNetworks(pod)
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
			claims = append(claims, Claim{Address: address, Segment: Segment(selection, conf)})
		}
		for _, address := range Held(pod, selection) {
			if claim := (Claim{Address: address, Segment: Segment(selection, conf)}); !slices.Contains(claims, claim) {
				claims = append(claims, claim)
			}
		}
	}
	return claims, nil
}

// Held are the addresses that Multus says a Pod has on a network: an IPAM plugin
// may give one that nobody has asked for by name.
func Held(pod *corev1.Pod, selection multus.Selection) []netip.Addr {
	statuses, err := multus.NetworkStatus(pod)
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, entry := range statuses.Entries {
		// Where Multus names the interface, its number tells nothing of the network.
		if entry.Name != selection.Network() || selection.InterfaceRequest != "" && entry.Interface != selection.Interface {
			continue
		}
		for _, ip := range entry.IPs {
			if address, ok := multus.ParseAddress(ip); ok {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// Segment names the wire behind a network: children of one parent share it,
// whatever their NetworkAttachmentDefinitions are called. A VLAN of a parent is
// named as Linux sites name its link, so that a macvlan on top of it is on the
// same wire; so are the ports of one bridge and what uses it as a parent.
func Segment(selection multus.Selection, conf multus.NetConf) string {
	switch {
	case conf.Type == "bridge":
		return "master " + tagged(cmp.Or(conf.Bridge, defaultBridge), conf.VLAN)
	case conf.Type == "vlan" && conf.Master != "":
		return "master " + tagged(conf.Master, conf.VLANID)
	case conf.Master != "":
		return "master " + conf.Master
	}
	return "network " + selection.Network()
}

// defaultBridge is the bridge plugin's (plugins/main/bridge, defaultBrName).
const defaultBridge = "cni0"

func tagged(link string, vlan int) string {
	if vlan == 0 {
		return link
	}
	return fmt.Sprintf("%s.%d", link, vlan)
}

// Overlaps are the claims both Pods make.
func Overlaps(a, b []Claim) []Claim {
	var both []Claim
	for _, claim := range a {
		if slices.Contains(b, claim) {
			both = append(both, claim)
		}
	}
	return both
}

// SameAddress are the claims of b whose address a claims too, on whatever wire.
func SameAddress(a, b []Claim) []Claim {
	return slices.DeleteFunc(slices.Clone(b), func(claim Claim) bool {
		return !slices.ContainsFunc(a, func(have Claim) bool { return have.Address == claim.Address })
	})
}

// Finished reports whether a Pod's sandbox is down, so that it holds no
// address: kubelet tears it down before the phase says so.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
