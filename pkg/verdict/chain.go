package verdict

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// SteadyAfter is how long a daemon container must have run without restart to
// be taken for ready: its own waits (120 s for a primary conf, 60 s for its
// API) end by then.
const SteadyAfter = 3 * time.Minute

// notInChain judges a Pod that ran without any sign of Multus: no event and no
// annotation. How it came to that decides between a fault and a window.
func (s *scene) notInChain(lines []Line, but string) *finding {
	open := s.fresh()
	switch {
	case !s.e.Looked(evidence.Events):
		return &finding{
			cause: EvidenceIncomplete, lines: lines, at: s.ranAt(),
			message: s.who() + ": " + but + " nothing shows " + s.wantedText() + " attached, and its events were not looked at",
		}
	case !s.eventsSurvive():
		return &finding{
			cause: EventsExpired, lines: lines, at: s.ranAt(),
			message: fmt.Sprintf("%s: its events from %s are gone, so that the cause can no longer be told", s.who(), s.sandboxAt().UTC().Format(time.RFC3339)),
		}
	case !s.ev.any:
		return &finding{
			cause: EvidenceIncomplete, lines: lines, at: s.ranAt(), open: open,
			message: s.who() + ": " + but + " there is not one event of it, so that the cause cannot be told",
		}
	}
	f := s.chainFault()
	f.lines = append(append(f.lines, lines...), s.daemonLines()...)
	f.at, f.open = s.ranAt(), open
	f.message = fmt.Sprintf("%s: %s it came up on the primary network alone, without Multus: %s", s.who(), but, f.message)
	return f
}

// earlyGrace is how long a first container must have run before the absence of
// any sign of Multus counts while it still runs.
const earlyGrace = 10 * time.Second

// runsWithoutMultus tells of a Pod out of Multus' hands before its guard gives
// up. Multus writes the annotation before the sandbox is done, so that a Pod
// whose first container runs either has it by then or never gets it.
func (s *scene) runsWithoutMultus() *finding {
	at := s.ranAt()
	if at.IsZero() || s.now.Sub(at) < earlyGrace || s.multusRan() || !s.e.Looked(evidence.Events) || !s.ev.any || !s.eventsSurvive() {
		return nil
	}
	return s.notInChain(s.containerLines(), "its containers still run, but")
}

// chainFault finds why Multus did not run: the conf files where they are known,
// then whether the daemon was changing when the sandbox was made.
func (s *scene) chainFault() *finding {
	if f := s.confFault(); f != nil {
		return f
	}
	if ds := s.e.MultusDaemonSet(); ds != nil && ds.Status.ObservedGeneration >= ds.Generation && ds.Status.DesiredNumberScheduled == 0 {
		return &finding{cause: RolloutZeroDesired, message: s.daemonSetName() + " wants no Pod on any node"}
	}
	if s.pod.Status.PodIP == "0.0.0.0" {
		// v4.2.1 and later answer so for a Pod that the daemon does not find.
		return &finding{cause: DaemonInformerStale, message: "the daemon did not find the Pod and gave it no network at all (podIP 0.0.0.0)"}
	}
	if why := s.daemonUnsteady(); why != "" {
		return &finding{cause: MultusNotInChain, outcome: Inconclusive, message: why}
	}
	return &finding{cause: MultusNotInChain, outcome: Fail, message: s.steadyText()}
}

func (s *scene) steadyText() string {
	daemon := s.e.DaemonPod(s.node)
	if daemon == nil {
		return s.daemonSetName() + " is not there"
	}
	return fmt.Sprintf("daemon Pod %s was steady then, so that its conf is missing or not the first one", daemon.Name)
}

