package canary

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/address"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// UnderWay reports whether somebody may still wait for a Pod: a verdict that waiting
// may change is none yet. It is waited for no longer than a retest waits.
func UnderWay(pod *corev1.Pod, live verdict.Verdict, now time.Time) bool {
	return pod.Annotations[VerdictAnnot] == "" && !live.Settled && pod.DeletionTimestamp == nil &&
		now.Sub(pod.CreationTimestamp.Time) < target.DefaultTimeout
}

// Unfinished is a verdict as long as its attempt goes on.
func Unfinished(so verdict.Verdict) verdict.Verdict {
	if so.Cause == verdict.AttemptInProgress {
		return so
	}
	so.Message = fmt.Sprintf("the attempt is under way; so far: %s (%s): %s", so.Outcome, so.Cause, so.Message)
	so.Outcome, so.Cause = verdict.Inconclusive, verdict.AttemptInProgress
	return so
}

// Weigh chooses between what the judge says now and what it said when the
// retest was there to watch. The rules, the first that applies deciding:
//
//   - nothing valid was recorded, or the same: what it says now;
//   - a Pod that is being deleted: what it says now;
//   - a Pod that ended otherwise than what was recorded of it, as one that was
//     judged while it ran may: what it says now;
//   - a Pod that is finished: what was recorded, as nothing about the Pod can
//     change any more, while its events expire;
//   - evidence that has gone since: what was recorded;
//   - otherwise what it says now.
func Weigh(pod *corev1.Pod, live verdict.Verdict, record *Record) verdict.Verdict {
	switch {
	case record == nil, record.Cause == live.Cause && record.Outcome == live.Outcome, pod.DeletionTimestamp != nil:
		return live
	case endedOtherwise(pod, live, record):
		return live
	case !address.Finished(pod) && live.Cause != verdict.EventsExpired && live.Cause != verdict.EvidenceIncomplete:
		return live
	}
	entry, _ := verdict.Lookup(record.Cause)
	word := live
	word.Outcome, word.Cause, word.Settled = record.Outcome, record.Cause, true
	word.Message = cmp.Or(record.Message, entry.Summary, "the retest recorded this verdict")
	// What the present configuration has against it is told by its freshness.
	word.Lines = slices.DeleteFunc(slices.Clone(live.Lines), func(l verdict.Line) bool { return l.Source == "configuration" })
	word.Next = verdict.Advice(record.Cause, evidence.Evidence{Canary: evidence.Ref{Namespace: pod.Namespace, Name: pod.Name}, Pods: []corev1.Pod{*pod}})
	return word
}

// endedOtherwise reports whether a Pod's end belies its record. No Pod that has
// failed was ever judged to pass; one that succeeded may have been judged to fail
// at its end, so that only a pass of now belies that.
func endedOtherwise(pod *corev1.Pod, live verdict.Verdict, record *Record) bool {
	switch record.Outcome {
	case verdict.Pass:
		return pod.Status.Phase == corev1.PodFailed
	case verdict.Fail:
		return pod.Status.Phase == corev1.PodSucceeded && live.Outcome == verdict.Pass
	case verdict.Inconclusive:
	}
	return false
}
