package verdict

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	return Line{Source: "pod", Text: strings.TrimSpace(fmt.Sprintf("network-status: %s %s", w.Interface, joinAddresses(shown)))}
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

// attachedAs gives the interface and addresses shown for an attachment; nothing
// where it is not shown.
func (s *scene) attachedAs(w wanted) (ifname string, addresses []string) {
	p := s.prove(w)
	if !p.shown() {
		return "", nil
	}
	for _, a := range p.addresses {
		addresses = append(addresses, a.String())
	}
	return w.Interface, addresses
}

func joinAddresses(addrs []netip.Addr) string {
	texts := make([]string, 0, len(addrs))
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

// multusRan reports any sign that Multus handled this UID at all.
func (s *scene) multusRan() bool {
	return len(s.ev.added) > 0 || len(s.ev.noNAD) > 0 || s.statuses.Present
}

// succeeded is rule 5.
func succeeded(s *scene) *finding {
	if !s.didWell() {
		return nil
	}
	p := s.proveAll()
	lines := append(p.lines, s.containerLines()...)
	switch {
	case p.shown():
		return s.passed(p, lines)
	case p.stale:
		return &finding{
			cause: StaleNetworkStatus, lines: append(lines, s.lostLines()...), at: s.ranAt(), open: s.fresh(),
			message: s.who() + " did well, but its attachment is shown for an earlier sandbox only",
		}
	case p.bare:
		return s.unaddressed(p, lines)
	case !s.multusRan():
		return s.notInChain(lines, "its containers did well, but")
	}
	return &finding{
		cause: EvidenceIncomplete, lines: lines, open: s.fresh(), at: s.ranAt(),
		message: s.who() + " did well, but nothing shows " + s.wantedText() + " attached",
	}
}

// passed names the pass by what was there to prove it.
func (s *scene) passed(p proof, lines []Line) *finding {
	f := &finding{cause: OK, lines: lines, at: s.ranAt()}
	ran := len(s.ev.started) > 0
	switch {
	case s.statuses.Legacy:
		f.cause = LegacyAnnotationKey
	case s.ev.any && !ran && (s.ev.failures > 0 || s.ev.burst):
		f.cause = EventsIncomplete
	case s.ev.failures > 0:
		f.cause = LateSuccess
	case !p.byEvent:
		f.cause = OKNoMultusEvents
	case !s.statuses.Present:
		f.cause = NetworkStatusAbsent
	case !p.byStatus:
		f.cause = NetworkStatusPartial
	}
	switch f.cause {
	case OKNoMultusEvents, NetworkStatusAbsent, NetworkStatusPartial, EventsIncomplete:
		f.open = s.fresh()
	}
	if s.ev.failures > 0 && len(s.ev.sandbox) > 0 {
		f.lines = append(f.lines, eventLine(s.ev.sandbox[len(s.ev.sandbox)-1]))
	}
	f.message = fmt.Sprintf("%s is attached to %s, and its guard and containers did well", s.who(), s.wantedText())
	return f
}

// unaddressed is an interface without the address that was asked for.
func (s *scene) unaddressed(p proof, lines []Line) *finding {
	got := joinAddresses(p.addresses)
	if got == "" {
		got = "no address"
	}
	return &finding{
		cause: StaticIPMissing, lines: lines, at: s.ranAt(), seen: 2,
		message: fmt.Sprintf("%s was attached with %s instead of %s", s.who(), got, s.wantedText()),
	}
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

// fresh reports that the last container finished so lately that its events may
// still be on their way.
func (s *scene) fresh() bool {
	at := s.finishedAt()
	if at.IsZero() {
		at = s.ranAt()
	}
	age := s.now.Sub(at)
	// A node's clock that runs ahead must not keep a verdict open for ever.
	return !at.IsZero() && age < EventGrace && age > -EventGrace
}

// didWell reports that guard and main containers finished well, or are running
// and ready. Exit codes outrank the phase.
func (s *scene) didWell() bool {
	if s.failedContainer() != nil {
		return false
	}
	switch s.pod.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		return s.hasRun() && s.guardsDone() && (isTrue(conditionOf(s.pod, corev1.PodReady)) || s.mainDone() || s.mainReady())
	case corev1.PodPending, corev1.PodFailed, corev1.PodUnknown:
		return false
	}
	return false
}

// guardsDone reports that every init container finished well, sidecars aside.
func (s *scene) guardsDone() bool {
	done := 0
	for _, c := range s.pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode == 0 || c.State.Running != nil && s.isSidecar(c.Name) {
			done++
		}
	}
	return done >= len(s.pod.Spec.InitContainers)
}

func (s *scene) isSidecar(name string) bool {
	for _, c := range s.pod.Spec.InitContainers {
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// mainDone reports that every main container finished well, before kubelet has
// told so in the phase.
func (s *scene) mainDone() bool {
	if len(s.pod.Status.ContainerStatuses) < len(s.pod.Spec.Containers) || len(s.pod.Spec.Containers) == 0 {
		return false
	}
	for _, c := range s.pod.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			return false
		}
	}
	return true
}

// mainReady reports that every main container runs and is ready, for a status
// without conditions.
func (s *scene) mainReady() bool {
	if len(s.pod.Status.Conditions) > 0 || len(s.pod.Status.ContainerStatuses) < max(1, len(s.pod.Spec.Containers)) {
		return false
	}
	for _, c := range s.pod.Status.ContainerStatuses {
		if c.State.Running == nil || !c.Ready {
			return false
		}
	}
	return true
}

// lostLines show how the earlier sandbox was lost.
func (s *scene) lostLines() []Line {
	var lines []Line
	if !s.ev.changed.IsZero() {
		lines = append(lines, Line{Time: s.ev.changed, Source: "event", Text: "SandboxChanged: Pod sandbox changed, it will be killed and re-created."})
	}
	if !s.ev.rebooted.IsZero() {
		lines = append(lines, Line{Time: s.ev.rebooted, Source: "event", Text: "Rebooted: node " + s.node})
	}
	return lines
}

func (s *scene) containerLines() []Line {
	var lines []Line
	for _, c := range s.containers() {
		if t := c.State.Terminated; t != nil {
			lines = append(lines, terminatedLine(c.Name, t))
		} else if r := c.State.Running; r != nil {
			lines = append(lines, Line{Time: r.StartedAt.Time, Source: "pod", Text: "container " + c.Name + " is running"})
		}
	}
	return lines
}

func terminatedLine(name string, t *corev1.ContainerStateTerminated) Line {
	text := fmt.Sprintf("container %s exited %d", name, t.ExitCode)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if msg := strings.TrimSpace(t.Message); msg != "" {
		text += ": " + msg
	}
	return Line{Time: t.FinishedAt.Time, Source: "pod", Text: text}
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
