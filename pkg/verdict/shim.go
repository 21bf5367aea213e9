package verdict

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// shimFault reads what the shim says when the daemon did not answer; why it did
// not, the daemon's Pod tells.
func (s *scene) shimFault(text string) *finding {
	f := s.noDaemon(text)
	f.lines = append(f.lines, s.daemonLines()...)
	return f
}

// isNoDaemon matches the shim's own failures to talk to the daemon: no socket,
// nobody behind it, or its 60 s of waiting over.
func isNoDaemon(text string) bool {
	if strings.Contains(text, "dial unix") {
		return !strings.Contains(text, "permission denied")
	}
	return strings.Contains(text, "timed out waiting for the condition") ||
		strings.Contains(text, "failed to send CNI request") ||
		strings.Contains(text, "context deadline exceeded")
}

func (s *scene) noDaemon(text string) *finding {
	daemon := s.e.DaemonPod(s.node)
	if daemon == nil {
		return &finding{cause: DaemonUnreachable, message: s.who() + ": the shim found no daemon: " + firstLine(text)}
	}
	if f := s.daemonFault(daemon); f != nil {
		f.message = s.who() + ": the shim found no daemon: " + f.message
		return f
	}
	if skew := s.versionSkew(daemon, text); skew != "" {
		return &finding{cause: ShimDaemonVersionSkew, message: s.who() + ": " + skew}
	}
	return &finding{
		cause:   DaemonUnreachable,
		message: fmt.Sprintf("%s: the shim found no daemon (Pod %s): %s", s.who(), daemon.Name, firstLine(text)),
	}
}

// multusGone reports that the DaemonSet was looked for and is not there, nor
// any Pod of it.
func (s *scene) multusGone() bool {
	for i := range s.e.DaemonSets {
		if evidence.IsMultus(&s.e.DaemonSets[i]) {
			return false // under a name that was not expected
		}
	}
	if !s.e.Looked(evidence.DaemonSets) {
		return false
	}
	if s.e.DaemonSet.Name == "" {
		// Which one to look for is not known: only that there is none at all tells.
		return len(s.e.DaemonSets) == 0 && s.e.Looked(evidence.Pods) && !s.runsMultus()
	}
	return s.e.MultusDaemonSet() == nil && len(s.e.DaemonPods("")) == 0
}

// runsMultus reports a Pod that carries Multus, whatever made it.
func (s *scene) runsMultus() bool {
	return slices.ContainsFunc(s.e.Pods, func(p corev1.Pod) bool { return versionOf(p.Spec.Containers) != "" })
}

// versionSkew tells a daemon that runs and is Ready, and still does not answer
// the shim that an installer of another image put on the node.
func (s *scene) versionSkew(daemon *corev1.Pod, text string) string {
	if !strings.Contains(text, "timed out waiting for the condition") || s.daemonContainerUnsteady(daemon, s.now) != "" {
		return ""
	}
	if line := s.daemonLogLine(daemon, isUnknownRequest); line != "" {
		return fmt.Sprintf("daemon Pod %s does not know what its shim asks: %s", daemon.Name, line)
	}
	installer, main := versionOf(daemon.Spec.InitContainers), versionOf(daemon.Spec.Containers)
	if installer == "" || main == "" || installer == main {
		return ""
	}
	return fmt.Sprintf("daemon Pod %s is Ready, but its shim is of %s and the daemon of %s", daemon.Name, installer, main)
}

// isUnknownRequest matches the daemon's note of a request it has no handler
// for: the shim of v4.3.1 asks for /readyz, older ones for /healthz.
func isUnknownRequest(line string) bool {
	return strings.Contains(line, "not found") && containsAny(line, []string{"/readyz", "/healthz"})
}

// isUnknownToDaemon matches the daemon's HTTP server, and nobody behind it, that
// answers the shim: it has no handler for what the shim asks.
func isUnknownToDaemon(f *multus.Failure) bool {
	return f.Innermost() == multus.LayerDaemon && f.Text == "404 page not found"
}

// daemonLogLine gives the last line of the daemon's log that matches.
func (s *scene) daemonLogLine(daemon *corev1.Pod, match func(string) bool) string {
	found := ""
	for _, l := range s.e.PodLogs {
		if l.Pod.UID != daemon.UID {
			continue
		}
		for line := range strings.SplitSeq(l.Log, "\n") {
			if plain := multus.Plain(line); match(plain) {
				found = strings.TrimSpace(plain)
			}
		}
	}
	return found
}

// versionOf gives the image of the first container that carries Multus.
func versionOf(containers []corev1.Container) string {
	for _, c := range containers {
		if strings.Contains(path.Base(c.Image), "multus") {
			return c.Image
		}
	}
	return ""
}

// daemonFault reads a daemon Pod that does not do its work; nil where its
// status tells of none.
func (s *scene) daemonFault(daemon *corev1.Pod) *finding {
	if f := installFault(daemon); f != nil {
		return f
	}
	cs := evidence.DaemonStatus(daemon)
	if cs == nil {
		return nil
	}
	t := lastEnd(cs)
	if f := s.missesPrimaryConf(daemon, cs); f != nil {
		return f
	}
	backOff := cs.State.Waiting != nil && cs.State.Waiting.Reason == "CrashLoopBackOff"
	if !backOff && !ShortLived(t) {
		return nil
	}
	loops := backOff || t != nil && t.ExitCode != 0 && s.betweenCrashes(daemon, cs)
	if t != nil && t.Reason == "OOMKilled" && (loops || cs.RestartCount >= minRestarts && !s.recovered(daemon, cs)) {
		return &finding{
			cause: DaemonOOM, lines: []Line{terminatedLine(cs.Name, t)}, seen: minRestarts,
			message: fmt.Sprintf("daemon Pod %s was killed for memory, %d restarts", daemon.Name, cs.RestartCount),
		}
	}
	if !loops {
		return nil
	}
	f := &finding{
		cause:   crashCause(t),
		message: fmt.Sprintf("daemon Pod %s crash-loops, %d restarts", daemon.Name, cs.RestartCount),
	}
	if t != nil {
		f.lines = []Line{terminatedLine(cs.Name, t)}
		f.message += colon(firstLine(t.Message))
	}
	return f
}

