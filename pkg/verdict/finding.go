package verdict

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// finding is what a rule found, before the catalogue's words are put to it.
type finding struct {
	cause Cause
	// outcome is set where the catalogue's is not meant (a cause with a window).
	outcome Outcome
	message string
	names   names
	lines   []Line
	// firstSeen and seen tell how long and how often the fault was seen.
	firstSeen time.Time
	seen      int
	// at is when the state judged came to be; zero where that is "now".
	at time.Time
	// open: evidence may still be on its way.
	open bool
	// again: one sighting may pass, whatever the catalogue says of the cause.
	again bool
}

// names fill the angle brackets of the catalogue's texts.
type names struct {
	plugin, dir, parent, address, image, volume string
	// network is the one at fault, as namespace/name; the first where it is empty.
	network string
}

// conclude puts the catalogue's words to a finding.
func (s *scene) conclude(f *finding) Verdict {
	entry, _ := Lookup(f.cause)
	v := Verdict{
		Outcome:         cmp.Or(f.outcome, entry.Outcome),
		Cause:           f.cause,
		Message:         clip(f.message),
		Next:            clip(s.fill(entry.Next, f.names)),
		Settled:         s.settled(f, entry),
		Node:            s.node,
		Lines:           sortLines(f.lines),
		SandboxFailures: s.ev.failures,
	}
	if w := s.first(); w.Name != "" {
		if p := s.prove(w); p.shown() {
			v.Network, v.Interface, v.Addresses = w.Network(), w.Interface, textsOf(p.addresses)
		}
	}
	return v
}

func (s *scene) settled(f *finding, entry Entry) bool {
	if f.open {
		return false
	}
	if s.ended() {
		return true
	}
	settles := entry.Settles
	if f.again && settles == AtOnce {
		settles = OnRepeat
	}
	switch settles {
	case AtOnce:
		return true
	case OnRepeat:
		return f.seen >= 2 || !f.firstSeen.IsZero() && s.now.Sub(f.firstSeen) >= RepeatAfter
	case OnStanding:
		return !f.firstSeen.IsZero() && f.at.Sub(f.firstSeen) >= OutageAfter
	case ByWaiting:
		return false
	}
	return false
}

// clip keeps a sentence to a length that can be read: the names in it come from
// the cluster. The lines keep the whole text.
func clip(text string) string {
	const most = 1500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// ended reports a Pod of which nothing more will come.
func (s *scene) ended() bool {
	if s.pod == nil || s.pod.DeletionTimestamp != nil {
		return false
	}
	phase := s.pod.Status.Phase
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed || s.failedContainer() != nil
}

// fill puts names into the angle brackets of a text; one that is not known
// becomes plain words.
func (s *scene) fill(text string, n names) string {
	w, ok := s.wantedOf(n.network)
	network := n.network
	if !ok && network == "" {
		if w = s.first(); w.Name != "" {
			network = w.Network()
		}
	}
	return strings.NewReplacer(
		"<node>", cmp.Or(s.node, "the node"),
		"<network>", cmp.Or(network, "the network"),
		"<daemonset>", s.daemonSetName(),
		"<parent>", cmp.Or(n.parent, w.conf.Master, "the parent interface"),
		"<plugin>", cmp.Or(n.plugin, "plugin"),
		"<dir>", cmp.Or(n.dir, "the CNI folder"),
		"<address>", cmp.Or(n.address, joinAddresses(w.addresses), "the address"),
		"<image>", cmp.Or(n.image, "named in the message"),
		"<volume>", cmp.Or(n.volume, "named in the message"),
	).Replace(text)
}

func (s *scene) daemonSetName() string {
	if s.e.DaemonSet.Name == "" {
		return "the Multus DaemonSet"
	}
	return "DaemonSet " + s.e.DaemonSet.String()
}

// who names the canary in messages.
func (s *scene) who() string {
	name := "canary " + s.e.Canary.String()
	if s.node != "" {
		name += " on node " + s.node
	}
	return name
}

// sourcePod marks a line that the Pod itself tells.
const sourcePod = "pod"

func sortLines(lines []Line) []Line {
	slices.SortStableFunc(lines, func(a, b Line) int {
		order := cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Source, b.Source))
		// The Pod's own lines are in the order of its containers, the guard first.
		if order != 0 || a.Source == sourcePod {
			return order
		}
		return strings.Compare(a.Text, b.Text)
	})
	return lines
}

func eventLine(ev *corev1.Event) Line {
	return Line{Time: evidence.EventTime(ev), Source: "event", Text: ev.Reason + ": " + ev.Message}
}

func eventLines(events []*corev1.Event) []Line {
	var lines []Line
	for _, ev := range events {
		lines = append(lines, eventLine(ev))
	}
	return lines
}

// since notes how often and since when a fault shows in events that each tell
// of another attempt.
func (f *finding) since(events ...*corev1.Event) *finding {
	for _, ev := range events {
		count, at := evidence.EventCount(ev), evidence.EventFirstTime(ev)
		// What is combined counts every fault; its text is of the newest alone.
		if strings.HasPrefix(ev.Message, multus.CombinedPrefix) {
			count, at = 1, evidence.EventTime(ev)
		}
		f.seen += count
		if f.firstSeen.IsZero() || at.Before(f.firstSeen) {
			f.firstSeen = at
		}
	}
	return f
}

// standing notes since when a fault shows, where kubelet tries again so soon
// that a second sighting proves little.
func (f *finding) standing(events ...*corev1.Event) *finding {
	f.since(events...)
	f.seen = 0
	return f
}
