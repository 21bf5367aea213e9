package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// multusStatus judges the DaemonSet and each of its Pods. Ready says that a Pod
// made now on the canaries' nodes, or on any where there is none, would be
// attached.
func multusStatus(d *Data, now time.Time, settle time.Duration) (status v1alpha1.MultusStatus, ready bool) {
	status.DaemonSet = d.DaemonSet.String()
	e := &d.Shared
	e.DaemonSet = d.DaemonSet
	ds := e.MultusDaemonSet()
	if ds == nil {
		if d.DaemonSetNote != "" || e.Looked(evidence.DaemonSets) {
			text := cmp.Or(d.DaemonSetNote, "there is no DaemonSet "+d.DaemonSet.String())
			status.Lines = append(status.Lines, line(v1alpha1.MarkBad, "rollout", "%s", text))
		}
		return status, false
	}
	count(&status, ds)
	status.Revision = evidence.RevisionHash(e.LatestRevision())
	status.Nodes = multusNodes(d, now, settle)
	status.Digests = digests(e)
	if d.DaemonSetNote != "" {
		status.Lines = append(status.Lines, line(v1alpha1.MarkWarn, "found", "%s", d.DaemonSetNote))
	}
	rolled := rolloutLine(d, ds)
	status.Lines = append(status.Lines, rolled, imageLine(&status))
	attach, ready := attachLine(status.Nodes, rolled.Text)
	status.Lines = append(status.Lines, attach)
	return status, ready
}

func count(status *v1alpha1.MultusStatus, ds *appsv1.DaemonSet) {
	status.UID, status.Strategy = ds.UID, string(ds.Spec.UpdateStrategy.Type)
	s := ds.Status
	status.Desired, status.Updated = s.DesiredNumberScheduled, s.UpdatedNumberScheduled
	status.Ready, status.Available = s.NumberReady, s.NumberAvailable
	if container := multus.DaemonContainer(&ds.Spec.Template.Spec); container != nil {
		status.Image = container.Image
	}
}

// rolloutLine judges the DaemonSet as a whole.
func rolloutLine(d *Data, ds *appsv1.DaemonSet) v1alpha1.StatusLine {
	s := ds.Status
	counts := fmt.Sprintf("desired %d, updated %d, ready %d, available %d; %s",
		s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable, ds.Spec.UpdateStrategy.Type)
	if hash := evidence.RevisionHash(d.Shared.LatestRevision()); hash != "" {
		counts += ", revision " + hash
	}
	if !d.Shared.Looked(evidence.Pods) {
		return line(v1alpha1.MarkUnknown, "rollout", "%s; its Pods are not known", counts)
	}
	state := progress(d, "")
	if state.Phase == rollout.Done {
		return line(v1alpha1.MarkOK, "rollout", "done: %s", counts)
	}
	mark := v1alpha1.MarkWarn
	if state.Phase == rollout.Blocked {
		mark = v1alpha1.MarkBad
	}
	return line(mark, "rollout", "%s (%s)", state.Message, counts)
}

// progress is the rollout as somebody meets it who looks once: a retest may wait
// for the daemon's own word, but a daemon between two crashes is not done.
func progress(d *Data, node string) rollout.State {
	state := rollout.Progress(observation(d, node))
	if state.Phase != rollout.Done {
		return state
	}
	for _, daemon := range state.Daemons {
		if text := rollout.Unsteady(daemon, d.now); text != "" {
			return rollout.State{Phase: rollout.Blocked, Cause: verdict.RolloutStuck, Message: text, Daemons: []*corev1.Pod{daemon}}
		}
	}
	return state
}

func observation(d *Data, node string) rollout.Observation {
	e := &d.Shared
	o := rollout.Observation{Now: d.now, DaemonSet: e.MultusDaemonSet(), NodeName: node, Node: e.Node(node)}
	for i := range e.ControllerRevisions {
		o.Revisions = append(o.Revisions, &e.ControllerRevisions[i])
	}
	for i := range e.Pods {
		o.Pods = append(o.Pods, &e.Pods[i])
	}
	return o
}

func imageLine(status *v1alpha1.MultusStatus) v1alpha1.StatusLine {
	switch len(status.Digests) {
	case 0:
		return line(v1alpha1.MarkUnknown, "image", "%s (no Pod tells its digest)", status.Image)
	case 1:
		if strings.HasSuffix(status.Image, "@"+status.Digests[0]) {
			return line(v1alpha1.MarkOK, "image", "%s", status.Image)
		}
		return line(v1alpha1.MarkOK, "image", "%s (%s)", status.Image, status.Digests[0])
	}
	return line(v1alpha1.MarkWarn, "image", "%s, with %d different digests: %s", status.Image, len(status.Digests), strings.Join(status.Digests, ", "))
}

// digests are what the daemons really run: a tag may have moved.
func digests(e *evidence.Evidence) []string {
	var all []string
	for _, pod := range e.DaemonPods("") {
		status := evidence.DaemonStatus(pod)
		if status == nil || status.ImageID == "" {
			continue
		}
		digest := status.ImageID
		if _, after, ok := strings.Cut(digest, "@"); ok {
			digest = after
		}
		if !slices.Contains(all, digest) {
			all = append(all, digest)
		}
	}
	slices.Sort(all)
	return all
}

