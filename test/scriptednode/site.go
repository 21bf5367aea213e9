package scriptednode

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Site describes what is there: names, addresses and paths of one Multus site
// with one canary. Every name can be changed, so that sites can live side by
// side on one API server.
type Site struct {
	// Node is the node the canary and the Multus daemon run on.
	Node string
	// Peers are further nodes of the DaemonSet. Nobody plays them: they only
	// count in the DaemonSet's status.
	Peers []Peer
	// DaemonSet is Multus.
	DaemonSet types.NamespacedName
	// NodeSelector is the DaemonSet's. Empty means: the nodes of this site by
	// name.
	NodeSelector map[string]string
	// UpdateStrategy is the DaemonSet's; empty means RollingUpdate.
	UpdateStrategy appsv1.DaemonSetUpdateStrategyType
	// Privileged makes the daemon privileged, as the Multus manifest does. An API
	// server without --allow-privileged refuses such a DaemonSet.
	Privileged bool
	// Labels go to the DaemonSet's selector and Pods, besides the ones of the
	// Multus manifest.
	Labels map[string]string

	// Namespace holds the canary, its network and its guard script.
	Namespace string
	// Canary is the canary Pod's name.
	Canary string
	// Guard is the name of the guard's init container and of its ConfigMap.
	Guard string
	// Main is the name of the canary's main container.
	Main string
	// Network is the name of the NetworkAttachmentDefinition.
	Network string
	// Master is the parent interface of the macvlan.
	Master string
	// Address is what the canary asks for, with prefix.
	Address netip.Prefix

	// PrimaryNetwork is the name of the node's own CNI network.
	PrimaryNetwork string
	// PrimaryConf is the file name of the primary CNI conf.
	PrimaryConf string
	// ConfDir and BinDir are the node's CNI directories.
	ConfDir, BinDir string
	// Images are the container images.
	Images Images
}

// Images are the container images of a site.
type Images struct{ Canary, Multus, Plugins string }

// Peer is a node of the DaemonSet that nobody plays. A Peer that is not ready
// has a daemon Pod that is not ready either.
type Peer struct {
	Name  string
	Ready bool
}

// Reference is the reference site: k3s paths, flannel, one VLAN.
func Reference() Site {
	return Site{
		Node:           "node-a",
		DaemonSet:      types.NamespacedName{Namespace: "kube-system", Name: "kube-multus-ds"},
		Namespace:      "downloads",
		Canary:         "vlan50-canary",
		Guard:          "egress-guard",
		Main:           "canary",
		Network:        "vlan50",
		Master:         "enp1s0.50",
		Address:        netip.MustParsePrefix("192.0.2.100/24"),
		PrimaryNetwork: "cbr0",
		PrimaryConf:    "10-flannel.conflist",
		ConfDir:        "/var/lib/rancher/k3s/agent/etc/cni/net.d",
		BinDir:         "/var/lib/rancher/k3s/data/cni",
		Images: Images{
			Canary:  "busybox:1.36",
			Multus:  "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.3.0-thick",
			Plugins: "ghcr.io/containernetworking/plugins:v1.9.1",
		},
	}
}

// Named is the reference site with a node, a namespace and a DaemonSet of its
// own. The canary, its network and its address keep their names.
func Named(suffix string) Site {
	s := Reference()
	s.Node += "-" + suffix
	s.Namespace += "-" + suffix
	s.DaemonSet.Name += "-" + suffix
	s.Labels = map[string]string{"site": suffix}
	return s
}

// CanaryName is the canary's full name.
func (s Site) CanaryName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Canary}
}

// networkName is the full name of the NetworkAttachmentDefinition.
func (s Site) networkName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Network}
}

// isCanary tells whether a Pod carries the canary's name.
func (s Site) isCanary(pod *corev1.Pod) bool {
	return pod.Namespace == s.Namespace && pod.Name == s.Canary
}

// nodes are the names of all nodes of the site, the played one first.
func (s Site) nodes() []string {
	names := []string{s.Node}
	for _, peer := range s.Peers {
		names = append(names, peer.Name)
	}
	return names
}

// answers tells whether a node's kubelet is there: a Peer's may not be.
func (s Site) answers(node string) bool {
	for _, peer := range s.Peers {
		if peer.Name == node {
			return peer.Ready
		}
	}
	return true
}

// siteLabel marks the nodes of one site, for DaemonSets with several nodes.
const siteLabel = "vlan50.test/site"

// nodeLabels are the labels of one of the site's nodes.
func (s Site) nodeLabels(name string) map[string]string {
	return map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		siteLabel:              s.Node,
	}
}

// daemonNodeSelector keeps the DaemonSet on the nodes of its own site.
func (s Site) daemonNodeSelector() map[string]string {
	switch {
	case len(s.NodeSelector) > 0:
		return maps.Clone(s.NodeSelector)
	case len(s.Peers) > 0:
		return map[string]string{siteLabel: s.Node}
	default:
		return map[string]string{corev1.LabelHostname: s.Node}
	}
}

// selector is the DaemonSet's label selector: the one of the Multus manifest
// and the site's own labels.
func (s Site) selector() map[string]string {
	labels := map[string]string{"name": "multus"}
	maps.Copy(labels, s.Labels)
	return labels
}

// podLabels are the labels of the DaemonSet's template.
func (s Site) podLabels() map[string]string {
	labels := map[string]string{"app": "multus", "tier": "node"}
	maps.Copy(labels, s.selector())
	return labels
}

// networkConfig is the CNI conf inside the NetworkAttachmentDefinition.
func (s Site) networkConfig() string {
	return fmt.Sprintf(`{"cniVersion": "0.3.1", "name": %q, "type": "macvlan", "master": %q, "mode": "bridge", `+
		`"capabilities": {"ips": true}, "ipam": {"type": "static"}}`, s.Network, s.Master)
}

// multusConf is the Multus conf as the daemon prints and writes it, and as the
// shim repeats it in an error.
func (s Site) multusConf() string {
	return fmt.Sprintf(`{"binDir":%q,"capabilities":{"portMappings":true},"cniVersion":"0.3.1","logLevel":"verbose","logToStderr":true,`+
		`"name":"multus-cni-network","clusterNetwork":"/host/etc/cni/net.d/%s","type":"multus-shim"}`, s.BinDir, s.PrimaryConf)
}

// macFor gives an address a stable MAC.
func macFor(address netip.Addr) string {
	raw := address.As16()
	parts := []string{"02", "00"}
	for _, b := range raw[12:] {
		parts = append(parts, fmt.Sprintf("%02x", b))
	}
	return strings.Join(parts, ":")
}
