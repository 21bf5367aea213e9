package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// failed is rule 6.
func failed(s *scene) *finding {
	c := s.failedContainer()
	switch {
	case c == nil && s.pod.Status.Phase != corev1.PodFailed:
		return nil
	case c == nil && !s.hasRun() && s.pod.Status.Reason == "DeadlineExceeded" && len(s.ev.sandbox)+len(s.ev.mounts) > 0:
		return nil // ended while it waited: a later rule names what for
	case c == nil || gaveUp(s.pod.Status.Reason) || lostContainer(c):
		return s.givenUp()
	case neverStarted(c):
		return &finding{
			cause: ContainerConfigError, lines: []Line{terminatedLine(c.Name, c.State.Terminated)}, seen: 2,
			message: fmt.Sprintf("%s: container %s could not be started: %s", s.who(), c.Name, firstLine(c.State.Terminated.Message)),
		}
	}
	return s.guardFailure(c)
}

// failedContainer gives the first container that exited non-zero, in the order
// in which they run.
func (s *scene) failedContainer() *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{s.pod.Status.InitContainerStatuses, s.pod.Status.ContainerStatuses} {
		for i := range list {
			// A sidecar is stopped at the Pod's end and may well exit non-zero.
			if t := list[i].State.Terminated; t != nil && t.ExitCode != 0 && !s.isSidecar(list[i].Name) {
				return &list[i]
			}
		}
	}
	return nil
}

// neverStarted tells a container whose command could not be run (kubelet's
// StartError) from one that ran and failed.
func neverStarted(c *corev1.ContainerStatus) bool { return neverRan(c.State.Terminated.Reason) }

func neverRan(reason string) bool { return reason == "StartError" || reason == "ContainerCannotRun" }

// lostContainer: kubelet found no trace of a container it had started, or the
// runtime none of its process, as after a reboot, and so its exit code is made
// up (containerd internal/cri/server/restart.go: unknownExitCode, unknownExitReason).
func lostContainer(c *corev1.ContainerStatus) bool {
	t := c.State.Terminated
	return t.Reason == "ContainerStatusUnknown" || t.Reason == "Unknown" && t.ExitCode == 255
}

// gaveUp names the Pod reasons by which kubelet or the node ends a Pod whatever
// its containers did.
func gaveUp(reason string) bool {
	switch reason {
	case "Evicted", "NodeShutdown", "Terminated", "NodeLost", "Preempting", "Shutdown":
		return true
	}
	return false
}

// givenUp is a Pod that failed without a container of its own failing.
func (s *scene) givenUp() *finding {
	line := Line{Source: sourcePod, Text: strings.TrimSpace(fmt.Sprintf("phase %s %s: %s", s.pod.Status.Phase, s.pod.Status.Reason, s.pod.Status.Message))}
	if !s.hasRun() && !gaveUp(s.pod.Status.Reason) {
		return &finding{
			cause: Unscheduled, lines: []Line{line}, seen: 2,
			message: fmt.Sprintf("%s was refused by its node: %s", s.who(), cmp.Or(firstLine(s.pod.Status.Message), s.pod.Status.Reason, "no reason given")),
		}
	}
	return &finding{
		cause: NeverPodStranded, lines: []Line{line},
		message: fmt.Sprintf("%s was ended by its node: %s", s.who(), cmp.Or(s.pod.Status.Reason, firstLine(s.pod.Status.Message), "no reason given")),
	}
}

// guardFailure judges a container that ran and exited non-zero: what it says
// counts where the attachment is shown, and what is missing where it is not.
func (s *scene) guardFailure(c *corev1.ContainerStatus) *finding {
	p := s.proveAll()
	lines := slices.Concat(p.lines, []Line{terminatedLine(c.Name, c.State.Terminated)})
	said := s.lastWords(c)
	if !p.shown() && said.fault == MasterLinkRecreated {
		said.fault = "" // what was never there did not go away
	}
	if last := said.text; last != "" && last != firstLine(c.State.Terminated.Message) {
		lines = append(lines, Line{Time: c.State.Terminated.FinishedAt.Time, Source: "log", Text: last})
	}
	exit := fmt.Sprintf("container %s exited %d", c.Name, c.State.Terminated.ExitCode)
	switch {
	case p.shown():
	case p.stale:
		return &finding{
			cause: StaleNetworkStatus, lines: append(lines, s.lostLines()...), at: s.ranAt(), open: s.fresh(),
			message: s.who() + ": " + exit + "; its attachment is shown for an earlier sandbox only",
		}
	case p.bare:
		return s.unaddressed(p, lines)
	case !s.multusRan() && (s.e.Looked(evidence.Events) || said.fault == ""):
		return s.notInChain(lines, exit+", and")
	}
	f := &finding{cause: cmp.Or(said.fault, GuardFailed), lines: lines, at: s.ranAt(), names: said.names}
	f.open = !p.shown() && s.fresh()
	f.message = fmt.Sprintf("%s: %s%s", s.who(), exit, colon(cmp.Or(said.text, firstLine(c.State.Terminated.Message))))
	if !p.shown() {
		f.message += "; nothing shows " + s.wantedText() + " attached"
	}
	return f
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// stranded is rule 7: kubelet never builds a second sandbox for a Pod that must
// not restart once a container of it was made (computePodActions). Shown by a
// container made, none that runs or ended, and a sandbox that is not ready,
// after a reboot or for longer than making one takes.
func stranded(s *scene) *finding {
	made := s.containerMadeAt()
	if s.pod.Spec.RestartPolicy != corev1.RestartPolicyNever || made.IsZero() || s.running() || s.rebuilding(made) {
		return nil
	}
	ready := conditionOf(s.pod, corev1.PodReadyToStartContainers)
	how := ""
	switch {
	case isTrue(ready):
		return nil
	case s.ev.rebooted.After(made):
		how = "its node was rebooted at " + clock(s.ev.rebooted)
	case isFalse(ready) && s.now.Sub(made) >= RepeatAfter:
		how = "its sandbox is gone"
	default:
		return nil
	}
	return &finding{
		cause: NeverPodStranded, lines: append(eventLines(s.ev.started), s.lostLines()...),
		message: fmt.Sprintf("%s: %s after a container had been made; with restartPolicy Never it gets no other sandbox", s.who(), how),
	}
}

// rebuilding reports that kubelet makes another sandbox after all.
func (s *scene) rebuilding(made time.Time) bool {
	return s.ev.changed.After(made) || slices.ContainsFunc(s.ev.sandbox, func(ev *corev1.Event) bool {
		return !isStatusRead(ev) && evidence.EventTime(ev).After(made)
	})
}

// containerMadeAt is when a container of a Pod that did not finish was last
// made; zero where none was.
func (s *scene) containerMadeAt() time.Time {
	at := s.ranAt()
	for _, ev := range s.ev.started {
		at = later(at, evidence.EventTime(ev))
	}
	return at
}
