// Package rollout judges how far a Multus DaemonSet is on one node, and whether
// a Pod made there now would be attached. It is pure.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// Phase says what can be hoped for.
type Phase string

// The phases of a rollout on one node.
const (
	// Waiting: it moves by itself; wait.
	Waiting Phase = "waiting"
	// Blocked: waiting cannot help, a person must act.
	Blocked Phase = "blocked"
	// Done: the daemon Pod of the newest revision is Ready on the node.
	Done Phase = "done"
)

// Observation is all that one judgement looks at.
type Observation struct {
	// Now is the cluster's time.
	Now time.Time
	// DaemonSet is nil where it is not there.
	DaemonSet *appsv1.DaemonSet
	// Revisions are the ControllerRevisions of the DaemonSet's namespace; nil
	// where they may not be read, and then the DaemonSet's counters must do.
	Revisions []*appsv1.ControllerRevision
	// Pods are the Pods that the DaemonSet's selector matches.
	Pods []*corev1.Pod
	// Node is the canary's node; nil where it is unknown or may not be read.
	Node *corev1.Node
	// NodeMissing: the node was looked for, and is not there.
	NodeMissing bool
	// NodeName is the canary's node, empty where it is unknown: then every
	// daemon Pod must be ready.
	NodeName string
}

// State is the judgement.
type State struct {
	Phase   Phase
	Cause   verdict.Cause
	Message string
	// Daemons are the daemon Pods that serve the node once the phase is Done.
	Daemons []*corev1.Pod
}

// Progress judges a rollout. Its rules, in order:
//
//   - the DaemonSet must exist and its controller must have seen its newest spec;
//   - it must want at least one Pod: zero desired is "rolled out" for kubectl,
//     and is exactly the broken case here;
//   - the node, where it is known, must be there and Ready;
//   - a daemon Pod of the newest revision must be on the node, not terminating;
//     under OnDelete an old one stays until somebody deletes it;
//   - the DaemonSet must count it as updated: revisions are watched apart from the
//     DaemonSet, and the newest may not be known yet;
//   - one that crash-loops, is killed for memory, cannot be pulled or whose
//     installer fails is named at once: waiting cannot help;
//   - its Pod must be Ready.
func Progress(o Observation) State {
	for _, rule := range []func(Observation) (State, bool){
		unknown, zeroDesired, nodeNotReady, wrongRevision, brokenDaemon, notReady,
	} {
		if state, found := rule(o); found {
			return state
		}
	}
	return State{Phase: Done, Daemons: o.onNode(), Message: "DaemonSet " + o.ref() + " is rolled out" + o.where()}
}

func unknown(o Observation) (State, bool) {
	ds := o.DaemonSet
	switch {
	case ds == nil:
		return State{Phase: Waiting, Cause: verdict.RolloutInProgress, Message: "the Multus DaemonSet is not there"}, true
	case ds.DeletionTimestamp != nil:
		return State{Phase: Blocked, Cause: verdict.RolloutStuck, Message: fmt.Sprintf("DaemonSet %s is being deleted", o.ref())}, true
	case ds.Status.ObservedGeneration < ds.Generation:
		return State{
			Phase: Waiting, Cause: verdict.RolloutInProgress,
			Message: fmt.Sprintf("DaemonSet %s: its controller has seen generation %d of %d", o.ref(), ds.Status.ObservedGeneration, ds.Generation),
		}, true
	}
	return State{}, false
}

func zeroDesired(o Observation) (State, bool) {
	if o.DaemonSet.Status.DesiredNumberScheduled > 0 {
		return State{}, false
	}
	return State{
		Phase: Blocked, Cause: verdict.RolloutZeroDesired,
		Message: fmt.Sprintf("DaemonSet %s wants no Pod on any node (nodeSelector %s)", o.ref(), selectorText(o.DaemonSet)),
	}, true
}