// attachLine says whether the canaries' nodes, or all where there is none,
// would attach a Pod now. What was said of the rollout is not said again.
func attachLine(nodes []v1alpha1.MultusNode, said string) (v1alpha1.StatusLine, bool) {
	onlyCanaries := slices.ContainsFunc(nodes, func(n v1alpha1.MultusNode) bool { return n.Canary })
	var names []string
	for _, node := range nodes {
		if onlyCanaries && !node.Canary {
			continue
		}
		if !node.AttachReady {
			text := fmt.Sprintf("a Pod made now on node %s would not be attached", node.Node)
			if !strings.HasPrefix(said, node.Reason) {
				text += ": " + node.Reason
			}
			return line(node.Mark, "attach", "%s", text), false
		}
		if !slices.Contains(names, node.Node) {
			names = append(names, node.Node)
		}
	}
	switch len(names) {
	case 0:
		return line(v1alpha1.MarkUnknown, "attach", "no daemon Pod is known"), false
	case 1:
		return line(v1alpha1.MarkOK, "attach", "a Pod made now on node %s would be attached", names[0]), true
	}
	return line(v1alpha1.MarkOK, "attach", "a Pod made now on any of %d nodes would be attached", len(names)), true
}

// multusNodes are the daemon Pods, the canaries' nodes first; a canary's node
// without one has a row that says so.
func multusNodes(d *Data, now time.Time, settle time.Duration) []v1alpha1.MultusNode {
	if !d.Shared.Looked(evidence.Pods) {
		return nil
	}
	canaryNodes := nodesOf(d)
	var rows []v1alpha1.MultusNode
	seen := map[string]bool{}
	for _, pod := range d.Shared.DaemonPods("") {
		row := daemonRow(d, pod, now, settle)
		row.Canary = canaryNodes[row.Node]
		seen[row.Node] = true
		rows = append(rows, row)
	}
	for node := range canaryNodes {
		if !seen[node] {
			state := progress(d, node)
			rows = append(rows, v1alpha1.MultusNode{Mark: v1alpha1.MarkBad, Reason: state.Message, Node: node, Canary: true})
		}
	}
	slices.SortFunc(rows, func(a, b v1alpha1.MultusNode) int {
		return cmp.Or(-compareBool(a.Canary, b.Canary), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod))
	})
	return rows
}

func nodesOf(d *Data) map[string]bool {
	nodes := map[string]bool{}
	for i := range d.Canaries {
		if pod := d.Canaries[i].Evidence.CanaryPod(); pod != nil && pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	return nodes
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// daemonRow judges the daemon on one node.
func daemonRow(d *Data, pod *corev1.Pod, now time.Time, settle time.Duration) v1alpha1.MultusNode {
	row := v1alpha1.MultusNode{
		Node: pod.Spec.NodeName, Pod: pod.Name, UID: pod.UID, CreatedAt: pod.CreationTimestamp,
		Revision: pod.Labels[appsv1.ControllerRevisionHashLabelKey], Ready: evidence.PodReady(pod),
	}
	if status := evidence.DaemonStatus(pod); status != nil {
		row.Restarts, row.LastRestart = restarts(status)
	}
	state := progress(d, pod.Spec.NodeName)
	if state.Phase != rollout.Done {
		row.Reason, row.Mark = state.Message, v1alpha1.MarkWarn
		if state.Phase == rollout.Blocked {
			row.Mark = v1alpha1.MarkBad
		}
		return row
	}
	log := d.Logs[pod.UID]
	attach := rollout.AttachReadiness(pod, log, now, settle)
	row.Reason, row.AttachReady, row.AttachReadyBy = attach.Message, attach.Ready, attach.By
	row.Mark = v1alpha1.MarkWarn
	if attach.Cause != "" {
		row.Mark = v1alpha1.MarkBad
	}
	if attach.By == rollout.ByAge {
		// The age itself would make each look at the same state another one.
		row.Reason = fmt.Sprintf("daemon Pod %s has run for more than %s without a restart", pod.Name, rollout.ReadyByAge)
	}
	if attach.Ready {
		row.Mark = v1alpha1.MarkOK
		row.AttachReadySince = attachSince(pod, log, attach.By, settle)
	}
	return row
}

// attachSince is since when a Pod would have been attached, as near as it is
// known: the log's own time, else the end of what had to be waited for.
func attachSince(pod *corev1.Pod, log rollout.DaemonLog, by string, settle time.Duration) *metav1.Time {
	switch by {
	case rollout.ByLog:
		return at(log.ReadyAt)
	case rollout.ByAge:
		_, _, started := rollout.DaemonContainer(pod)
		return at(started.Add(rollout.ReadyByAge))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return at(condition.LastTransitionTime.Add(settle))
		}
	}
	return nil
}

// restarts are how often a container was started again, and how it ended last.
func restarts(status *corev1.ContainerStatus) (int32, *v1alpha1.LastRestart) {
	last := cmp.Or(status.LastTerminationState.Terminated, status.State.Terminated)
	if last == nil {
		return status.RestartCount, nil
	}
	return status.RestartCount, &v1alpha1.LastRestart{
		Reason: last.Reason, ExitCode: last.ExitCode, At: at(last.FinishedAt.Time), Message: last.Message,
	}
}
