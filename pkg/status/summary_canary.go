package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// canaryStatus judges one canary with the judge of every other command, and
// asks whether its verdict still holds.
func canaryStatus(d *Data, c *Canary, now time.Time) v1alpha1.CanaryStatus {
	e := &c.Evidence
	status := v1alpha1.CanaryStatus{Namespace: e.Canary.Namespace, Name: e.Canary.Name}
	pod := e.CanaryPod()
	if pod == nil {
		missing(d, c, &status, now)
		return status
	}
	status.UID, status.CreatedAt = pod.UID, at(pod.CreationTimestamp.Time)
	status.Phase, status.Node = string(pod.Status.Phase), pod.Spec.NodeName
	if pod.DeletionTimestamp != nil {
		status.DeletingAt = at(pod.DeletionTimestamp.Time)
	}
	live := verdict.Decide(*e, now)
	record, err := canary.Recorded(pod)
	going := canary.UnderWay(pod, live, now)
	if going {
		live = canary.Unfinished(live)
	}
	word := canary.Weigh(pod, live, record)
	status.Verdict, status.Cause = string(word.Outcome), string(word.Cause)
	status.Message, status.Advice = word.Message, word.Next
	status.Network, status.Interface = live.Network, live.Interface
	status.Addresses = live.Addresses
	if record != nil {
		status.RecordedVerdict, status.RecordedCause = string(record.Outcome), string(record.Cause)
		status.DecidedAt = at(record.DecidedAt)
	}
	status.Freshness, status.Changes = freshness(e, live, record, err)
	if going {
		status.Freshness, status.Changes = v1alpha1.FreshnessUnknown, []string{"the attempt is under way: nothing is recorded yet"}
	}
	if down := daemonDown(d, pod.Spec.NodeName); down != "" && status.Freshness == v1alpha1.Fresh && word.Outcome == verdict.Pass {
		status.Freshness, status.Changes = v1alpha1.Stale, []string{down}
	}
	status.State = stateOf(status.Freshness, word.Outcome)
	status.Mark = status.State.Mark()
	status.Proof = proof(word.Lines)
	status.Lines = []v1alpha1.StatusLine{podLine(pod), verdictLine(word, record), attachmentLine(pod, e, live)}
	if word.Outcome == verdict.Pass && !evidence.HasGuard(&pod.Spec) {
		status.Lines = append(status.Lines, line(v1alpha1.MarkWarn, "guard", "none: no init container has tested the network from inside, so that the attachment alone is proven"))
	}
	return status
}

