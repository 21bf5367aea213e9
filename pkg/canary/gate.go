package canary

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// gate waits until a Pod made on the canary's node would be attached: the
// DaemonSet is rolled out there and its daemon has written its CNI conf. It
// returns a verdict where waiting cannot help.
func (r *Retest) gate(ctx context.Context) (*verdict.Verdict, error) {
	if blocked, err := r.placeCanary(ctx); blocked != nil || err != nil {
		return blocked, err
	}
	for {
		if ds := r.live.daemonSets.One(); ds != nil {
			r.followDaemons(ds)
		}
		wait := time.Duration(0)
		switch err := r.live.daemonSets.Err(); {
		case r.live.known():
			blocked, open, next := r.look()
			if blocked != nil || open {
				return blocked, nil
			}
			wait = next
		case err != nil:
			r.waitf(StepGate, "reading DaemonSet %s: %v", r.DaemonSet, err)
		}
		if err := r.live.next(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// next waits for the next change, for at most d where d is not zero.
func (l *live) next(ctx context.Context, d time.Duration) error {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-l.changed:
	case <-timeout:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// look judges the gate once: blocked for good, open, or how long to wait at
// most before looking again.
func (r *Retest) look() (blocked *verdict.Verdict, open bool, wait time.Duration) {
	state := rollout.Progress(r.live.observation(r.clusterNow()))
	if state.Phase != rollout.Done {
		r.attempt.RolloutReady, r.attempt.AttachReady = time.Time{}, time.Time{}
		r.last = r.blockedBy(state)
		if state.Phase == rollout.Blocked {
			return r.stop(), false, 0
		}
		r.waitf(StepGate, "waiting: %s", state.Message)
		return nil, false, 0
	}
	if r.attempt.RolloutReady.IsZero() {
		r.attempt.RolloutReady = r.now()
	}
	if attach := r.lookAttach(state.Daemons); !attach.Ready {
		r.attempt.AttachReady = time.Time{}
		r.last = r.blockedBy(rollout.State{Cause: cmp.Or(attach.Cause, verdict.RolloutInProgress), Message: attach.Message})
		r.waitf(StepGate, "waiting: %s", attach.Message)
		return nil, false, attach.Wait
	}
	r.last = verdict.Verdict{}
	return nil, true, 0
}

// lookAttach gives the first daemon that is not ready to attach, or, where all
// are, notes when that was and what it was known by: the weakest of their proofs.
func (r *Retest) lookAttach(daemons []*corev1.Pod) rollout.Attach {
	all := rollout.Attach{Ready: true}
	var messages []string
	for _, daemon := range daemons {
		attach := rollout.AttachReadiness(daemon, r.daemonLog(daemon), r.clusterNow(), r.Settle)
		if !attach.Ready {
			return attach
		}
		messages = append(messages, attach.Message)
		if all.By == "" || all.By == rollout.ByLog || attach.By == rollout.BySettle {
			all.By = attach.By
		}
	}
	if r.attempt.AttachReady.IsZero() {
		r.attempt.AttachReady, r.attempt.AttachReadyBy = r.now(), all.By
		for _, message := range messages {
			r.notef(StepGate, "%s", message)
		}
	}
	return all
}

// blockedBy is the verdict of a canary that was not recreated: what the
// catalogue says of the cause. Nearly all are inconclusive, as nothing was tried;
// a daemon that is killed again and again is a fault that any attempt would meet.
func (r *Retest) blockedBy(state rollout.State) verdict.Verdict {
	entry, _ := verdict.Lookup(state.Cause)
	return verdict.Verdict{
		Outcome: cmp.Or(entry.Outcome, verdict.Inconclusive), Cause: state.Cause, Settled: true,
		Message: state.Message,
		Next:    r.advice(state.Cause),
		Node:    r.live.nodeName,
		Lines:   []verdict.Line{{Time: r.now(), Source: "daemonset", Text: state.Message}},
	}
}

// stop ends the attempt with what is known, and says what it leaves behind.
func (r *Retest) stop() *verdict.Verdict {
	v := r.last
	v.Message = fmt.Sprintf("%s. %s", strings.TrimSuffix(v.Message, "."), sentence(r.state))
	return &v
}

// placeCanary finds the node the canary will run on: by its nodeName, or the
// one node that its nodeSelector matches.
func (r *Retest) placeCanary(ctx context.Context) (*verdict.Verdict, error) {
	if r.live.placed {
		return nil, nil
	}
	r.live.placed = true
	if name := r.manifest.Spec.NodeName; name != "" {
		r.followNode(name)
		return nil, nil
	}
	selector := r.manifest.Spec.NodeSelector
	if len(selector) == 0 {
		return nil, nil
	}
	nodes, err := r.Clients.Core.Nodes().List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selector).String()})
	switch {
	case cluster.Unreadable(err):
		// By convention a node's hostname label is its name.
		r.followNode(selector[corev1.LabelHostname])
	case err != nil:
		return nil, fmt.Errorf("looking for the canary's node: %w", err)
	case len(nodes.Items) == 0:
		r.last = r.blockedBy(rollout.State{
			Cause:   verdict.Unscheduled,
			Message: fmt.Sprintf("no node has the labels of the canary's nodeSelector (%s)", labels.SelectorFromSet(selector)),
		})
		return r.stop(), nil
	case len(nodes.Items) == 1:
		r.followNode(nodes.Items[0].Name)
	}
	return nil, nil
}

// advice is what to do about a cause while there is no canary to judge.
func (r *Retest) advice(cause verdict.Cause) string {
	pod := r.manifest.DeepCopy()
	pod.Spec.NodeName = r.live.nodeName
	return verdict.Advice(cause, evidence.Evidence{Canary: r.Canary, DaemonSet: r.DaemonSet, Pods: []corev1.Pod{*pod}})
}
