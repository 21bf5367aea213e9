package scriptednode

import (
	"context"
	"fmt"
	"net/netip"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadutils "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (s Sandbox) play(ctx context.Context, a *attempt) error {
	for try := 1; ; try++ {
		if try == 1 || !s.Same {
			a.nextSandbox()
		}
		fault := s.Fault
		if s.Times > 0 && try > s.Times {
			fault = nil
		}
		made, err := a.makeSandbox(ctx, fault)
		if err != nil || made {
			return err
		}
		if err := a.pause(ctx, a.node.pace.Retry); err != nil {
			return err
		}
	}
}

func (PrimarySandbox) play(ctx context.Context, a *attempt) error {
	if err := a.pause(ctx, a.node.pace.Sandbox); err != nil {
		return err
	}
	a.nextSandbox()
	return a.plainSandbox(ctx)
}

// nextSandbox chooses the id of the next try.
func (a *attempt) nextSandbox() {
	a.tries++
	a.sandbox = newSandboxID(a.id.uid, a.tries)
}

// makeSandbox is one try of the kubelet. What is on the node decides before
// the script's fault does.
func (a *attempt) makeSandbox(ctx context.Context, fault *Fault) (made bool, err error) {
	if err := a.pause(ctx, a.node.pace.Sandbox); err != nil {
		return false, err
	}
	if a.pod.Spec.HostNetwork {
		return true, a.ready(ctx, hostIP)
	}
	conf, _, _ := a.node.cni.look()
	if !conf {
		return true, a.plainSandbox(ctx)
	}
	if fault != nil && fault.Layer <= LayerShim {
		a.failSandbox(nil, *fault, nil)
		return false, nil
	}
	daemon, err := a.node.cni.waitDaemon(ctx, a.node.pace.Shim)
	if err != nil {
		return false, err
	}
	if daemon == nil {
		a.failSandbox(nil, Fault{Layer: LayerShim, Text: daemonSilent}, nil)
		return false, nil
	}
	return a.multusAdd(ctx, daemon, fault)
}

// plainSandbox is a sandbox by the primary network alone: no event, no
// annotation, a Pod address.
func (a *attempt) plainSandbox(ctx context.Context) error {
	if len(a.requested) > 0 {
		a.journal(SandboxPlain, "")
	}
	address, _ := a.node.nextAddress()
	return a.ready(ctx, address.Addr().String())
}

// multusAdd is an ADD that has reached the daemon: delegates are loaded before
// any is called, and the primary network is added first.
func (a *attempt) multusAdd(ctx context.Context, daemon *daemonProcess, fault *Fault) (made bool, err error) {
	if fault == nil {
		if fault, err = a.loadDelegates(ctx); err != nil {
			return false, err
		}
	}
	address, gateway := a.node.nextAddress()
	primary := attachment{network: a.node.site.PrimaryNetwork, iface: "eth0", addresses: []netip.Prefix{address}, gateway: gateway, primary: true}
	if fault != nil {
		var done []attachment
		if fault.Layer == LayerSecondary {
			done = append(done, primary)
		}
		a.failSandbox(daemon, *fault, done)
		return false, nil
	}
	attachments := []attachment{primary}
	for i, network := range a.requested {
		attachments = append(attachments, attach(network, i+1))
	}
	return a.attached(ctx, daemon, attachments)
}

func attach(network *nadv1.NetworkSelectionElement, number int) attachment {
	a := attachment{network: network.Namespace + "/" + network.Name, iface: network.InterfaceRequest}
	if a.iface == "" {
		a.iface = fmt.Sprintf("net%d", number)
	}
	a.addresses = requestedAddresses([]*nadv1.NetworkSelectionElement{network})
	return a
}

