package scriptednode

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	netutils "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attempt is one Pod UID as the kubelet plays it. It belongs to its worker's
// goroutines, of which one runs at a time.
type attempt struct {
	node   *Node
	worker *worker
	id     podID
	// pod is the Pod as it was when the node took it up; nil until then.
	pod     *corev1.Pod
	adopted bool
	state   *runState
	// requested are the networks that the Pod's annotation asks for;
	// requestErr is why it does not parse.
	requested  []*nadv1.NetworkSelectionElement
	requestErr error
	// multus tells that Multus made the sandbox.
	multus  bool
	sandbox sandboxID
	tries   int
	// isDown tells that nothing of the Pod is left on the node.
	isDown  bool
	process *daemonProcess
}

// pause is a wait on the node's clock: while the kubelet is stopped nothing
// goes on.
func (n *Node) pause(ctx context.Context, d time.Duration) error {
	if err := sleep(ctx, d); err != nil {
		return err
	}
	return n.alive.wait(ctx)
}

func (a *attempt) pause(ctx context.Context, d time.Duration) error { return a.node.pause(ctx, d) }

// admit takes the Pod up: the first status of the kubelet, or for a Pod that
// ran before the node was watched, the state it is in.
func (a *attempt) admit(ctx context.Context, pod *corev1.Pod) error {
	if err := a.node.alive.wait(ctx); err != nil {
		return err
	}
	a.pod = pod
	a.state = newRunState(&pod.Spec, time.Now())
	a.requested, a.requestErr = requestedNetworks(pod)
	a.node.logs.admit(a.id, a.state.waitingReasons())
	if pod.Status.Phase == corev1.PodRunning || terminal(pod.Status.Phase) {
		a.adopted = true
		a.state.adopt(&pod.Status)
		a.isDown = terminal(pod.Status.Phase)
		if !a.isDown {
			a.journal(PodAlive, "adopted")
		}
		return nil
	}
	a.journal(PodAlive, a.worker.script.Name)
	return a.write(ctx)
}

// playScript plays a Pod that is not the daemon.
func (a *attempt) playScript(ctx context.Context, script Script) error {
	if a.adopted || len(script.Steps) == 0 {
		return nil
	}
	if err := a.mountConfigMaps(ctx); err != nil {
		return err
	}
	for i, step := range script.Steps {
		if err := a.pause(ctx, step.After); err != nil {
			return err
		}
		if err := step.Do.play(ctx, a); err != nil {
			return fmt.Errorf("step %d (%T): %w", i+1, step.Do, err)
		}
		if terminal(a.state.phase(&a.pod.Spec)) {
			return nil
		}
	}
	return nil
}

// play leaves the Pod unbound; the scheduler did so before the kubelet came in.
func (Unschedulable) play(context.Context, *attempt) error { return nil }

func (e Event) play(ctx context.Context, a *attempt) error {
	a.event("", e.Type, e.Reason, e.Message)
	return ctx.Err()
}

func (s Status) play(ctx context.Context, a *attempt) error {
	return a.node.updatePod(ctx, a.id, func(pod *corev1.Pod) { s.Change(&pod.Status) })
}

// write reports the state as the Pod's status.
func (a *attempt) write(ctx context.Context) error {
	return a.node.updatePod(ctx, a.id, func(pod *corev1.Pod) {
		pod.Status = a.state.render(pod, hostIP, time.Now())
	})
}

// event emits an event of the kubelet, about a container if one is named.
func (a *attempt) event(container, kind, reason, message string) {
	path := ""
	if container != "" {
		path = containerPath(a.pod, container)
	}
	object := reference(a.pod, path)
	a.node.kubelet.Event(&object, kind, reason, message)
}

// finish reports a Pod whose containers have ended: the sandbox goes first, the
// terminal phase is told after it.
func (a *attempt) finish(ctx context.Context) error {
	a.state.stopping = true
	if err := a.write(ctx); err != nil {
		return err
	}
	if err := a.pause(ctx, a.node.pace.SandboxDown); err != nil {
		return err
	}
	a.down("finished")
	return a.write(ctx)
}

// down takes the sandbox away: from now on nobody holds the Pod's addresses.
func (a *attempt) down(why string) {
	a.isDown = true
	a.state.stopping, a.state.sandbox = false, false
	a.journal(PodDown, why)
}

func (a *attempt) journal(kind Kind, text string) {
	a.node.book.add(Entry{Kind: kind, Pod: a.id.NamespacedName, UID: a.id.uid, Addresses: requestedAddresses(a.requested), Text: text})
}

func requestedNetworks(pod *corev1.Pod) ([]*nadv1.NetworkSelectionElement, error) {
	text, ok := pod.Annotations[nadv1.NetworkAttachmentAnnot]
	if !ok || text == "" {
		return nil, nil
	}
	return netutils.ParseNetworkAnnotation(text, pod.Namespace)
}

// requestedAddresses are the addresses that parse, with prefix or without.
func requestedAddresses(networks []*nadv1.NetworkSelectionElement) []netip.Prefix {
	var out []netip.Prefix
	for _, network := range networks {
		for _, text := range network.IPRequest {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				out = append(out, prefix)
			} else if address, err := netip.ParseAddr(text); err == nil {
				out = append(out, netip.PrefixFrom(address, address.BitLen()))
			}
		}
	}
	return out
}

// mountConfigMaps waits for the ConfigMaps that the Pod mounts, as kubelet does
// before it makes a sandbox.
func (a *attempt) mountConfigMaps(ctx context.Context) error {
	for _, volume := range a.pod.Spec.Volumes {
		source := volume.ConfigMap
		if source == nil || (source.Optional != nil && *source.Optional) {
			continue
		}
		for {
			err := persist(ctx, func(ctx context.Context) error {
				_, err := a.node.client.CoreV1().ConfigMaps(a.id.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
				return err
			})
			if err == nil {
				break
			}
			if !missing(err) {
				return err
			}
			if err := a.failMount(ctx, volume.Name, fmt.Sprintf("configmap %q not found", source.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *attempt) failMount(ctx context.Context, volume, text string) error {
	a.event("", corev1.EventTypeWarning, "FailedMount", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume, text))
	return a.pause(ctx, a.node.pace.Retry)
}

func (m Mount) play(ctx context.Context, a *attempt) error {
	for try := 1; m.Times == 0 || try <= m.Times; try++ {
		if err := a.failMount(ctx, m.Volume, m.Err); err != nil {
			return err
		}
	}
	return nil
}
