package verdict

import (
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// RepeatAfter is how long a fault that kubelet tries again must stand to be
// settled, where it was seen only once.
const RepeatAfter = 30 * time.Second

// OutageAfter is how long Multus must have failed to reach the API server to
// tell a node that cannot from a server that restarts. k3s, which is both API
// server and kubelet, takes up to half a minute.
const OutageAfter = time.Minute

// EventGrace is how long after the last container finished the events and the
// annotation of the attachment may still be on their way: kubelet and Multus
// send them asynchronously.
const EventGrace = 3 * time.Second

// RunningGrace is how long a main container must have run to count as done well
// without having ended.
const RunningGrace = 5 * time.Second

// Decide judges one canary from the evidence alone. It is level-driven: it
// looks at the whole of the evidence each time, in any order, and may be called
// on every change.
//
// The rules, the first that applies deciding:
//
//  1. No Pod of the UID: the CRD, a namesake, the rollout or the events of a
//     Pod that is gone tell why there is nothing to judge.
//  2. The Pod is going: it can no longer pass; its teardown may be blocked.
//  3. No node took it.
//  4. Its networks annotation cannot be read: there is nothing to expect.
//  5. Its containers did well: a pass, if the attachment asked for is shown.
//  6. A container failed, or kubelet gave the Pod up.
//  7. It lost its sandbox and gets no other.
//  8. Its sandbox stands, and a container is held up by its image or settings.
//  9. Its sandbox cannot be made: the newest failure tells the fault.
//  10. A volume holds it up before any sandbox.
//  11. It is on its way: its attachment may be an earlier sandbox's, it may run
//     without Multus or wait for a rollout; else nothing is wrong yet.
//
// A pass or a fail that was reached before the present configuration came into
// being is a stale attempt, and so is one during which the configuration changed
// (CrossCheck), where the evidence knows what it was before.
func Decide(e evidence.Evidence, now time.Time) Verdict {
	v := decide(&e, now)
	if e.Before == nil {
		return v
	}
	return CrossCheck(v, *e.Before, evidence.FingerprintOf(e))
}

func decide(e *evidence.Evidence, now time.Time) Verdict {
	s := newScene(e, now)
	for _, rule := range []func(*scene) *finding{
		absent, going, unscheduled, unreadable, succeeded, failed, stranded, waiting, sandboxFault, volumeBlocked,
	} {
		if f := rule(s); f != nil {
			return s.conclude(s.unlessStale(f))
		}
	}
	return s.conclude(inProgress(s))
}