// daemonUnsteady tells why the daemon on the Pod's node may not have been
// usable when the sandbox was made; empty where it had been steady. Steady
// means, from the evidence alone: Multus was looked for and is not there at
// all, or the node has one daemon Pod, not going, of the newest revision, Ready,
// whose container had run for SteadyAfter without restart before the sandbox
// can have been made, or whose log shows that its conf was written before.
func (s *scene) daemonUnsteady() string {
	ds := s.e.MultusDaemonSet()
	switch {
	case ds == nil && s.multusGone():
		return ""
	case ds == nil:
		return "whether the daemon was steady then is not known"
	case ds.Status.ObservedGeneration < ds.Generation:
		return s.daemonSetName() + " has a change that its controller has not seen yet"
	}
	for _, p := range s.e.DaemonPods(s.node) {
		if why := s.daemonPodGoing(p, s.sandboxAt()); why != "" {
			return why
		}
	}
	daemon := s.e.DaemonPod(s.node)
	if daemon == nil {
		if !s.e.Looked(evidence.Pods) {
			return "whether the daemon was steady then is not known"
		}
		return "no daemon Pod is on its node"
	}
	if rev := evidence.RevisionHash(s.e.LatestRevision()); rev != "" {
		if hash := daemon.Labels["controller-revision-hash"]; hash != "" && hash != rev {
			return fmt.Sprintf("daemon Pod %s is of an old revision that is being replaced", daemon.Name)
		}
	}
	return s.daemonContainerUnsteady(daemon, s.sandboxNotBefore())
}

// daemonPodGoing tells of a daemon Pod whose deletion had been asked for when
// the sandbox was made.
func (s *scene) daemonPodGoing(p *corev1.Pod, at time.Time) string {
	if p.DeletionTimestamp == nil {
		return ""
	}
	asked := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		asked = asked.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	if asked.After(at.Add(EventGrace)) {
		return ""
	}
	return fmt.Sprintf("daemon Pod %s was being stopped then", p.Name)
}

// daemonContainerUnsteady tells why a daemon's container may not have been
// usable at a time.
func (s *scene) daemonContainerUnsteady(daemon *corev1.Pod, at time.Time) string {
	cs := evidence.DaemonStatus(daemon)
	switch {
	case cs == nil || cs.State.Running == nil:
		return fmt.Sprintf("the container of daemon Pod %s is not running", daemon.Name)
	case isFalse(conditionOf(daemon, corev1.PodReady)):
		return fmt.Sprintf("daemon Pod %s is not Ready", daemon.Name)
	}
	started := cs.State.Running.StartedAt.Time
	if started.IsZero() {
		return fmt.Sprintf("since when daemon Pod %s runs is not known", daemon.Name)
	}
	if s.confWrittenBefore(cs) {
		return ""
	}
	if ready, _ := s.e.ConfWritten(daemon, cs.Name); !ready.IsZero() {
		// The log's times are whole seconds: the same second proves nothing.
		if ready.Before(at) {
			return ""
		}
		return fmt.Sprintf("daemon Pod %s wrote its conf at %s only, the canary was started at %s", daemon.Name, clock(ready), clock(at))
	}
	switch {
	case !started.Before(at):
		return fmt.Sprintf("daemon Pod %s started at %s only, the canary at %s", daemon.Name, clock(started), clock(at))
	case at.Sub(started) < SteadyAfter:
		return fmt.Sprintf("daemon Pod %s had started only %s before the canary", daemon.Name, at.Sub(started).Round(time.Second))
	}
	return ""
}

// confWrittenBefore reports whether the run that created the canary had read in
// this container's log that the conf was written, before it created the canary:
// an order that needs no clock.
func (s *scene) confWrittenBefore(cs *corev1.ContainerStatus) bool {
	before := s.e.Before
	return before != nil && before.DaemonConfWritten && before.DaemonContainerID != "" && before.DaemonContainerID == cs.ContainerID
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

func (s *scene) daemonLines() []Line {
	var lines []Line
	for _, p := range s.e.DaemonPods(s.node) {
		if cs := evidence.DaemonStatus(p); cs != nil && cs.State.Running != nil {
			lines = append(lines, Line{
				Time: cs.State.Running.StartedAt.Time, Source: "daemon",
				Text: fmt.Sprintf("daemon Pod %s: container %s started (restarts %d)", p.Name, cs.Name, cs.RestartCount),
			})
		}
	}
	return lines
}
