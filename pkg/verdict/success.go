package verdict

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// succeeded is rule 5.
func succeeded(s *scene) *finding {
	if !s.didWell() {
		return nil
	}
	p := s.proveAll()
	lines := slices.Concat(p.lines, s.containerLines())
	switch {
	case p.shown():
		return s.passed(p, lines)
	case p.stale:
		return &finding{
			cause: StaleNetworkStatus, lines: append(lines, s.lostLines()...), at: s.ranAt(), open: s.fresh(),
			message: s.who() + " did well, but its attachment is shown for an earlier sandbox only",
		}
	case p.bare:
		return s.unaddressed(p, lines)
	case !s.multusRan():
		return s.notInChain(lines, "its containers did well, but")
	}
	return &finding{
		cause: EvidenceIncomplete, lines: lines, open: s.fresh(), at: s.ranAt(),
		message: s.who() + " did well, but nothing shows " + s.wantedText() + " attached",
	}
}

// passed names the pass by what was there to prove it.
func (s *scene) passed(p proof, lines []Line) *finding {
	f := &finding{cause: OK, lines: lines, at: s.ranAt()}
	ran := len(s.ev.started) > 0
	switch {
	case s.statuses.Legacy:
		f.cause = LegacyAnnotationKey
	case s.ev.any && !ran && (s.ev.failures > 0 || s.ev.burst):
		f.cause = EventsIncomplete
	case s.ev.failures > 0:
		f.cause = LateSuccess
	case !p.byEvent:
		f.cause = OKNoMultusEvents
	case !s.statuses.Present:
		f.cause = NetworkStatusAbsent
	case !p.byStatus:
		f.cause = NetworkStatusPartial
	}
	incomplete := []Cause{OKNoMultusEvents, NetworkStatusAbsent, NetworkStatusPartial, EventsIncomplete}
	f.open = slices.Contains(incomplete, f.cause) && s.fresh() || s.justStarted()
	if s.ev.failures > 0 && len(s.ev.sandbox) > 0 {
		f.lines = append(f.lines, eventLine(s.ev.sandbox[len(s.ev.sandbox)-1]))
	}
	did := "its guard and containers did well"
	if !evidence.HasGuard(&s.pod.Spec) {
		did = "its containers did well; no guard (init container) has tested the network from inside"
	}
	f.message = fmt.Sprintf("%s is attached to %s, and %s", s.who(), s.wantedText(), did)
	return f
}

// unaddressed is an interface without the address that was asked for.
func (s *scene) unaddressed(p proof, lines []Line) *finding {
	got := joinAddresses(p.addresses)
	if got == "" {
		got = "no address"
	}
	return &finding{
		cause: StaticIPMissing, lines: lines, at: s.ranAt(), seen: 2,
		message: fmt.Sprintf("%s was attached with %s instead of %s", s.who(), got, s.wantedText()),
	}
}

// fresh reports that the last container finished so lately that its events may
// still be on their way.
func (s *scene) fresh() bool {
	at := s.finishedAt()
	if at.IsZero() {
		at = s.ranAt()
	}
	age := s.now.Sub(at)
	// A node's clock that runs ahead must not keep a verdict open for ever.
	return !at.IsZero() && age < EventGrace && age > -EventGrace
}

// justStarted reports that a main container has started so lately that it may
// yet end with an error: one that only runs has proven nothing by its exit code.
func (s *scene) justStarted() bool {
	for _, c := range s.pod.Status.ContainerStatuses {
		if c.State.Running == nil {
			continue
		}
		// As in fresh, a node's clock that runs ahead must not hold the verdict.
		if age := s.now.Sub(c.State.Running.StartedAt.Time); age < RunningGrace && age > -RunningGrace {
			return true
		}
	}
	return false
}

// didWell reports that guard and main containers finished well, or are running
// and ready. Exit codes outrank the phase.
func (s *scene) didWell() bool {
	if s.failedContainer() != nil || s.restartedSidecar() {
		return false
	}
	switch s.pod.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		return s.hasRun() && s.guardsDone() && (isTrue(conditionOf(s.pod, corev1.PodReady)) || s.mainDone() || s.mainReady())
	case corev1.PodPending, corev1.PodFailed, corev1.PodUnknown:
		return false
	}
	return false
}

// guardsDone reports that every init container finished well, sidecars aside.
func (s *scene) guardsDone() bool {
	done := 0
	for _, c := range s.pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode == 0 || c.State.Running != nil && s.isSidecar(c.Name) {
			done++
		}
	}
	return done >= len(s.pod.Spec.InitContainers)
}

// restartedSidecar reports a sidecar that has failed and runs again: nothing tells
// whether it is a helper or checks the network.
func (s *scene) restartedSidecar() bool {
	return slices.ContainsFunc(s.pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		last := c.LastTerminationState.Terminated
		return s.isSidecar(c.Name) && c.RestartCount > 0 && last != nil && last.ExitCode != 0
	})
}

func (s *scene) isSidecar(name string) bool {
	for _, c := range s.pod.Spec.InitContainers {
		if c.Name == name {
			return evidence.IsSidecar(c)
		}
	}
	return false
}

// mainDone reports that every main container finished well, before kubelet has
// told so in the phase.
func (s *scene) mainDone() bool {
	if len(s.pod.Status.ContainerStatuses) < len(s.pod.Spec.Containers) || len(s.pod.Spec.Containers) == 0 {
		return false
	}
	for _, c := range s.pod.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			return false
		}
	}
	return true
}

// mainReady reports that every main container runs and is ready, for a status
// without conditions.
func (s *scene) mainReady() bool {
	if len(s.pod.Status.Conditions) > 0 || len(s.pod.Status.ContainerStatuses) < max(1, len(s.pod.Spec.Containers)) {
		return false
	}
	for _, c := range s.pod.Status.ContainerStatuses {
		if c.State.Running == nil || !c.Ready {
			return false
		}
	}
	return true
}

// lostLines show how the earlier sandbox was lost.
func (s *scene) lostLines() []Line {
	var lines []Line
	if !s.ev.changed.IsZero() {
		lines = append(lines, Line{Time: s.ev.changed, Source: "event", Text: "SandboxChanged: Pod sandbox changed, it will be killed and re-created."})
	}
	if !s.ev.rebooted.IsZero() {
		lines = append(lines, Line{Time: s.ev.rebooted, Source: "event", Text: "Rebooted: node " + s.node})
	}
	return lines
}

func (s *scene) containerLines() []Line {
	var lines []Line
	for _, c := range s.containers() {
		if t := c.State.Terminated; t != nil {
			lines = append(lines, terminatedLine(c.Name, t))
		} else if r := c.State.Running; r != nil {
			lines = append(lines, Line{Time: r.StartedAt.Time, Source: sourcePod, Text: "container " + c.Name + " is running"})
		}
	}
	return lines
}

func terminatedLine(name string, t *corev1.ContainerStateTerminated) Line {
	text := fmt.Sprintf("container %s exited %d", name, t.ExitCode)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if msg := strings.TrimSpace(t.Message); msg != "" {
		text += ": " + msg
	}
	return Line{Time: t.FinishedAt.Time, Source: sourcePod, Text: text}
}
