package scriptednode

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Script is what the node does with one Pod, from its binding on. When the
// steps are done the Pod stays as it is until it is deleted.
type Script struct {
	Name  string
	Steps []Step
	// Teardown is what happens when the Pod is deleted.
	Teardown Teardown
}

// Step is one thing that happens, After more than the node's own pace asks for.
type Step struct {
	After time.Duration
	Do    Action
}

// Action is what a step does. The set is closed: Event and Status are the ways
// to do what no other action does.
type Action interface {
	play(ctx context.Context, a *attempt) error
}

// Teardown says how a deleted Pod ends.
type Teardown struct {
	// After comes on top of the pace.
	After time.Duration
	// Stuck, if not empty, is the error with which every try to take the
	// sandbox down fails, until Node.Unstick.
	Stuck string
}

// Unschedulable leaves the Pod unbound, with the scheduler's reason. It must be
// the first step and the last.
type Unschedulable struct{ Message string }

// Sandbox makes the Pod's sandbox with the networks it asks for. A Fault makes
// the first Times tries fail (0: all of them), Pace.Retry apart.
//
// What the node's CNI conf and Multus daemon are like at each try comes first:
// without the conf the sandbox is made by the primary network alone, and with
// the conf but no daemon the shim waits and fails.
type Sandbox struct {
	Fault *Fault
	Times int
	// Same keeps the sandbox id over all tries, so that the failures are one
	// event with a count. Without it each try has an id and thereby a message
	// of its own, as on containerd.
	Same bool
}

// PrimarySandbox makes the sandbox by the primary network alone, whatever the
// node's conf is.
type PrimarySandbox struct{}

// Pull fails to pull the image of a container: of the guard, or of the main
// container. The Pod stays in the back-off.
type Pull struct{ Main bool }

// Mount fails to mount a volume, Times times (0: for ever).
type Mount struct {
	Volume, Err string
	Times       int
}

// Guard runs the Pod's first init container. In a sandbox without Multus it
// waits for its interface and fails, whatever it was asked to do.
type Guard struct {
	Exit int32
	// Message is the termination message; empty means the guard script's own.
	Message string
	// Log is printed before the message.
	Log []string
	// For replaces Pace.Guard.
	For time.Duration
}

// Main runs the Pod's other init containers and its containers. They end with
// Exit, or, if Runs, stay running and ready.
type Main struct {
	Exit    int32
	Message string
	Log     []string
	Runs    bool
}

// Event emits an event of the kubelet about the Pod.
type Event struct{ Type, Reason, Message string }

// Status changes the Pod's status beyond what the other actions can say. The
// next action that writes the status may undo it.
type Status struct{ Change func(*corev1.PodStatus) }

// Plan gives each attempt its script: the first Pod UID of the canary's name
// the first, and so on. The last one repeats; an empty plan always passes.
type Plan []Script

// For is the script of the nth attempt, counted from 1.
func (p Plan) For(attempt int) Script {
	if len(p) == 0 {
		return Pass()
	}
	return p[min(max(attempt, 1), len(p))-1]
}

// unbound tells whether the script leaves the Pod to the scheduler.
func (s Script) unbound() (Unschedulable, bool) {
	if len(s.Steps) == 0 {
		return Unschedulable{}, false
	}
	u, ok := s.Steps[0].Do.(Unschedulable)
	return u, ok
}
