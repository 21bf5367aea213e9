package scriptednode

import "time"

// Pace is how long the node takes for each thing it does. What a script adds
// (Step.After) comes on top.
type Pace struct {
	// Schedule is from seeing an unbound Pod to its binding.
	Schedule time.Duration
	// Sandbox is one CNI ADD, good or bad.
	Sandbox time.Duration
	// Retry is from one failed sandbox, mount or pull to the next try.
	Retry time.Duration
	// Shim is how long multus-shim waits for an absent daemon.
	Shim time.Duration
	// Container is from a container's start to its end, where the script does
	// not say otherwise.
	Container time.Duration
	// Guard is a guard that finds its network.
	Guard time.Duration
	// GuardWait is a guard that waits for a network that never comes.
	GuardWait time.Duration
	// SandboxDown is from a Pod's last container to its terminal phase.
	SandboxDown time.Duration
	// Teardown is from a deletion to the end of a Pod that has a sandbox; Remove
	// is the same for one that has none. A finished Pod is removed by the API
	// server at once.
	Teardown, Remove time.Duration

	// Controller is from a change of the DaemonSet to the controller's answer.
	Controller time.Duration
	// ConfGone is from the daemon's SIGTERM to the removal of its conf.
	ConfGone time.Duration
	// DaemonTeardown is from the daemon Pod's deletion to its end.
	DaemonTeardown time.Duration
	// Installer is each of the daemon Pod's init containers.
	Installer time.Duration
	// Backoff is between two starts of a crashing container.
	Backoff time.Duration
}

// Fast keeps the order of things on a real node and little of the time: for
// tests that run many attempts.
func Fast() Pace {
	return Pace{
		Schedule:       5 * time.Millisecond,
		Sandbox:        20 * time.Millisecond,
		Retry:          150 * time.Millisecond,
		Shim:           600 * time.Millisecond,
		Container:      20 * time.Millisecond,
		Guard:          40 * time.Millisecond,
		GuardWait:      200 * time.Millisecond,
		SandboxDown:    20 * time.Millisecond,
		Teardown:       100 * time.Millisecond,
		Remove:         20 * time.Millisecond,
		Controller:     20 * time.Millisecond,
		ConfGone:       20 * time.Millisecond,
		DaemonTeardown: 100 * time.Millisecond,
		Installer:      20 * time.Millisecond,
		Backoff:        300 * time.Millisecond,
	}
}

// Measured is what a real one-node cluster took: kubelet 1.37, containerd,
// Multus limited to 100m of CPU. Waits of minutes are cut to what a person
// would watch.
func Measured() Pace {
	return Pace{
		Schedule:       20 * time.Millisecond,
		Sandbox:        500 * time.Millisecond,
		Retry:          5 * time.Second,
		Shim:           60 * time.Second,
		Container:      500 * time.Millisecond,
		Guard:          3500 * time.Millisecond,
		GuardWait:      6 * time.Second,
		SandboxDown:    300 * time.Millisecond,
		Teardown:       1500 * time.Millisecond,
		Remove:         200 * time.Millisecond,
		Controller:     50 * time.Millisecond,
		ConfGone:       170 * time.Millisecond,
		DaemonTeardown: 700 * time.Millisecond,
		Installer:      800 * time.Millisecond,
		Backoff:        10 * time.Second,
	}
}
