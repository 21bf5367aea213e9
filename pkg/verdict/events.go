package verdict

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// podEvents are the events of the UID by what they tell, each kind in order of
// time.
type podEvents struct {
	any      bool
	added    []addedEvent
	noNAD    []*corev1.Event
	sandbox  []*corev1.Event // failed attempts to make it, and network not ready
	kill     []*corev1.Event
	mounts   []*corev1.Event
	pulls    []*corev1.Event
	started  []*corev1.Event // Created and Started of containers
	sched    []*corev1.Event
	changed  time.Time // the last SandboxChanged
	alive    time.Time // the last work on a container, which needs a sandbox
	got      time.Time // the last image that was had, or container that was made
	rebooted time.Time // the last reboot of the Pod's node
	failures int
	burst    bool
}

type addedEvent struct {
	multus.Added
	ev *corev1.Event
	at time.Time
}

// burstCount is the number of sightings from which kubelet's recorder may have
// dropped events (its burst is 25; it aggregates from the tenth message on).
const burstCount = 10

func (s *scene) readEvents() {
	for i := range s.e.Events {
		ev := &s.e.Events[i]
		if s.isNodeReboot(ev) {
			s.ev.rebooted = later(s.ev.rebooted, evidence.EventTime(ev))
			continue
		}
		if s.uid == "" || ev.InvolvedObject.UID != s.uid {
			continue
		}
		s.ev.any = true
		s.ev.burst = s.ev.burst || evidence.EventCount(ev) >= burstCount || strings.HasPrefix(ev.Message, multus.CombinedPrefix)
		s.sortIn(ev)
	}
	for _, list := range [][]*corev1.Event{s.ev.noNAD, s.ev.sandbox, s.ev.kill, s.ev.mounts, s.ev.pulls, s.ev.started, s.ev.sched} {
		sortEvents(list)
	}
	slices.SortFunc(s.ev.added, func(a, b addedEvent) int { return compareEvents(a.ev, b.ev) })
}

func (s *scene) isNodeReboot(ev *corev1.Event) bool {
	return ev.Reason == "Rebooted" && ev.InvolvedObject.Kind == "Node" && s.node != "" && ev.InvolvedObject.Name == s.node
}

func (s *scene) sortIn(ev *corev1.Event) {
	switch ev.Reason {
	case multus.ReasonAddedInterface:
		if evidence.EventComponent(ev) != multus.Component {
			return
		}
		if added, ok := multus.ParseAdded(ev.Message); ok {
			s.ev.added = append(s.ev.added, addedEvent{Added: added, ev: ev, at: evidence.EventTime(ev)})
		}
	case multus.ReasonNoNetworkFound:
		s.ev.noNAD = append(s.ev.noNAD, ev)
	case "FailedCreatePodSandBox", "FailedCreatePodSandbox":
		s.ev.failures += evidence.EventCount(ev)
		s.ev.sandbox = append(s.ev.sandbox, ev)
	case "NetworkNotReady", "FailedSync", "FailedPodSandBoxStatus":
		s.ev.sandbox = append(s.ev.sandbox, ev)
	case "SandboxChanged":
		s.ev.changed = later(s.ev.changed, evidence.EventTime(ev))
	case "FailedKillPod":
		s.ev.kill = append(s.ev.kill, ev)
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
		s.ev.mounts = append(s.ev.mounts, ev)
	case "Failed", "BackOff", "ErrImageNeverPull", "InspectFailed":
		s.ev.pulls = append(s.ev.pulls, ev)
		s.ev.alive = later(s.ev.alive, evidence.EventTime(ev))
	case "Created", "Started":
		s.ev.started = append(s.ev.started, ev)
		s.gotOn(ev)
	case "Pulled":
		s.gotOn(ev)
	case "Pulling":
		s.ev.alive = later(s.ev.alive, evidence.EventTime(ev))
	case "FailedScheduling":
		s.ev.sched = append(s.ev.sched, ev)
	}
}

func (s *scene) gotOn(ev *corev1.Event) {
	at := evidence.EventTime(ev)
	s.ev.alive, s.ev.got = later(s.ev.alive, at), later(s.ev.got, at)
}

// plainMessage is an event's message as it was before kubelet folded several.
func plainMessage(ev *corev1.Event) string {
	return strings.TrimPrefix(multus.Plain(ev.Message), multus.CombinedPrefix)
}

// sortEvents orders by time and, where that is equal, by what cannot change
// with the order of the documents.
func sortEvents(list []*corev1.Event) {
	type timed struct {
		at time.Time
		ev *corev1.Event
	}
	// The time of each is worked out once: a node that fails for hours leaves
	// thousands.
	order := make([]timed, len(list))
	for i, ev := range list {
		order[i] = timed{evidence.EventTime(ev), ev}
	}
	slices.SortFunc(order, func(a, b timed) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return compareEvents(a.ev, b.ev)
	})
	for i, o := range order {
		list[i] = o.ev
	}
}

func compareEvents(a, b *corev1.Event) int {
	if c := evidence.EventTime(a).Compare(evidence.EventTime(b)); c != 0 {
		return c
	}
	for _, c := range []int{
		evidence.EventFirstTime(a).Compare(evidence.EventFirstTime(b)),
		strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)),
		strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message),
	} {
		if c != 0 {
			return c
		}
	}
	return int(a.Count) - int(b.Count)
}