// loadDelegates finds the faults that no script has to ask for: an annotation
// that does not parse, a network that the API does not have, and an address
// that the static IPAM refuses.
func (a *attempt) loadDelegates(ctx context.Context) (*Fault, error) {
	if a.requestErr != nil {
		return &Fault{Layer: LayerMultus, Text: "error loading k8s delegates k8s args: TryLoadPodDelegates: " +
			"error in getting k8s network for pod: " + a.requestErr.Error()}, nil
	}
	for _, network := range a.requested {
		name := types.NamespacedName{Namespace: network.Namespace, Name: network.Name}
		_, err := a.node.networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if missing(err) {
			fault := missingNetwork(name)
			return &fault, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Multus asks its informer, which still has the network while the API
		// server is away.
	}
	for _, network := range a.requested {
		for _, text := range network.IPRequest {
			if _, err := netip.ParsePrefix(text); err != nil {
				return &Fault{Layer: LayerSecondary, Text: fmt.Sprintf("the 'ip' field is expected to be in CIDR notation, got: '%s'", text)}, nil
			}
		}
	}
	return nil, nil
}

// attached is an ADD whose delegates all came: an event for each network, then
// the annotation, then the kubelet's status. Where the annotation cannot be
// written, the ADD fails after all.
func (a *attempt) attached(ctx context.Context, daemon *daemonProcess, attachments []attachment) (made bool, err error) {
	for _, attachment := range attachments {
		daemon.event(a.pod, corev1.EventTypeNormal, "AddedInterface", attachment.message())
	}
	if err := a.setNetworkStatus(ctx, networkStatus(attachments)); ctx.Err() != nil {
		return false, ctx.Err()
	} else if err != nil {
		a.failSandbox(daemon, Fault{Layer: LayerMultus, Text: "error setting the networks status: " + err.Error()}, nil)
		return false, nil
	}
	a.multus = true
	a.journal(SandboxMade, "")
	return true, a.ready(ctx, attachments[0].addresses[0].Addr().String())
}

// setNetworkStatus writes the annotation as Multus does, by the same library:
// once, whatever the API server says. Its informer knows the Pod's UID, and a
// Pod that it no longer knows is no failure.
func (a *attempt) setNetworkStatus(ctx context.Context, statuses []nadv1.NetworkStatus) error {
	pod, err := a.node.client.CoreV1().Pods(a.id.Namespace).Get(ctx, a.id.Name, metav1.GetOptions{})
	switch {
	case missing(err):
		return nil
	case err == nil && pod.UID != a.id.uid:
		return fmt.Errorf("SetNetworkStatus: expected pod %s/%s UID %q but got %q from Kube API", a.id.Namespace, a.id.Name, a.id.uid, pod.UID)
	}
	if err := nadutils.SetNetworkStatus(a.node.client, a.pod.DeepCopy(), statuses); err != nil {
		return fmt.Errorf("SetPodNetworkStatusAnnotation: failed to update the pod %s in out of cluster comm: %w", a.id.Name, err)
	}
	return nil
}

// failSandbox emits what a failed ADD leaves: the events of the networks that
// were added, Multus' own warning, and the kubelet's.
func (a *attempt) failSandbox(daemon *daemonProcess, fault Fault, done []attachment) {
	for _, attachment := range done {
		daemon.event(a.pod, corev1.EventTypeNormal, "AddedInterface", attachment.message())
	}
	if fault.Event != "" && daemon != nil {
		daemon.event(a.pod, corev1.EventTypeWarning, "NoNetworkFound", fault.Event)
	}
	networks := cniNetwork{primary: a.node.site.PrimaryNetwork}
	if len(a.requested) > 0 {
		networks.secondary = a.requested[0].Name
	}
	message := addError(fault, a.id, a.sandbox, networks, a.node.site.multusConf())
	a.event("", corev1.EventTypeWarning, "FailedCreatePodSandBox", message)
	a.journal(SandboxFailed, fault.Text)
}

// ready reports a sandbox with a network.
func (a *attempt) ready(ctx context.Context, address string) error {
	a.state.sandbox, a.state.podIP = true, address
	return a.write(ctx)
}

// nextAddress is a new address of the node's Pod network for each sandbox.
func (n *Node) nextAddress() (address netip.Prefix, gateway netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.address = n.address%250 + 2
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 42, 0, n.address}), 24), netip.AddrFrom4([4]byte{10, 42, 0, 1})
}
