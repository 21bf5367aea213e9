package verdict

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// going is rule 2.
func going(s *scene) *finding {
	if s.pod.DeletionTimestamp == nil {
		return nil
	}
	line := Line{Time: s.pod.DeletionTimestamp.Time, Source: sourcePod, Text: "deletionTimestamp is set" + finalizersText(s.pod)}
	if n := len(s.ev.kill); n > 0 {
		newest := s.ev.kill[n-1]
		f := &finding{
			cause: TeardownBlocked, lines: []Line{line, eventLine(newest)},
			message: fmt.Sprintf("%s is being deleted, but its sandbox cannot be torn down: %s", s.who(), killText(newest.Message)),
		}
		return f.since(s.ev.kill...)
	}
	return &finding{
		cause: OldPodTerminating, lines: []Line{line},
		message: s.who() + " is being deleted and still there" + finalizersText(s.pod),
	}
}

func finalizersText(pod *corev1.Pod) string {
	if len(pod.Finalizers) == 0 {
		return ""
	}
	return "; held by finalizers " + strings.Join(pod.Finalizers, ", ")
}

// unscheduled is rule 3.
func unscheduled(s *scene) *finding {
	if s.node != "" || s.pod.Status.Phase == corev1.PodSucceeded || s.hasRun() {
		return nil
	}
	cond := conditionOf(s.pod, corev1.PodScheduled)
	if !isFalse(cond) && len(s.ev.sched) == 0 && !s.overlooked() {
		return nil
	}
	f := &finding{cause: Unscheduled, firstSeen: s.pod.CreationTimestamp.Time}
	why := ""
	if isFalse(cond) {
		why = cmp.Or(cond.Message, cond.Reason)
		f.lines = append(f.lines, Line{Time: cond.LastTransitionTime.Time, Source: sourcePod, Text: "condition PodScheduled=False " + cond.Reason + ": " + cond.Message})
	}
	if n := len(s.ev.sched); n > 0 {
		why = cmp.Or(why, s.ev.sched[n-1].Message)
		f.lines = append(f.lines, eventLine(s.ev.sched[n-1]))
	}
	if why == "" {
		why = fmt.Sprintf("no reason given, %s after it was created", s.now.Sub(s.pod.CreationTimestamp.Time).Round(time.Second))
	}
	f.message = fmt.Sprintf("%s was not scheduled: %s", s.who(), firstLine(why))
	return f
}

// overlooked reports a Pod that no scheduler has said a word about for longer
// than one takes.
func (s *scene) overlooked() bool {
	const patience = time.Minute
	phase := s.pod.Status.Phase
	return (phase == corev1.PodPending || phase == "") && !s.pod.CreationTimestamp.IsZero() && s.now.Sub(s.pod.CreationTimestamp.Time) >= patience
}

// unreadable is rule 4.
func unreadable(s *scene) *finding {
	if s.wantedErr == nil {
		return nil
	}
	return &finding{
		cause: PodAnnotationInvalid, seen: 2,
		lines:   []Line{{Time: s.pod.CreationTimestamp.Time, Source: sourcePod, Text: s.wantedErr.Error()}},
		message: s.who() + ": " + s.wantedErr.Error(),
	}
}

// volumeBlocked is rule 10.
func volumeBlocked(s *scene) *finding {
	n := len(s.ev.mounts)
	if n == 0 || s.hasRun() || s.sandboxStands() {
		return nil
	}
	newest := s.ev.mounts[n-1]
	volume := volumeIn(newest.Message)
	f := &finding{
		cause: VolumeMount, lines: []Line{eventLine(newest)}, names: names{volume: volume},
		message: fmt.Sprintf("%s waits for a volume: %s", s.who(), firstLine(newest.Message)),
	}
	return f.standing(s.ev.mounts...)
}

// volumeIn finds the volume's name in kubelet's FailedMount message.
func volumeIn(message string) string {
	if _, rest, ok := strings.Cut(message, `for volume "`); ok {
		if name, _, ok := strings.Cut(rest, `"`); ok {
			return name
		}
	}
	return ""
}

