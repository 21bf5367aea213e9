package scriptednode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Layer says where in the chain from kubelet to the last plugin an ADD fails,
// outermost first.
type Layer int

// The layers of a thick Multus on containerd.
const (
	// LayerRuntime is containerd itself: it cannot run the conf's plugin.
	LayerRuntime Layer = iota
	// LayerShim is multus-shim: it got no answer from the daemon.
	LayerShim
	// LayerMultus is the daemon itself, before any delegate was called or, where
	// it cannot write the network-status, after all were.
	LayerMultus
	// LayerPrimary is the delegate of the node's own network.
	LayerPrimary
	// LayerSecondary is the delegate of an attached network; the primary
	// network was added before it.
	LayerSecondary
)

// Fault is what goes wrong in a CNI ADD.
type Fault struct {
	Layer Layer
	// Text is the innermost text.
	Text string
	// Event is the text of the Warning that Multus emits itself, if it does.
	Event string
}

// missingPlugin is libcni's text when a plugin binary is not found.
func missingPlugin(plugin, dir string) string {
	return fmt.Sprintf("failed to find plugin %q in path [%s]", plugin, dir)
}

// missingNetwork is the fault of a NetworkAttachmentDefinition that is not
// there, in the words of the informer: the thick daemon asks no API.
func missingNetwork(network types.NamespacedName) Fault {
	text := fmt.Sprintf("cannot find a network-attachment-definition (%s) in namespace (%s): "+
		`networkattachmentdefinition.k8s.cni.cncf.io %q not found`, network.Name, network.Namespace, network.Name)
	return Fault{
		Layer: LayerMultus,
		Text: "error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: " +
			"GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: " + text,
		Event: text,
	}
}

// daemonSilent is the shim's text after its sixty seconds without a daemon
// (since Multus v4.1.0; older shims failed at once).
const daemonSilent = "timed out waiting for the condition"

// sandboxID identifies one try to make a sandbox; containerd's ids differ with
// every try, which is what makes every message distinct.
type sandboxID string

func newSandboxID(uid types.UID, try int) sandboxID {
	return sandboxID(hexOf(string(uid), fmt.Sprint(try)))
}

// netns is the network namespace path that goes with the sandbox.
func (id sandboxID) netns() string {
	return fmt.Sprintf("/var/run/netns/cni-%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:32])
}

// hexOf gives 64 hexadecimal digits that depend on the parts alone, so that a
// run can be repeated.
func hexOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// podID is how the layers name a Pod.
type podID struct {
	types.NamespacedName
	uid types.UID
}

// cniNetwork is a network as the layers name it: by its conf, not by its
// NetworkAttachmentDefinition.
type cniNetwork struct{ primary, secondary string }

// addError is the text that kubelet shows for a failed sandbox, all layers
// around the fault.
func addError(fault Fault, pod podID, sandbox sandboxID, networks cniNetwork, conf string) string {
	prefix := fmt.Sprintf("Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: "+
		`plugin type="multus-shim" name="multus-cni-network" failed (add): `, string(sandbox))
	switch fault.Layer {
	case LayerRuntime:
		return prefix + fault.Text
	case LayerShim:
		return prefix + "CmdAdd (shim): " + fault.Text
	case LayerMultus, LayerPrimary, LayerSecondary:
	}
	args := fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
		pod.Namespace, pod.Name, sandbox, pod.uid)
	// The line break before the closing quote is http.Error's.
	return prefix + fmt.Sprintf("CmdAdd (shim): CNI request failed with status 400: 'ContainerID:%q Netns:%q IfName:\"eth0\" Args:%q Path:\"\" "+
		"ERRORED: error configuring pod [%s/%s] networking: %s\n': StdinData: %s",
		string(sandbox), sandbox.netns(), args, pod.Namespace, pod.Name, delegateError(fault, pod, networks), conf)
}

// delegateError is the innermost layer: Multus' own errors and those of its
// delegates have different heads.
func delegateError(fault Fault, pod podID, networks cniNetwork) string {
	who := fmt.Sprintf("%s/%s/%s", pod.Namespace, pod.Name, pod.uid)
	if fault.Layer == LayerMultus {
		return fmt.Sprintf("Multus: [%s]: %s", who, fault.Text)
	}
	network, text := networks.secondary, fault.Text
	if fault.Layer == LayerPrimary {
		// The primary conf is a list, so that libcni puts its head once more;
		// its first plugin on k3s is flannel.
		network, text = networks.primary, `plugin type="flannel" failed (add): `+text
	}
	return fmt.Sprintf("[%s:%s]: error adding container to network %q: %s", who, network, network, text)
}

// delError is the text of a sandbox that cannot be torn down.
func delError(uid types.UID, sandbox sandboxID, text string) string {
	inner := fmt.Sprintf("rpc error: code = Unknown desc = failed to destroy network for sandbox %q: "+
		`plugin type="multus-shim" name="multus-cni-network" failed (delete): %s`, string(sandbox), text)
	return fmt.Sprintf(`error killing pod: failed to "KillPodSandbox" for %q with KillPodSandboxError: %q`, string(uid), inner)
}

// attachment is one network of a Pod, as attached.
type attachment struct {
	// network is the delegate's name: the primary conf's, or namespace/name.
	network   string
	iface     string
	addresses []netip.Prefix
	gateway   netip.Addr
	primary   bool
}

// message is the text of the AddedInterface event.
func (a attachment) message() string {
	return fmt.Sprintf("Add %s %v from %s", a.iface, a.addresses, a.network)
}

// networkStatus is what Multus reports of the networks: addresses without
// prefix, "default" only where it is true.
func networkStatus(attachments []attachment) []nadv1.NetworkStatus {
	statuses := make([]nadv1.NetworkStatus, len(attachments))
	for i, a := range attachments {
		status := nadv1.NetworkStatus{Name: a.network, Interface: a.iface, Default: a.primary}
		for _, address := range a.addresses {
			status.IPs = append(status.IPs, address.Addr().String())
		}
		if len(a.addresses) > 0 {
			status.Mac = macFor(a.addresses[0].Addr())
		}
		if a.gateway.IsValid() {
			status.Gateway = []string{a.gateway.String()}
		}
		statuses[i] = status
	}
	return statuses
}