// daemonDown tells why a Pod made now on the canary's node would find no Multus
// there; empty where it would, or where that is not known. That the daemon's log
// does not tell is no reason: the canary has shown that it attaches.
func daemonDown(d *Data, node string) string {
	if node == "" || d.Shared.MultusDaemonSet() == nil || !d.Shared.Looked(evidence.Pods) {
		return ""
	}
	why := ""
	if state := progress(d, node); state.Phase != rollout.Done {
		why = state.Message
	} else if daemon := d.Shared.DaemonPod(node); daemon != nil {
		log := d.Logs[daemon.UID]
		if attach := rollout.AttachReadiness(daemon, log, d.now, 0); !attach.Ready && (log.EmptyConf || log.Stopping) {
			why = attach.Message
		}
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("a Pod made now on node %s would not be attached: %s", node, why)
}

// missing is a canary that is not there, or of which that is not known.
func missing(d *Data, c *Canary, status *v1alpha1.CanaryStatus, now time.Time) {
	status.State, status.Mark = v1alpha1.StateNoCanary, v1alpha1.MarkBad
	if c.Unreadable {
		status.State, status.Mark = v1alpha1.StateUnknown, v1alpha1.MarkUnknown
		status.Freshness, status.Changes = v1alpha1.FreshnessUnknown, []string{"the Pod cannot be read"}
		status.Message = "whether there is a Pod " + c.Evidence.Canary.String() + " is not known"
		return
	}
	status.Message = "there is no Pod " + c.Evidence.Canary.String() + ": nothing proves the network"
	status.Lines = []v1alpha1.StatusLine{line(v1alpha1.MarkBad, "Pod", "%s", status.Message)}
	if !d.Shared.Looked(evidence.Pods) {
		return
	}
	// The judge knows what stands in the way of a new one.
	v := verdict.Decide(c.Evidence, now)
	status.Cause, status.Advice = string(v.Cause), v.Next
	if v.Cause != verdict.NoAttempt {
		status.Lines = append(status.Lines, line(v1alpha1.MarkWarn, "in the way", "%s (%s)", v.Message, v.Cause))
	}
}

// stateOf puts verdict and freshness into one word.
func stateOf(fresh v1alpha1.Freshness, outcome verdict.Outcome) v1alpha1.State {
	switch {
	case fresh == v1alpha1.Stale:
		return v1alpha1.StateStale
	case outcome == verdict.Inconclusive:
		return v1alpha1.StateInconclusive
	case fresh != v1alpha1.Fresh:
		return v1alpha1.StateUnknown
	case outcome == verdict.Pass:
		return v1alpha1.StateFreshPass
	}
	return v1alpha1.StateFreshFail
}

func podLine(pod *corev1.Pod) v1alpha1.StatusLine {
	where := "not scheduled"
	if pod.Spec.NodeName != "" {
		where = "on node " + pod.Spec.NodeName
	}
	text := fmt.Sprintf("%s %s, UID %s", cmp.Or(string(pod.Status.Phase), "phase unknown"), where, pod.UID)
	if pod.DeletionTimestamp != nil {
		held := ""
		if len(pod.Finalizers) > 0 {
			held = "; held by finalizer " + strings.Join(pod.Finalizers, ", ")
		}
		return line(v1alpha1.MarkWarn, "Pod", "Terminating (%s)%s", text, held)
	}
	mark := v1alpha1.MarkOK
	switch pod.Status.Phase {
	case corev1.PodFailed:
		mark = v1alpha1.MarkBad
	case corev1.PodPending, corev1.PodUnknown, "":
		mark = v1alpha1.MarkWarn
	case corev1.PodRunning, corev1.PodSucceeded:
	}
	return line(mark, "Pod", "%s", text)
}

// verdictLine tells the verdict with its cause; one from the record says so.
func verdictLine(word verdict.Verdict, record *canary.Record) v1alpha1.StatusLine {
	mark := v1alpha1.MarkWarn
	switch word.Outcome {
	case verdict.Pass:
		mark = v1alpha1.MarkOK
	case verdict.Fail:
		mark = v1alpha1.MarkBad
	case verdict.Inconclusive:
	}
	text := fmt.Sprintf("%s (%s): %s", word.Outcome, word.Cause, word.Message)
	if record != nil && record.Outcome != word.Outcome {
		text += fmt.Sprintf(" (the retest recorded %s, %s)", record.Outcome, record.Cause)
	}
	return line(mark, "verdict", "%s", text)
}

// attachmentLine tells what was attached, or what was asked for.
func attachmentLine(pod *corev1.Pod, e *evidence.Evidence, live verdict.Verdict) v1alpha1.StatusLine {
	if live.Interface != "" && len(live.Addresses) > 0 {
		return line(v1alpha1.MarkOK, "attached", "%s %s from %s", live.Interface, strings.Join(live.Addresses, " "), live.Network)
	}
	selections, err := multus.RequestedNetworks(pod)
	if err != nil {
		return line(v1alpha1.MarkBad, "attached", "nothing: %s", err)
	}
	var asked []string
	for _, s := range selections {
		conf := multus.NetConf{}
		if nad := e.Network(s.Namespace, s.Name); nad != nil {
			conf, _ = multus.ParseNetConf(nad.Spec.Config)
		}
		text := s.Interface + " from " + s.Network()
		if addresses := multus.RequestedAddresses(s, conf); len(addresses) > 0 {
			text = fmt.Sprintf("%s %s from %s", s.Interface, joinAddresses(addresses), s.Network())
		}
		asked = append(asked, text)
	}
	return line(v1alpha1.MarkBad, "attached", "nothing is shown to be; asked for: %s", strings.Join(asked, "; "))
}

func proof(lines []verdict.Line) []v1alpha1.EvidenceLine {
	var out []v1alpha1.EvidenceLine
	for _, l := range lines {
		p := v1alpha1.EvidenceLine{Source: l.Source, Text: l.Text}
		if !l.Time.IsZero() {
			p.Time = new(metav1.NewMicroTime(l.Time.UTC()))
		}
		out = append(out, p)
	}
	return out
}
