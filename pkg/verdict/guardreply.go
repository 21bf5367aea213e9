package verdict

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// saysHeld reports that somebody else has or answers for an address of the
// canary's.
func (s *scene) saysHeld(line, low string, addrs []netip.Addr) bool {
	if !s.anyOwn(addrs) || s.isSilence(low, addrs) || noReply(low) {
		return false
	}
	own, others := s.macsIn(line)
	if own && !others {
		return false
	}
	if affirmed(low, replyWords) && !s.repliesFromOther(low) {
		return true
	}
	return affirmed(low, heldWords) && (others || containsAny(low, otherWords)) && !containsAny(low, ownWords)
}

// repliesFromOther: the canary's own address in the line is where a reply went.
func (s *scene) repliesFromOther(low string) bool {
	for _, w := range []string{"reply from ", "response from "} {
		if _, rest, ok := strings.Cut(low, w); ok {
			from, _, _ := strings.Cut(rest, " ")
			addrs := addressesIn(from)
			return len(addrs) > 0 && !s.anyOwn(addrs)
		}
	}
	return false
}

// macsIn tells whose MAC addresses stand in a line: the canary's, as far as they
// are known, or others.
func (s *scene) macsIn(line string) (own, others bool) {
	for field := range strings.FieldsSeq(line) {
		mac := strings.ToLower(strings.Trim(field, "[](){}<>,.;\"'"))
		switch {
		case !isMAC(mac):
		case s.isOwnMAC(mac):
			own = true
		default:
			others = true
		}
	}
	return own, others
}

func isMAC(text string) bool {
	const length = len("02:00:00:00:00:01")
	if len(text) != length {
		return false
	}
	for i := range length {
		if colon := i%3 == 2; colon != (text[i] == ':') || !colon && !strings.ContainsRune("0123456789abcdef", rune(text[i])) {
			return false
		}
	}
	return true
}

func (s *scene) isOwnMAC(mac string) bool {
	for _, w := range s.wanted {
		if strings.EqualFold(w.MacRequest, mac) || slices.ContainsFunc(s.statuses.Entries, func(st multus.Status) bool {
			return w.isStatus(st) && strings.EqualFold(st.Mac, mac)
		}) {
			return true
		}
	}
	return false
}

// isSilence reports that a line tells of traffic that does not come back.
// Silence about the canary's own address is good news, and so is that to a probe
// from 0.0.0.0: nobody else has it.
func (s *scene) isSilence(low string, addrs []netip.Addr) bool {
	if strings.HasPrefix(low, "arping ") && strings.Contains(low, noResponse) {
		return len(addrs) > 0 && !s.anyOwn(addrs[:1]) && !slices.Contains(addrs[1:], netip.IPv4Unspecified())
	}
	others := len(addrs) > len(s.own(addrs)) || strings.Contains(low, "gateway")
	switch {
	case noReply(low):
		return others || len(addrs) == 0 && containsAny(low, silenceWords)
	case strings.Contains(low, "request timed out"):
		return !strings.Contains(low, "http")
	}
	return containsAny(low, silenceWords)
}

// noReply finds a reply that is denied or was waited for in vain: "no ARP reply",
// "nobody answered", "0 replies", "timeout waiting for ARP reply".
func noReply(low string) bool {
	words := strings.Fields(low)
	for i, word := range words {
		if !isReplyWord(strings.Trim(word, ".,:;!()\"'")) {
			continue
		}
		before := beforeFillers(words[:i])
		n := len(before)
		if n > 0 && isDenial(before[n-1]) {
			return true
		}
		if n > 1 && before[n-1] == "for" && before[n-2] == "waiting" && containsAny(low, []string{"timeout", "timed out"}) {
			return true
		}
	}
	return strings.Contains(low, "100% unanswered")
}

// affirmed finds words that are not denied by what stands before them, and not
// what was sent.
func affirmed(low string, list []string) bool {
	for _, w := range list {
		before, _, found := strings.Cut(low, w)
		if !found {
			continue
		}
		words := beforeFillers(strings.Fields(before))
		if n := len(words); n == 0 || !isDenial(words[n-1]) && words[n-1] != "sent" && words[n-1] != "sending" {
			return true
		}
	}
	return false
}

// beforeFillers drops the words at the end that may stand between a denial and
// what is denied.
func beforeFillers(words []string) []string {
	for n := len(words); n > 0; n-- {
		switch words[n-1] {
		case "arp", "icmp", "echo", "ping", "unicast", "host", "machine", "station", "neighbour", "neighbor", "one", "other", "single", "any", "an", "a",
			"has", "have", "had", "is", "was", "been", "being", "already", "currently", "longer", "yet", "ever", "get", "got", "receive", "received", "see", "seen":
		default:
			return words[:n]
		}
	}
	return nil
}

func isDenial(word string) bool {
	switch word {
	case "no", "not", "none", "nobody", "nothing", "never", "without", "0", "zero",
		"isn't", "wasn't", "didn't", "doesn't", "hasn't":
		return true
	}
	return false
}

func isReplyWord(word string) bool {
	switch word {
	case "reply", "replies", "replied", "replying", "response", "responses", "response(s", "respond", "responds", "responded", "responding",
		"answer", "answers", "answered", "answering":
		return true
	}
	return false
}
