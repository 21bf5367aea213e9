package scriptednode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runState is what the kubelet knows about one Pod, from which its status is
// made. It belongs to the one goroutine that plays the Pod.
type runState struct {
	startedAt time.Time
	// sandbox is true while a sandbox with a network exists.
	sandbox bool
	podIP   string
	// stopping keeps the phase where it was: kubelet reports a terminal phase
	// only when containers and sandbox are down.
	stopping   bool
	containers map[string]*containerState
}

// containerState is one container's part of a runState.
type containerState struct {
	state, last corev1.ContainerState
	restarts    int32
	id          string
	// unready is a running container whose probe fails.
	unready bool
}

// newRunState is a Pod that was just admitted.
func newRunState(spec *corev1.PodSpec, at time.Time) *runState {
	s := &runState{startedAt: at, containers: map[string]*containerState{}}
	// kubelet's default waiting reason depends on whether there are init containers.
	reason := "ContainerCreating"
	if len(spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s.containers[c.Name] = &containerState{state: waiting(reason, "")}
	}
	return s
}

// adopt takes over the state of a Pod that was running before this node was
// watched.
func (s *runState) adopt(status *corev1.PodStatus) {
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		s.containers[c.Name] = &containerState{state: c.State, last: c.LastTerminationState, restarts: c.RestartCount, id: c.ContainerID}
	}
	if status.StartTime != nil {
		s.startedAt = status.StartTime.Time
	}
	s.podIP = status.PodIP
	s.sandbox = status.Phase == corev1.PodRunning
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// waitingReasons are why each container has no log yet.
func (s *runState) waitingReasons() map[string]string {
	out := map[string]string{}
	for name, c := range s.containers {
		out[name] = ""
		if c.state.Waiting != nil {
			out[name] = c.state.Waiting.Reason
		}
	}
	return out
}

// run marks a container as running. An instance that ran before becomes the
// last one, and the restart is counted.
func (s *runState) run(name string, uid types.UID, at time.Time) {
	c := s.containers[name]
	if c.id != "" {
		c.restarts++
	}
	if c.state.Terminated != nil {
		c.last = c.state
	}
	c.id = "containerd://" + hexOf(string(uid), name, fmt.Sprint(c.restarts))
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
}

// exit marks a running container as terminated.
func (s *runState) exit(name string, code int32, reason, message string, at time.Time) {
	c := s.containers[name]
	if reason == "" {
		reason = "Completed"
		if code != 0 {
			reason = "Error"
		}
	}
	started := metav1.NewTime(at)
	if c.state.Running != nil {
		started = c.state.Running.StartedAt
	}
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message,
		StartedAt: started, FinishedAt: metav1.NewTime(at), ContainerID: c.id,
	}}
}

// backoff turns a terminated container into one that waits for its next start.
func (s *runState) backoff(name, message string) {
	c := s.containers[name]
	c.last = c.state
	c.state = waiting("CrashLoopBackOff", message)
}

// render is the status that the kubelet would report.
func (s *runState) render(pod *corev1.Pod, hostIP string, at time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.InitContainerStatuses = s.statuses(pod.Spec.InitContainers, true)
	status.ContainerStatuses = s.statuses(pod.Spec.Containers, false)
	if phase := s.phase(&pod.Spec); !s.stopping || !terminal(phase) {
		status.Phase = phase
	}
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = s.podIP, nil
	if s.podIP != "" {
		status.PodIPs = []corev1.PodIP{{IP: s.podIP}}
	}
	start := metav1.NewTime(s.startedAt)
	status.StartTime = &start
	status.ObservedGeneration = pod.Generation
	for _, c := range s.conditions(&pod.Spec, status.Phase) {
		c.ObservedGeneration = pod.Generation
		setCondition(&status, c, at)
	}
	return status
}

func (s *runState) statuses(specs []corev1.Container, isInit bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, spec := range specs {
		c := s.containers[spec.Name]
		status := corev1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, State: c.state, LastTerminationState: c.last,
			RestartCount: c.restarts, ContainerID: c.id, Started: new(c.state.Running != nil),
			Ready: c.ready(),
		}
		if isInit {
			status.Ready = c.succeeded()
		}
		if c.id != "" {
			status.ImageID = spec.Image + "@sha256:" + hexOf("image", spec.Image)
		}
		out = append(out, status)
	}
	return out
}

func (c *containerState) succeeded() bool {
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

func (c *containerState) ready() bool { return c.state.Running != nil && !c.unready }

// phase follows kubelet's getPhase for Pods without restartable init containers.
func (s *runState) phase(spec *corev1.PodSpec) corev1.PodPhase {
	for _, init := range spec.InitContainers {
		c := s.containers[init.Name]
		if c.succeeded() {
			continue
		}
		if c.state.Terminated != nil && spec.RestartPolicy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	var running, waiting, failed int
	for _, main := range spec.Containers {
		switch c := s.containers[main.Name]; {
		case c.state.Running != nil, c.last.Terminated != nil:
			running++
		case c.state.Terminated == nil:
			waiting++
		case spec.RestartPolicy == corev1.RestartPolicyAlways:
			running++
		case c.state.Terminated.ExitCode != 0:
			failed++
		}
	}
	switch {
	case waiting > 0:
		return corev1.PodPending
	case running > 0:
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// conditions follow kubelet's status package: finished Pods say so as the
// reason of every condition.
func (s *runState) conditions(spec *corev1.PodSpec, phase corev1.PodPhase) []corev1.PodCondition {
	condition := func(kind corev1.PodConditionType, ok bool, reason, message string) corev1.PodCondition {
		if ok {
			return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
		}
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	}
	initialized := s.pending(spec.InitContainers, (*containerState).succeeded)
	unready := s.pending(spec.Containers, (*containerState).ready)
	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	switch phase {
	case corev1.PodFailed:
		reason, message = "PodFailed", ""
	case corev1.PodSucceeded:
		reason, message = "PodCompleted", ""
	default:
	}
	ready := phase == corev1.PodRunning && len(unready) == 0
	out := []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, s.sandbox, "PodSandboxNotReady", ""),
		condition(corev1.PodInitialized, len(initialized) == 0, "ContainersNotInitialized",
			fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(initialized, " "))),
		condition(corev1.PodReady, ready, reason, message),
		condition(corev1.ContainersReady, ready, reason, message),
		condition(corev1.PodScheduled, true, "", ""),
	}
	if phase == corev1.PodSucceeded {
		out[1].Reason = "PodCompleted"
	}
	return out
}

// pending names the containers for which done does not hold yet.
func (s *runState) pending(specs []corev1.Container, done func(*containerState) bool) []string {
	var names []string
	for _, spec := range specs {
		if !done(s.containers[spec.Name]) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// setCondition keeps the transition time of a condition whose status stays.
func setCondition(status *corev1.PodStatus, c corev1.PodCondition, at time.Time) {
	c.LastTransitionTime = metav1.NewTime(at)
	for i := range status.Conditions {
		if old := &status.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	status.Conditions = append(status.Conditions, c)
}
