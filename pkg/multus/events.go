package multus

import (
	"net/netip"
	"strings"
)

// The reasons of the events Multus writes (component Multus).
const (
	Component            = "multus"
	ReasonAddedInterface = "AddedInterface"
	ReasonNoNetworkFound = "NoNetworkFound"
)

// Added is what an AddedInterface event tells.
type Added struct {
	Interface string
	Addresses []netip.Addr
	// Network is the delegate's name: namespace/name of a
	// NetworkAttachmentDefinition, the conf's name of the primary; may be empty.
	Network string
}

// ParseAdded reads the message of an AddedInterface event:
// `Add <if> [<cidr> <cidr>...] from <network>`, the last part being left out
// where the network has no name.
func ParseAdded(message string) (Added, bool) {
	text := strings.TrimPrefix(Plain(message), CombinedPrefix)
	rest, ok := strings.CutPrefix(text, "Add ")
	if !ok {
		return Added{}, false
	}
	ifname, rest, ok := strings.Cut(rest, " [")
	if !ok || ifname == "" || strings.ContainsAny(ifname, " \n") {
		return Added{}, false
	}
	list, rest, ok := strings.Cut(rest, "]")
	if !ok {
		return Added{}, false
	}
	added := Added{Interface: ifname}
	for field := range strings.FieldsSeq(list) {
		if a, ok := ParseAddress(field); ok {
			added.Addresses = append(added.Addresses, a)
		}
	}
	added.Network = strings.TrimSpace(strings.TrimPrefix(rest, " from "))
	return added, true
}
