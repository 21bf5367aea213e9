package rollout

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// ReadyByAge is how long a daemon container must have run without a restart to
// be ready without its log saying so: its own waits (120 s for the primary
// conf, 60 s for its API; multus-cni v4.3.0) have ended by then.
const ReadyByAge = 3 * time.Minute

// How attach readiness was known.
const (
	ByLog    = "log"
	ByAge    = "age"
	BySettle = "settle"
)

// DaemonLog is what was read of a daemon container's log.
type DaemonLog struct {
	// Container is the container instance (containerID) the log belongs to.
	Container string
	multus.AttachState
	// Unreadable says why the log cannot be read; empty while it can.
	Unreadable string
	// Read is true once the log up to now was read.
	Read bool
}

// Attach is whether a Pod made on a daemon's node now would be attached.
type Attach struct {
	Ready bool
	// By is ByLog, ByAge or BySettle once Ready.
	By string
	// Wait is how long to wait before looking again where only time can tell;
	// zero where a change of the log or the Pod will.
	Wait    time.Duration
	Message string
	// Cause is what to call it where it never gets ready.
	Cause verdict.Cause
}

// AttachReadiness judges one daemon Pod that Progress called done. Its rules,
// in order:
//
//   - its log, read from the container's start, says that the conf was written;
//   - it says the opposite: an empty conf, or that the daemon is going;
//   - the container has run for ReadyByAge without a restart;
//   - the log can be read and has begun to tell: wait for it;
//   - the log cannot tell: wait settle after Ready.
func AttachReadiness(pod *corev1.Pod, log DaemonLog, now time.Time, settle time.Duration) Attach {
	status, ok := runningContainer(pod)
	if !ok {
		return Attach{Message: fmt.Sprintf("no container of daemon Pod %s is running", pod.Name)}
	}
	current := log.Container == status.ContainerID
	if current && log.Ready() {
		return Attach{Ready: true, By: ByLog, Message: fmt.Sprintf("daemon Pod %s has written its CNI conf", pod.Name)}
	}
	if current && log.EmptyConf {
		return Attach{Cause: verdict.CNIConfEmpty, Message: fmt.Sprintf("daemon Pod %s wrote an empty CNI conf: it could not read the primary network's", pod.Name)}
	}
	if current && log.Stopping {
		return Attach{Message: fmt.Sprintf("daemon Pod %s is stopping", pod.Name)}
	}
	age := now.Sub(status.State.Running.StartedAt.Time)
	if age >= ReadyByAge {
		return Attach{Ready: true, By: ByAge, Message: fmt.Sprintf("daemon Pod %s has run for %s without a restart", pod.Name, age.Round(time.Second))}
	}
	return undecided(pod, log, current, now, settle, age)
}

// undecided is a young daemon whose log has not said that it is ready.
func undecided(pod *corev1.Pod, log DaemonLog, current bool, now time.Time, settle, age time.Duration) Attach {
	switch {
	case !current || (!log.Read && log.Unreadable == ""):
		return Attach{Message: fmt.Sprintf("reading the log of daemon Pod %s", pod.Name)}
	case log.Known():
		return Attach{
			Wait:    ReadyByAge - age,
			Message: fmt.Sprintf("daemon Pod %s is Ready, but has not written its CNI conf yet", pod.Name),
		}
	}
	why := "its log does not tell (log level below verbose, or a thin plugin)"
	if log.Unreadable != "" {
		why = log.Unreadable
	}
	// Where the container came back before its Pod was seen unready, the
	// condition is older than the container.
	since := min(now.Sub(readySince(pod)), age)
	if left := settle - since; left > 0 {
		return Attach{Wait: left, Message: fmt.Sprintf("daemon Pod %s: %s; waiting %s after Ready", pod.Name, why, settle)}
	}
	return Attach{Ready: true, By: BySettle, Message: fmt.Sprintf("daemon Pod %s has been Ready for %s; whether it has written its CNI conf is not known: %s", pod.Name, settle, why)}
}

// runningContainer is the daemon's container, where it runs.
func runningContainer(pod *corev1.Pod) (corev1.ContainerStatus, bool) {
	if status := evidence.DaemonStatus(pod); status != nil && status.State.Running != nil {
		return *status, true
	}
	return corev1.ContainerStatus{}, false
}

// DaemonContainer is the name and the running instance (containerID) of a
// daemon Pod's container, and when it started; empty where it does not run.
func DaemonContainer(pod *corev1.Pod) (name, instance string, started time.Time) {
	status, ok := runningContainer(pod)
	if !ok {
		return "", "", time.Time{}
	}
	return status.Name, status.ContainerID, status.State.Running.StartedAt.Time
}

// readySince is when the Pod last became Ready.
func readySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
