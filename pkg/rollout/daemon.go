package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// crashLooping is from how many restarts on a waiting daemon is taken for one
// that will not come by itself, if it did not run for long either: the count is
// that of its whole life. Below it a restart is a passing thing.
const crashLooping = 2

// brokenDaemon names a daemon that waiting will not mend.
func brokenDaemon(o Observation) (State, bool) {
	for _, pod := range o.onNode() {
		for _, status := range pod.Status.InitContainerStatuses {
			if text, cause, ok := brokenContainer(status, verdict.MultusInstallFailed); ok {
				return o.broken(pod, cause, fmt.Sprintf("init container %s of daemon Pod %s %s", status.Name, pod.Name, text)), true
			}
		}
		for _, status := range pod.Status.ContainerStatuses {
			if line := o.missesPrimaryConf(status); line != "" {
				return o.broken(pod, verdict.MultusConfWrongDir, fmt.Sprintf("daemon Pod %s finds no conf of the primary network where it looks, though node %s has one: %s", pod.Name, o.Node.Name, line)), true
			}
			if text, cause, ok := brokenContainer(status, verdict.RolloutStuck); ok {
				return o.broken(pod, cause, fmt.Sprintf("container %s of daemon Pod %s %s", status.Name, pod.Name, text)), true
			}
		}
	}
	return State{}, false
}

func (o Observation) broken(pod *corev1.Pod, cause verdict.Cause, message string) State {
	return State{Phase: Blocked, Cause: cause, Message: message, Daemons: []*corev1.Pod{pod}}
}

// missesPrimaryConf tells of a daemon that keeps looking in an empty folder; the
// rule is the judge's.
func (o Observation) missesPrimaryConf(status corev1.ContainerStatus) string {
	return verdict.MissesPrimaryConf(status, o.Node, o.Now)
}

// brokenContainer reports a container that cannot start or does not stay up,
// with the cause a crash of it means.
func brokenContainer(status corev1.ContainerStatus, crash verdict.Cause) (text string, cause verdict.Cause, broken bool) {
	last := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	waiting := status.State.Waiting
	dense := waiting != nil && waiting.Reason == "CrashLoopBackOff" || verdict.ShortLived(last)
	restarting := status.RestartCount >= crashLooping && status.State.Running == nil && dense
	switch {
	case waiting != nil && imageTrouble(waiting.Reason):
		return fmt.Sprintf("cannot have its image: %s %s", waiting.Reason, waiting.Message), verdict.ImagePull, true
	case restarting && last != nil && last.Reason == "OOMKilled":
		return fmt.Sprintf("was killed for memory (OOMKilled) and restarted %d times", status.RestartCount), verdict.DaemonOOM, true
	case restarting && last != nil && last.ExitCode != 0:
		return fmt.Sprintf("crash-loops: exit code %d, %d restarts%s", last.ExitCode, status.RestartCount, firstLine(last.Message)), crash, true
	}
	return "", "", false
}

// Unsteady tells of a daemon that is Ready for the moment only: it has crashed
// again and again, and has not run since for as long as a steady one does. Empty
// for all others.
func Unsteady(pod *corev1.Pod, now time.Time) string {
	for _, status := range pod.Status.ContainerStatuses {
		last, running := status.LastTerminationState.Terminated, status.State.Running
		if last == nil || last.ExitCode == 0 || !verdict.ShortLived(last) || running == nil || status.RestartCount < crashLooping || now.Sub(running.StartedAt.Time) >= verdict.SteadyAfter {
			continue
		}
		return fmt.Sprintf("container %s of daemon Pod %s crash-loops, and runs for the moment: exit code %d, %d restarts%s",
			status.Name, pod.Name, last.ExitCode, status.RestartCount, firstLine(last.Message))
	}
	return ""
}

// imageTrouble is what kubelet says once it has tried in vain more than once, or
// can never succeed: a first ErrImagePull is tried again after ten seconds.
func imageTrouble(reason string) bool {
	return slices.Contains([]string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}, reason)
}

// firstLine is the first line of a termination message, which may be a stack.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}

// podDoing is why a Pod is not Ready, in a word or two.
func podDoing(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			return status.Name + ": " + status.State.Waiting.Reason
		}
		if status.State.Terminated != nil && status.State.Terminated.ExitCode != 0 {
			return fmt.Sprintf("%s: exit code %d", status.Name, status.State.Terminated.ExitCode)
		}
	}
	return string(pod.Status.Phase)
}

func conditionIs(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) bool {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func selectorText(ds *appsv1.DaemonSet) string {
	selector := ds.Spec.Template.Spec.NodeSelector
	if len(selector) == 0 {
		return "<none>"
	}
	var pairs []string
	for key, value := range selector {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