// sandboxStands reports that the Pod has a sandbox with a network now. Where an
// older kubelet sets no condition, its work on a container after the last
// failure tells.
func (s *scene) sandboxStands() bool {
	ready := conditionOf(s.pod, corev1.PodReadyToStartContainers)
	if ready != nil {
		return isTrue(ready) || s.running()
	}
	failed := s.ev.changed
	if n := len(s.ev.sandbox); n > 0 {
		failed = later(failed, evidence.EventTime(s.ev.sandbox[n-1]))
	}
	return s.running() || s.ev.alive.After(failed)
}

func (s *scene) running() bool {
	for _, c := range s.containers() {
		if c.State.Running != nil {
			return true
		}
	}
	return false
}

// inProgress is rule 11.
func inProgress(s *scene) *finding {
	if p := s.proveAll(); p.stale && !p.shown() {
		return &finding{
			cause: StaleNetworkStatus, lines: append(p.lines, s.lostLines()...),
			message: s.who() + ": its attachment is shown for an earlier sandbox only",
		}
	}
	if f := s.runsWithoutMultus(); f != nil {
		return f
	}
	if !s.hasRun() && !s.sandboxStands() && len(s.ev.added) == 0 {
		if f := s.rolloutFault(); f != nil {
			f.message = s.who() + " waits; " + f.message
			f.open = true // the Pod may get on all the same
			return f
		}
	}
	f := &finding{cause: AttemptInProgress, lines: s.containerLines()}
	switch {
	case s.node == "":
		f.message = s.who() + " waits for the scheduler"
	case s.running():
		f.message = s.who() + ": its guard or main container is running"
	case s.hasRun():
		f.message = s.who() + ": its next container is about to start"
	case s.sandboxStands() || len(s.ev.added) > 0:
		f.message = s.who() + ": its sandbox is made, no container has started yet"
	default:
		f.message = s.who() + " waits for its sandbox"
	}
	return f
}

// unlessStale replaces a pass or a fail that was reached before the present
// configuration came into being.
func (s *scene) unlessStale(f *finding) *finding {
	entry, _ := Lookup(f.cause)
	outcome := cmp.Or(f.outcome, entry.Outcome)
	if f.at.IsZero() || outcome == Inconclusive && f.cause != MultusNotInChain {
		return f
	}
	what, changed := s.configuredAt()
	// Two clocks: creation times are the API server's, f.at is often the node's.
	if !changed.After(f.at) || !changed.After(s.pod.CreationTimestamp.Time) {
		return f
	}
	return &finding{
		cause: StaleAttempt,
		// Kubelet goes on with a Pod whose sandbox is not made yet, now under the
		// new configuration.
		open:  !s.hasRun(),
		lines: append(f.lines, Line{Time: changed, Source: "configuration", Text: what}),
		message: fmt.Sprintf("%s is an attempt of %s, before %s at %s; then it was: %s (%s)",
			s.who(), f.at.UTC().Format(time.RFC3339), what, changed.UTC().Format(time.RFC3339), f.cause, f.message),
	}
}

// configuredAt tells the newest part of the configuration and its age, as far
// as creation times tell: the DaemonSet's revision, the networks asked for, the
// ConfigMaps mounted. A change in place shows in the fingerprint alone.
func (s *scene) configuredAt() (what string, at time.Time) {
	if rev := s.e.LatestRevision(); rev != nil {
		what, at = "the newest revision of "+s.daemonSetName()+" was made", rev.CreationTimestamp.Time
	}
	for _, w := range s.wanted {
		if nad := s.e.Network(w.Namespace, w.Name); nad != nil && nad.CreationTimestamp.After(at) {
			what, at = "NetworkAttachmentDefinition "+w.Network()+" was created", nad.CreationTimestamp.Time
		}
	}
	for _, name := range evidence.ConfigMapsOf(&s.pod.Spec) {
		for i := range s.e.ConfigMaps {
			cm := &s.e.ConfigMaps[i]
			if cm.Namespace == s.pod.Namespace && cm.Name == name && cm.CreationTimestamp.After(at) {
				what, at = "ConfigMap "+name+" was created", cm.CreationTimestamp.Time
			}
		}
	}
	return what, at
}