func nodeNotReady(o Observation) (State, bool) {
	if o.NodeMissing {
		return State{
			Phase: Blocked, Cause: verdict.Unscheduled,
			Message: fmt.Sprintf("there is no node %s, which the canary asks for", o.NodeName),
		}, true
	}
	if o.Node == nil || conditionIs(o.Node.Status.Conditions, corev1.NodeReady) {
		return State{}, false
	}
	return State{
		Phase: Waiting, Cause: verdict.RolloutBlockedNodeNotReady,
		Message: fmt.Sprintf("node %s is NotReady", o.Node.Name),
	}, true
}

func wrongRevision(o Observation) (State, bool) {
	newest, ok := o.newestRevision()
	onNode, desired := o.onNode(), int(o.DaemonSet.Status.DesiredNumberScheduled)
	state := State{Phase: Waiting, Cause: verdict.RolloutInProgress}
	switch {
	case len(onNode) == 0:
		state.Message = fmt.Sprintf("DaemonSet %s has no Pod%s yet", o.ref(), o.where())
		return state, true
	case o.NodeName == "" && len(onNode) < desired:
		state.Message = fmt.Sprintf("DaemonSet %s has %d of %d Pods, and the canary may run on any node", o.ref(), len(onNode), desired)
		return state, true
	}
	for _, pod := range onNode {
		if pod.DeletionTimestamp != nil {
			state.Message = fmt.Sprintf("daemon Pod %s is terminating", pod.Name)
			return state, true
		}
		if ok && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != newest {
			state.Message = fmt.Sprintf("daemon Pod %s is of revision %s, the newest is %s", pod.Name, pod.Labels[appsv1.ControllerRevisionHashLabelKey], newest)
			return o.onDelete(state), true
		}
	}
	return o.notCounted(ok)
}

// notCounted waits until the DaemonSet counts its updated Pods: the one on the
// canary's node, or all where the node or the newest revision is not known.
func (o Observation) notCounted(revisionKnown bool) (State, bool) {
	updated, need := o.DaemonSet.Status.UpdatedNumberScheduled, o.DaemonSet.Status.DesiredNumberScheduled
	state := State{
		Phase: Waiting, Cause: verdict.RolloutInProgress,
		Message: fmt.Sprintf("DaemonSet %s: Updated: %d/%d", o.ref(), updated, need),
	}
	switch {
	case !revisionKnown && updated < need:
		return o.onDelete(state), true
	case o.NodeName != "":
		need = 1
	}
	return state, updated < need
}

// onDelete turns the wait for a new revision into a dead end where nothing but
// a person will ever replace the Pod.
func (o Observation) onDelete(state State) State {
	if o.DaemonSet.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		state.Phase, state.Cause = Blocked, verdict.RolloutOnDelete
		state.Message += "; its update strategy is OnDelete, so the Pod stays until somebody deletes it"
	}
	return state
}

func notReady(o Observation) (State, bool) {
	for _, pod := range o.onNode() {
		if !evidence.PodReady(pod) {
			return State{
				Phase: Waiting, Cause: verdict.RolloutInProgress,
				Message: fmt.Sprintf("daemon Pod %s is not Ready (%s)", pod.Name, podDoing(pod)),
			}, true
		}
	}
	return State{}, false
}

// newestRevision is the hash of the DaemonSet's latest ControllerRevision.
func (o Observation) newestRevision() (hash string, ok bool) {
	var own []*appsv1.ControllerRevision
	for _, revision := range o.Revisions {
		if metav1.IsControlledBy(revision, o.DaemonSet) {
			own = append(own, revision)
		}
	}
	if len(own) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(own, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	hash = newest.Labels[appsv1.ControllerRevisionHashLabelKey]
	return hash, hash != ""
}

// onNode are the DaemonSet's Pods that matter for the canary's node.
func (o Observation) onNode() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range o.Pods {
		if metav1.IsControlledBy(pod, o.DaemonSet) && (o.NodeName == "" || pod.Spec.NodeName == o.NodeName) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

func (o Observation) ref() string { return o.DaemonSet.Namespace + "/" + o.DaemonSet.Name }

func (o Observation) where() string {
	if o.NodeName == "" {
		return ""
	}
	return " on node " + o.NodeName
}
