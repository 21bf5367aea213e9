package verdict

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// proof is what shows one attachment in the present sandbox.
type proof struct {
	byEvent, byStatus bool
	// stale: shown, but only for an earlier sandbox.
	stale bool
	// bare: the interface is shown, the address asked for is not.
	bare bool
	// unsure: whether an address was asked for is not known.
	unsure bool
	// addresses are those shown for the interface.
	addresses []netip.Addr
	lines     []Line
}

func (p proof) shown() bool { return p.byEvent || p.byStatus }

// proveAll looks for every attachment asked for and joins the proofs: all must
// be shown, one that is not spoils the whole.
func (s *scene) proveAll() proof {
	all := proof{byEvent: true, byStatus: true}
	shown := true
	for _, w := range s.wanted {
		p := s.prove(w)
		shown = shown && p.shown()
		all.byEvent = all.byEvent && p.byEvent
		all.byStatus = all.byStatus && p.byStatus
		all.stale = all.stale || p.stale && !p.shown()
		all.bare = all.bare || p.bare && !p.shown()
		all.unsure = all.unsure || p.unsure && !p.shown()
		all.addresses = append(all.addresses, p.addresses...)
		all.lines = append(all.lines, p.lines...)
	}
	if len(s.wanted) == 0 || !shown {
		all.byEvent, all.byStatus = false, false
		return all
	}
	// Each is shown, but one by its event and another by its status alone.
	all.byEvent = all.byEvent || !all.byStatus
	return all
}

// prove looks for one attachment, first in the AddedInterface events, then in
// the annotation.
func (s *scene) prove(w wanted) proof {
	var p proof
	for _, a := range s.ev.added {
		if a.Interface != w.Interface || !w.mayBe(a.Network) {
			continue
		}
		if a.at.Before(s.scopeStart) {
			p.stale = true
			continue
		}
		p.lines = append(p.lines, eventLine(a.ev))
		p.see(a.Addresses)
		p.judge(w, a.Addresses, &p.byEvent)
	}
	s.proveByStatus(w, &p)
	return p
}

// proveByStatus reads the annotation. It has no time: after a lost sandbox it
// may be the old one's, and only an event can tell.
func (s *scene) proveByStatus(w wanted, p *proof) {
	var shown []netip.Addr
	found := false
	for _, st := range s.statuses.Entries {
		if !w.isStatus(st) {
			continue
		}
		found = true
		for _, ip := range st.IPs {
			if a, ok := multus.ParseAddress(ip); ok {
				shown = append(shown, a)
			}
		}
	}
	switch {
	case !found:
	case !s.scopeStart.IsZero() && !p.byEvent:
		p.stale = true
	default:
		p.see(shown)
		p.judge(w, shown, &p.byStatus)
		p.lines = append(p.lines, s.statusLine(w, shown))
	}
}

func (s *scene) statusLine(w wanted, shown []netip.Addr) Line {
	return Line{Source: sourcePod, Text: strings.TrimSpace(fmt.Sprintf("network-status: %s %s", w.Interface, joinAddresses(shown)))}
}

func (p *proof) see(addrs []netip.Addr) {
	for _, a := range addrs {
		if !slices.Contains(p.addresses, a) {
			p.addresses = append(p.addresses, a)
		}
	}
}

// judge sets by where the shown addresses hold all that were asked for.
func (p *proof) judge(w wanted, shown []netip.Addr, by *bool) {
	for _, want := range w.addresses {
		if !slices.Contains(shown, want) {
			p.bare = true
			return
		}
	}
	if len(w.addresses) == 0 && len(shown) == 0 {
		switch {
		case !w.known:
			p.unsure = true
			return
		case w.conf.IPAM.Type != "":
			p.bare = true
			return
		}
	}
	*by = true
}

// mayBe accepts the names a delegate of this network may carry: its
// NetworkAttachmentDefinition's or its conf's. An empty one tells nothing.
func (w wanted) mayBe(name string) bool {
	return name == "" || name == w.Network() || !strings.Contains(name, "/")
}

func (w wanted) isStatus(st multus.Status) bool {
	if st.Default || !w.mayBe(st.Name) {
		return false
	}
	if st.Interface == "" {
		return st.Name == w.Network()
	}
	return st.Interface == w.Interface
}

func joinAddresses(addrs []netip.Addr) string {
	return strings.Join(textsOf(addrs), ", ")
}

func textsOf(addrs []netip.Addr) []string {
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return texts
}

// multusRan reports any sign that Multus handled this UID at all.
func (s *scene) multusRan() bool {
	return len(s.ev.added) > 0 || len(s.ev.noNAD) > 0 || s.statuses.Present
}

// wantedText names what was asked for: interface, address and network.
func (s *scene) wantedText() string {
	var parts []string
	for _, w := range s.wanted {
		text := w.Interface
		if a := joinAddresses(w.addresses); a != "" {
			text += " with " + a
		}
		parts = append(parts, text+" on "+w.Network())
	}
	return strings.Join(parts, " and ")
}

// sandboxAge is how long ago the sandbox was made.
func (s *scene) sandboxAge() time.Duration { return s.now.Sub(s.sandboxAt()) }

// eventsSurvive reports that events from the time the sandbox was made can
// still be there, so that the absence of one means something.
func (s *scene) eventsSurvive() bool {
	if s.sandboxAge() < EventTTL {
		return true
	}
	made := s.sandboxAt().Add(EventTTL / 60)
	for _, ev := range slices.Concat(s.ev.started, s.ev.sandbox, s.ev.sched) {
		if evidence.EventFirstTime(ev).Before(made) {
			return true
		}
	}
	return false
}

// EventTTL is how long the API server keeps an event (kube-apiserver
// --event-ttl).
const EventTTL = time.Hour
