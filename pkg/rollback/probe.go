package rollback

import (
	"context"
	"fmt"
	"slices"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// probePatience is above the minute that the shim waits for an absent daemon.
const probePatience = 90 * time.Second

// probed is what a probe has shown.
type probed struct {
	// ready: the Pod got Ready, and Multus had no part in it.
	ready bool
	// multus: it made the Pod's sandbox.
	multus bool
	reason string
	trouble
}

// probe starts an ordinary Pod on a node.
func (r *Rollback) probe(ctx context.Context, n NodeState) (probed, error) {
	ground := r.state.Ground
	ground.Image = n.Image
	var seen probed
	last, err := r.withPod(ctx, ground.probePod(podName(ProbeRole, fresh()), n.Name), StepProbe, func(s scene) (bool, string) {
		seen = judgeProbe(s, n.Image)
		return seen.ready || seen.reason != "", fmt.Sprintf("waiting for an ordinary Pod (%s) to get Ready on node %s: %s", s.pod.Name, n.Name, stateOf(s.pod))
	})
	if err != nil {
		if ctx.Err() != nil {
			return seen, context.Cause(ctx)
		}
		return seen, failf("mend it and run the same command again", "the probe on node %s could not be made: %v", n.Name, r.explainDenial(ctx, err))
	}
	if seen.ready {
		return r.lateWord(ctx, last, seen)
	}
	return seen, nil
}

// judgeProbe decides from one look at the Pod. Multus notes on every Pod that
// it attaches what it did, before the Pod is Ready: a Ready Pod without that
// note never met it. Its event may come later.
func judgeProbe(s scene, image string) probed {
	if by := byMultus(s.pod, s.events); by != "" {
		return probed{multus: true, reason: "Multus still makes the sandboxes (" + by + ")"}
	}
	if evidence.PodReady(s.pod) {
		return probed{ready: true}
	}
	t := podTrouble(s)
	if t.kind == noTrouble && s.since > probePatience && pulling(s.events) {
		t = late(s)
	}
	switch t.kind {
	case imageTrouble:
		return probed{trouble: t, reason: fmt.Sprintf("the probe's image %s cannot be had, which says nothing about the network (%s): name another with --node-image", image, t.text)}
	case shellTrouble:
		return probed{trouble: t, reason: fmt.Sprintf("the probe's image %s cannot run sleep, which says nothing about the network (%s): name another with --node-image", image, t.text)}
	case sandboxTrouble:
		return probed{trouble: t, reason: "an ordinary Pod gets no sandbox: " + t.text}
	case folderTrouble, otherTrouble:
		return probed{trouble: t, reason: "the probe did not run: " + t.text}
	case noTrouble:
	}
	if s.since > probePatience && sandboxMissing(s.pod) {
		t := trouble{sandboxTrouble, "none was made within " + probePatience.String()}
		return probed{trouble: t, reason: "an ordinary Pod gets no sandbox: " + t.text}
	}
	if s.since > probePatience {
		return probed{reason: "an ordinary Pod did not get Ready within " + probePatience.String() + ": " + stateOf(s.pod)}
	}
	return probed{}
}

// sandboxMissing reports whether the kubelet says that the Pod has no sandbox with
// a network. Nobody need have said why: a plugin may hang.
func sandboxMissing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	})
}

// proveImages shows that the probes' image can run on each node before an operator
// takes a conf away there by hand: without it nothing could prove the node afterwards.
// A node on which no sandbox can be made shows nothing of the image, and is not kept
// from being mended.
func (r *Rollback) proveImages(ctx context.Context) error {
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		ground := r.state.Ground
		ground.Image = n.Image
		var why trouble
		_, err := r.withPod(ctx, ground.probePod(podName(ProbeRole, fresh()), n.Name), StepProbe, func(s scene) (bool, string) {
			if why = podTrouble(s); why.kind == noTrouble && s.since > probePatience {
				why = late(s)
			}
			return evidence.PodReady(s.pod) || why.kind != noTrouble, fmt.Sprintf("waiting for an ordinary Pod (%s) to show that the probes' image runs on node %s: %s", s.pod.Name, n.Name, stateOf(s.pod))
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			n.Err = "the probes' image could not be tried: " + r.explainDenial(ctx, err).Error()
			return nil // the guard says it
		case why.kind == imageTrouble || why.kind == shellTrouble:
			n.Err = why.explain(n.Image, n.Name)
			return nil
		case why.kind == noTrouble:
			if err := r.noteImage(*n); err != nil {
				return err
			}
		}
	}
	return nil
}

// lateWord lists the Pod's events once more.
func (r *Rollback) lateWord(ctx context.Context, pod *corev1.Pod, seen probed) (probed, error) {
	var list *corev1.EventList
	err := r.retry(ctx, StepProbe, func() (err error) {
		list, err = r.Clients.Core.Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
		return err
	})
	if err != nil {
		return seen, fmt.Errorf("reading the probe's events: %w", err)
	}
	events := make([]*corev1.Event, 0, len(list.Items))
	for i := range list.Items {
		events = append(events, &list.Items[i])
	}
	if by := byMultus(pod, eventsOf(events, pod.UID)); by != "" {
		return probed{multus: true, reason: "Multus still makes the sandboxes (" + by + ")"}, nil
	}
	return seen, nil
}

// byMultus names a trace of Multus on a Pod; empty where there is none.
func byMultus(pod *corev1.Pod, events []*corev1.Event) string {
	for _, key := range []string{nadv1.NetworkStatusAnnot, multus.LegacyStatusAnnot} {
		if _, there := pod.Annotations[key]; there {
			return "annotation " + key
		}
	}
	for _, event := range events {
		if evidence.EventComponent(event) == multus.Component {
			return "event " + event.Reason + ": " + event.Message
		}
	}
	return ""
}