// missesPrimaryConf is a daemon that looks for the primary conf in a folder that
// the runtime does not read.
func (s *scene) missesPrimaryConf(daemon *corev1.Pod, cs *corev1.ContainerStatus) *finding {
	node := s.e.Node(daemon.Spec.NodeName)
	line := MissesPrimaryConf(*cs, node, s.now)
	if line == "" {
		return nil
	}
	if _, written := s.e.ConfWritten(daemon, cs.Name); written {
		return nil
	}
	return &finding{
		cause: MultusConfWrongDir, lines: []Line{terminatedLine(cs.Name, lastEnd(cs))}, seen: minRestarts,
		message: fmt.Sprintf("daemon Pod %s finds no conf of the primary network where it looks, though node %s has one: %s", daemon.Name, node.Name, line),
	}
}

// MissesPrimaryConf gives the last words of a daemon that ended because it found
// no conf of the primary network; empty where that tells nothing about the folder
// it looks in:
//
//   - the node got its network only while the daemon waited: it came too early,
//     and the next one finds the conf;
//   - the next one has run for longer than they wait: it has found it.
func MissesPrimaryConf(status corev1.ContainerStatus, node *corev1.Node, now time.Time) string {
	last, running := lastEnd(&status), status.State.Running
	if last == nil || node == nil || running != nil && now.Sub(running.StartedAt.Time) >= SteadyAfter {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && c.LastTransitionTime.Before(&last.StartedAt) {
			return multus.MissesPrimaryConf(last.Message)
		}
	}
	return ""
}

// betweenCrashes: a crash loop shows its name only while kubelet waits; between
// its waits the container has just started or just ended, and is not Ready.
func (s *scene) betweenCrashes(daemon *corev1.Pod, cs *corev1.ContainerStatus) bool {
	if cs.RestartCount < minRestarts || !isFalse(conditionOf(daemon, corev1.PodReady)) {
		return false
	}
	r := cs.State.Running
	return cs.State.Terminated != nil || r != nil && s.now.Sub(r.StartedAt.Time) < StuckAfter
}

// recovered reports a daemon that has been up for long enough since its last
// end: what ended it then is history.
func (s *scene) recovered(daemon *corev1.Pod, cs *corev1.ContainerStatus) bool {
	return cs.State.Running != nil && s.now.Sub(cs.State.Running.StartedAt.Time) >= StuckAfter &&
		!isFalse(conditionOf(daemon, corev1.PodReady))
}

// ShortLived reports that a container's last run was too short for a steady one:
// kubelet's count of restarts is of a whole life, and says nothing of how dense
// they were. Of a run whose start is not told it cannot be said to have been long.
func ShortLived(t *corev1.ContainerStateTerminated) bool {
	return t == nil || t.StartedAt.IsZero() || t.FinishedAt.Sub(t.StartedAt.Time) < SteadyAfter
}

// crashCause tells a daemon that refuses its configuration from one that cannot
// use the API or is killed. A broken configuration may leave no more than a
// stack trace, so that an exit of its own without another reason counts as one.
func crashCause(t *corev1.ContainerStateTerminated) Cause {
	if t == nil {
		return RolloutStuck
	}
	if cause := apiRefusal(t.Message); cause != "" {
		return cause
	}
	const bySignal = 128
	if t.ExitCode > bySignal || neverRan(t.Reason) {
		return RolloutStuck
	}
	return MultusConfigRejected
}

// minRestarts is how often a daemon must have been killed for "again and
// again": one kill may be an accident.
const minRestarts = 2

// lastEnd is how a container ended last.
func lastEnd(cs *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if cs.State.Terminated != nil {
		return cs.State.Terminated
	}
	return cs.LastTerminationState.Terminated
}

// installFault is an init container that failed and is tried again.
func installFault(daemon *corev1.Pod) *finding {
	for i := range daemon.Status.InitContainerStatuses {
		cs := &daemon.Status.InitContainerStatuses[i]
		t := lastEnd(cs)
		waits := cs.State.Waiting != nil && (cs.State.Waiting.Reason == "CrashLoopBackOff" || isConfigReason(cs.State.Waiting.Reason))
		if (t == nil || t.ExitCode == 0) && !waits {
			continue
		}
		if t != nil && t.ExitCode == 0 || cs.State.Running != nil && cs.RestartCount < minRestarts {
			continue
		}
		f := &finding{
			cause:   MultusInstallFailed,
			message: fmt.Sprintf("installer %s of daemon Pod %s does not finish, %d restarts", cs.Name, daemon.Name, cs.RestartCount),
		}
		if t != nil {
			f.lines = []Line{terminatedLine(cs.Name, t)}
			f.message += colon(firstLine(t.Message))
		}
		return f
	}
	return nil
}
