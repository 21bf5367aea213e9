package verdict

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// scene is the evidence of one UID, looked up once and put in order, so that
// the rules only read.
type scene struct {
	e   *evidence.Evidence
	now time.Time

	pod  *corev1.Pod
	uid  types.UID
	node string

	wanted    []wanted
	wantedErr error
	statuses  multus.Statuses

	ev podEvents
	// scopeStart is when the present sandbox began, where an earlier one that
	// had been in use was lost; zero otherwise.
	scopeStart time.Time
}

// wanted is one attachment the canary asks for.
type wanted struct {
	multus.Selection
	addresses []netip.Addr
	// conf is the NetworkAttachmentDefinition's, where it is known.
	conf    multus.NetConf
	confErr error
	known   bool
}

func newScene(e *evidence.Evidence, now time.Time) *scene {
	s := &scene{e: e, now: now, pod: e.CanaryPod(), uid: e.Canary.UID}
	if s.pod == nil {
		s.wantedErr = multus.ErrNoNetworks
		s.readEvents()
		return s
	}
	s.uid, s.node = s.pod.UID, s.pod.Spec.NodeName
	s.readWanted()
	// An annotation that does not parse is present and shows nothing.
	s.statuses, _ = multus.NetworkStatus(s.pod)
	s.readEvents()
	s.findInterfaces()
	s.findScope()
	return s
}

// findInterfaces corrects the names of interfaces that the canary leaves to Multus.
// It counts its delegates, and networks that its own configuration adds to every Pod
// (defaultNetworks) come first: only what it says it added tells how many those are.
func (s *scene) findInterfaces() {
	for _, w := range slices.Clone(s.wanted) {
		var open []*wanted
		for i := range s.wanted {
			if s.wanted[i].Network() == w.Network() && s.wanted[i].InterfaceRequest == "" {
				open = append(open, &s.wanted[i])
			}
		}
		if given := s.given(w.Network()); len(given) == len(open) {
			for i, ifname := range given {
				open[i].Interface = ifname
			}
		}
	}
}

// given are the interfaces that Multus itself named on a network, in its order.
func (s *scene) given(network string) []string {
	var numbers []int
	note := func(name, ifname string) {
		digits, ours := strings.CutPrefix(ifname, "net")
		if n, err := strconv.Atoi(digits); ours && err == nil && name == network && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	for _, a := range s.ev.added {
		note(a.Network, a.Interface)
	}
	for _, entry := range s.statuses.Entries {
		note(entry.Name, entry.Interface)
	}
	slices.Sort(numbers)
	var names []string
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("net%d", n))
	}
	return names
}

func (s *scene) readWanted() {
	selections, err := multus.RequestedNetworks(s.pod)
	if err != nil {
		s.wantedErr = err
		return
	}
	for _, sel := range selections {
		w := wanted{Selection: sel}
		if nad := s.e.Network(sel.Namespace, sel.Name); nad != nil {
			w.known = true
			w.conf, w.confErr = multus.ParseNetConf(nad.Spec.Config)
		}
		w.addresses = multus.RequestedAddresses(sel, w.conf)
		s.wanted = append(s.wanted, w)
	}
}

// first is the attachment messages speak of: canaries ask for one.
func (s *scene) first() wanted {
	if len(s.wanted) == 0 {
		return wanted{}
	}
	return s.wanted[0]
}

// wantedOf finds an attachment asked for by a name of its network: that of the
// NetworkAttachmentDefinition, or that of its conf, which is what a delegate calls it.
func (s *scene) wantedOf(network string) (wanted, bool) {
	for _, w := range s.wanted {
		if network != "" && (network == w.Name || network == w.Network() || network == w.conf.Name) {
			return w, true
		}
	}
	return wanted{}, false
}

// findScope finds where the present sandbox begins. A changed sandbox or a
// reboot counts where there was a sandbox in use before it; kubelet also
// reports a change between two attempts that both failed.
func (s *scene) findScope() {
	for _, lost := range []time.Time{s.ev.changed, s.ev.rebooted} {
		if !lost.IsZero() && s.usedBefore(lost) {
			s.scopeStart = later(s.scopeStart, lost)
		}
	}
}

func (s *scene) usedBefore(t time.Time) bool {
	for _, ev := range s.ev.started {
		if evidence.EventFirstTime(ev).Before(t) {
			return true
		}
	}
	for _, a := range s.ev.added {
		if evidence.EventFirstTime(a.ev).Before(t) && s.wants(a.Interface) {
			return true
		}
	}
	for _, c := range s.containers() {
		if at := startedAt(c.State); !at.IsZero() && at.Before(t) {
			return true
		}
	}
	return false
}

func (s *scene) wants(ifname string) bool {
	return slices.ContainsFunc(s.wanted, func(w wanted) bool { return w.Interface == ifname })
}

// containers gives the statuses of all containers, init containers first.
func (s *scene) containers() []corev1.ContainerStatus {
	if s.pod == nil {
		return nil
	}
	return slices.Concat(s.pod.Status.InitContainerStatuses, s.pod.Status.ContainerStatuses)
}

// ranAt is when the Pod's first container started; zero where none did.
func (s *scene) ranAt() time.Time {
	var first time.Time
	for _, c := range s.containers() {
		if at := startedAt(c.State); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// hasRun reports whether any container of the Pod ever started.
func (s *scene) hasRun() bool {
	return slices.ContainsFunc(s.containers(), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// finishedAt is when the last of the Pod's containers finished.
func (s *scene) finishedAt() time.Time {
	var last time.Time
	for _, c := range s.containers() {
		if t := c.State.Terminated; t != nil {
			last = later(last, t.FinishedAt.Time)
		}
	}
	return last
}

// sandboxAt is when the Pod's sandbox was made, as near as the evidence tells:
// just before its first container.
func (s *scene) sandboxAt() time.Time {
	at := s.ranAt()
	for _, ev := range s.ev.started {
		if t := evidence.EventFirstTime(ev); !t.IsZero() && t.After(s.scopeStart) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if at.IsZero() && s.pod.Status.StartTime != nil {
		at = s.pod.Status.StartTime.Time
	}
	if at.IsZero() {
		at = s.pod.CreationTimestamp.Time
	}
	return at
}

// sandboxNotBefore is the earliest that the Pod's sandbox can have been made:
// kubelet took the Pod on, or the earlier sandbox was lost.
func (s *scene) sandboxNotBefore() time.Time {
	at := s.pod.CreationTimestamp.Time
	if s.pod.Status.StartTime != nil {
		at = s.pod.Status.StartTime.Time
	}
	return later(at, s.scopeStart)
}

func startedAt(st corev1.ContainerState) time.Time {
	switch {
	case st.Running != nil:
		return st.Running.StartedAt.Time
	case st.Terminated != nil:
		return st.Terminated.StartedAt.Time
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// conditionOf gives a Pod's condition, nil where it is not set.
func conditionOf(pod *corev1.Pod, typ corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == typ {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(c *corev1.PodCondition) bool  { return c != nil && c.Status == corev1.ConditionTrue }
func isFalse(c *corev1.PodCondition) bool { return c != nil && c.Status == corev1.ConditionFalse }
