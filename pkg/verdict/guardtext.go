package verdict

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Words of guards and of the tools they call (arping, ping, iproute2), lower
// case.
var (
	duplicateWords = []string{
		"duplicate address", "duplicate ip", "address conflict", "ip conflict", "address collision",
		"address is already in use", "address already in use by", "already claimed", "dadfailed", "duplicate detected",
	}
	replyWords = []string{"reply from", "response from", "replied", "answers for", "answered"}
	// heldWords tell of an address that somebody has, where a line says who.
	heldWords  = []string{"in use", "taken", "claimed", "occupied", "held by", "owned by", "used by", "belongs to", "reply for", "response for"}
	otherWords = []string{"another", "other host", "other machine", "somebody", "someone", "elsewhere"}
	// ownWords: the canary announces its address, or its socket is taken.
	ownWords     = []string{"gratuitous", "announc", "bind", "listen", "socket", "this pod"}
	silenceWords = []string{
		"unreachable via", "host unreachable", "is unreachable", "unreachable", "not reachable", "no reply", "no answer",
		"no response", "did not answer", "did not reply", "does not answer", "does not reply", "not answering",
		"100% packet loss", "no route to host", "never came back",
		"cannot reach", "can't reach", "could not reach", "timed out waiting for reply", "timeout waiting for reply", "ping timed out",
		"cannot ping", "could not ping", "ping failed", "request timed out", "100% unanswered",
		"received none", "received nothing", "nothing received", "none received",
	}
	// goneWords stand behind an interface's name, goneBefore before it. Where more
	// follows than goneEnds, it is that which is gone: "net1 lost carrier".
	goneWords = []string{
		"missing", "gone", "disappeared", "vanished", "not found", "does not exist", "no such device", "removed", "lost", "deleted", "not there", "not present", "absent",
		"no longer exists", "no longer there", "no longer present", "no longer available", "error fetching interface information device not found",
	}
	goneBefore = []string{"cannot find device ", "can't find device ", "no such device: ", "no interface ", "no such interface ", "missing interface ", "lost interface "}
	goneEnds   = []string{"after", "while", "during", "since", "within", "before", "when", "at", "from", "in", "again", "now", "meanwhile", "and"}
	hostWords  = []string{"own host", "its host", "own node", "its node", "host address", "host ip", "node address", "node ip", "the host itself", "local host", "parent host", "the node itself"}
	// answeredWords tell that nothing was sent (no route in the Pod) or that
	// somebody did answer.
	answeredWords = []string{"network is unreachable", "network unreachable", "port unreachable", "protocol unreachable"}
	// quietWords mark a line that tells of a check begun or passed.
	quietWords = []string{"checking", "testing", "probing", "no duplicate", "not duplicate", "no conflict", "no address conflict", "is free", " ok", " passed", "without duplicate"}
)

// guardFault reads one line of a guard. Only words that mean one thing count;
// everything else stays guard-failed with the line shown.
func (s *scene) guardFault(line string) (Cause, names) {
	low := strings.ToLower(line)
	if containsAny(low, quietWords) {
		return "", names{}
	}
	addrs := addressesIn(line)
	switch {
	case containsAny(low, duplicateWords), s.saysHeld(line, low, addrs):
		return DuplicateAddress, names{address: joinAddresses(s.own(addrs))}
	case s.saysGone(low):
		return MasterLinkRecreated, names{network: s.spokenOf(low)}
	case s.namesOther(low), containsAny(low, answeredWords), !s.isSilence(low, addrs):
		return "", names{}
	case s.isMacvlan() && (containsAny(low, hostWords) || hasWord(low, strings.ToLower(s.node)) || s.isNodeAddress(addrs)):
		return MacvlanHostIsolation, names{}
	case s.namesWanted(low), strings.Contains(low, "gateway"), s.onSegment(addrs):
		return L2Unreachable, names{network: s.spokenOf(low)}
	}
	return "", names{}
}

// unquoted takes off what tools put around names.
var unquoted = strings.NewReplacer(`"`, "", "'", "", ":", "", "`", "")

// saysGone reports that a line says of an interface asked for that it is not
// there, and not merely that something else is missing on it.
func (s *scene) saysGone(low string) bool {
	low = unquoted.Replace(low)
	for _, w := range s.wanted {
		ifname := strings.ToLower(w.Interface)
		for _, word := range goneWords {
			for _, verb := range []string{" ", " is ", " has ", " was ", " has been "} {
				if saysLast(low, ifname+verb+word, goneEnds) {
					return true
				}
			}
		}
		for _, word := range goneBefore {
			if saysLast(low, unquoted.Replace(word)+ifname, goneEnds) {
				return true
			}
		}
	}
	return false
}

// onSegment reports that an address lies in the prefix of one asked for.
func (s *scene) onSegment(addrs []netip.Addr) bool {
	for _, w := range s.wanted {
		for _, p := range multus.RequestedPrefixes(w.Selection, w.conf) {
			if slices.ContainsFunc(addrs, p.Contains) {
				return true
			}
		}
	}
	return false
}

// addressesIn finds the IP addresses in a line.
func addressesIn(line string) []netip.Addr {
	var addrs []netip.Addr
	for field := range strings.FieldsFuncSeq(line, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F') && r != '.' && r != ':' && r != '/'
	}) {
		if a, ok := multus.ParseAddress(strings.Trim(field, ".:/")); ok {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// own keeps the addresses that the canary asks for itself.
func (s *scene) own(addrs []netip.Addr) []netip.Addr {
	var own []netip.Addr
	for _, w := range s.wanted {
		for _, a := range w.addresses {
			for _, b := range addrs {
				if a == b {
					own = append(own, a)
				}
			}
		}
	}
	return own
}

func (s *scene) anyOwn(addrs []netip.Addr) bool { return len(s.own(addrs)) > 0 }

// spokenOf is the network of the interface asked for that a line speaks of; empty
// where it speaks of none.
func (s *scene) spokenOf(low string) string {
	for _, w := range s.wanted {
		if hasWord(low, strings.ToLower(w.Interface)) {
			return w.Network()
		}
	}
	return ""
}

// namesWanted reports that a line speaks of an interface asked for.
func (s *scene) namesWanted(low string) bool { return s.spokenOf(low) != "" }

// namesOther reports that a line speaks of the primary interface alone.
func (s *scene) namesOther(low string) bool { return hasWord(low, "eth0") && !s.namesWanted(low) }

// isMacvlan reports a network whose children cannot reach their parent's host.
func (s *scene) isMacvlan() bool {
	switch s.first().conf.Type {
	case "macvlan", "ipvlan", "":
		return true
	}
	return false
}

func (s *scene) isNodeAddress(addrs []netip.Addr) bool {
	node := s.e.Node(s.node)
	if node == nil {
		return false
	}
	for _, na := range node.Status.Addresses {
		own, ok := multus.ParseAddress(na.Address)
		for _, a := range addrs {
			if ok && a == own {
				return true
			}
		}
	}
	return false
}
