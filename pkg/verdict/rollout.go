package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// StuckAfter is how old a revision must be for a rollout that still waits for
// it to be called stuck.
const StuckAfter = 10 * time.Minute

// rolloutFault tells why the DaemonSet is not ready for an attempt, nil where
// it is. With no canary there is no node to look at: the whole DaemonSet
// counts. The rules, the first that applies deciding:
//
//  1. an installer that fails, a daemon that is killed or refuses its
//     configuration;
//  2. a generation the controller has not seen yet: its counts are of the past;
//  3. no Pod desired;
//  4. OnDelete with Pods of an old revision;
//  5. Pods not updated yet;
//  6. Pods not available: a NotReady node, a Pod that cannot start, or time.
func (s *scene) rolloutFault() *finding {
	ds := s.e.MultusDaemonSet()
	if ds == nil {
		return nil
	}
	if f := s.anyDaemonFault(); f != nil {
		return f
	}
	st := ds.Status
	desired := st.DesiredNumberScheduled
	switch {
	case st.ObservedGeneration < ds.Generation:
		return s.rolling(RolloutInProgress, ds, fmt.Sprintf("generation %d is not observed yet (%d is)", ds.Generation, st.ObservedGeneration))
	case desired == 0:
		return s.rolling(RolloutZeroDesired, ds, "no Pod desired")
	case ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && (st.UpdatedNumberScheduled < desired || s.hasOldPods()):
		return s.rolling(RolloutOnDelete, ds, fmt.Sprintf("%d of %d Pods are of the newest revision, the others stay until deleted", st.UpdatedNumberScheduled, desired))
	case st.NumberAvailable < desired:
		return s.unavailable(ds)
	case st.UpdatedNumberScheduled < desired:
		return s.rolling(RolloutInProgress, ds, fmt.Sprintf("updated %d/%d", st.UpdatedNumberScheduled, desired))
	}
	return nil
}

func (s *scene) rolling(cause Cause, ds *appsv1.DaemonSet, why string) *finding {
	st := ds.Status
	return &finding{
		cause: cause,
		lines: []Line{{Source: "daemonset", Text: fmt.Sprintf("desired %d, updated %d, ready %d, available %d, generation %d observed %d",
			st.DesiredNumberScheduled, st.UpdatedNumberScheduled, st.NumberReady, st.NumberAvailable, ds.Generation, st.ObservedGeneration)}},
		message: s.daemonSetName() + ": " + why,
	}
}

func (s *scene) anyDaemonFault() *finding {
	pods := s.e.DaemonPods("")
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		if f := s.daemonFault(p); f != nil {
			return f
		}
	}
	return nil
}

func (s *scene) hasOldPods() bool {
	hash := evidence.RevisionHash(s.e.LatestRevision())
	if hash == "" {
		return false
	}
	return slices.ContainsFunc(s.e.DaemonPods(""), func(p *corev1.Pod) bool {
		own := p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
		return own != "" && own != hash
	})
}

// unavailable tells why Pods are missing.
func (s *scene) unavailable(ds *appsv1.DaemonSet) *finding {
	st := ds.Status
	text := fmt.Sprintf("available %d/%d", st.NumberAvailable, st.DesiredNumberScheduled)
	if nodes := s.notReadyNodes(); len(nodes) > 0 && st.UpdatedNumberScheduled+int32(len(nodes)) >= st.DesiredNumberScheduled {
		return s.rolling(RolloutBlockedNodeNotReady, ds, text+"; NotReady: "+strings.Join(nodes, ", "))
	}
	if why := s.blockedDaemon(); why != "" {
		return s.rolling(RolloutStuck, ds, text+"; "+why)
	}
	// Pods that still wait for their turn are missing now and then in every
	// roll; once all are of the newest revision, only time is left to wait for.
	age := s.revisionAge()
	if st.UpdatedNumberScheduled < st.DesiredNumberScheduled || age < StuckAfter+time.Duration(ds.Spec.MinReadySeconds)*time.Second {
		return s.rolling(RolloutInProgress, ds, fmt.Sprintf("updated %d/%d, %s", st.UpdatedNumberScheduled, st.DesiredNumberScheduled, text))
	}
	if st.NumberReady >= st.DesiredNumberScheduled {
		text += ", though all are Ready"
	}
	return s.rolling(RolloutStuck, ds, fmt.Sprintf("%s, %s after the revision was made", text, age.Round(time.Minute)))
}

func (s *scene) notReadyNodes() []string {
	var names []string
	for i := range s.e.Nodes {
		for _, c := range s.e.Nodes[i].Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				names = append(names, s.e.Nodes[i].Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// blockedDaemon names a daemon Pod that waits for something it will not get by
// itself.
func (s *scene) blockedDaemon() string {
	var found []string
	for _, p := range s.e.DaemonPods("") {
		if cond := conditionOf(p, corev1.PodScheduled); isFalse(cond) {
			found = append(found, fmt.Sprintf("Pod %s is not scheduled: %s", p.Name, cond.Message))
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil && (isImageReason(w.Reason) || isConfigReason(w.Reason)) {
				found = append(found, fmt.Sprintf("Pod %s waits: %s", p.Name, w.Reason))
			}
		}
		if p.DeletionTimestamp != nil && s.now.Sub(p.DeletionTimestamp.Time) > time.Minute {
			found = append(found, fmt.Sprintf("Pod %s should be gone since %s", p.Name, clock(p.DeletionTimestamp.Time)))
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return found[0]
}

func (s *scene) revisionAge() time.Duration {
	rev := s.e.LatestRevision()
	if rev == nil || rev.CreationTimestamp.IsZero() {
		return 0
	}
	return s.now.Sub(rev.CreationTimestamp.Time)
}
