package scriptednode

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is what a journal entry tells.
type Kind string

// The kinds of journal entries.
const (
	// PodAlive is a Pod that the node has taken up; its addresses are those it
	// asks for.
	PodAlive Kind = "pod alive"
	// PodDown is a Pod without containers and sandbox; its addresses are free.
	PodDown Kind = "pod down"
	// PodGone is a UID that is no longer in the API.
	PodGone Kind = "pod uid gone"
	// SandboxMade is a sandbox that Multus made.
	SandboxMade Kind = "sandbox made by Multus"
	// SandboxPlain is a sandbox that the primary network made alone, though
	// the Pod asks for more.
	SandboxPlain Kind = "sandbox made without Multus"
	// SandboxFailed is a failed CNI ADD.
	SandboxFailed Kind = "sandbox failed"
	// ConfWritten and ConfRemoved are about the Multus conf.
	ConfWritten Kind = "conf written"
	ConfRemoved Kind = "conf removed"
	// DaemonReady and DaemonEnded are about the daemon's container.
	DaemonReady Kind = "daemon ready"
	DaemonEnded Kind = "daemon ended"
)

// Entry is one thing that the node did.
type Entry struct {
	At   time.Time
	Kind Kind
	Pod  types.NamespacedName
	UID  types.UID
	// Addresses are those the Pod asks for on its attached networks.
	Addresses []netip.Prefix
	// Text says more, where there is more to say.
	Text string
}

// String is one line for a failing test.
func (e Entry) String() string {
	return fmt.Sprintf("%s %s %s %s %s", e.At.Format("15:04:05.000"), e.Kind, e.Pod, e.UID, e.Text)
}

// Journal is what a node did, in order.
type Journal []Entry

// Overlap is a time at which two Pods that ask for one address were alive.
type Overlap struct {
	Address       netip.Addr
	First, Second types.UID
	At            time.Time
}

// Overlaps finds the address holders that overlapped on the node. A run that
// keeps the rule "never two holders of one address" gives none.
func (j Journal) Overlaps() []Overlap {
	type claim struct {
		uid     types.UID
		address netip.Addr
	}
	var held []claim
	var out []Overlap
	for _, e := range j {
		switch e.Kind {
		case PodAlive:
			for _, prefix := range e.Addresses {
				for _, other := range held {
					if other.address == prefix.Addr() && other.uid != e.UID {
						out = append(out, Overlap{Address: prefix.Addr(), First: other.uid, Second: e.UID, At: e.At})
					}
				}
				held = append(held, claim{e.UID, prefix.Addr()})
			}
		case PodDown:
			held = slices.DeleteFunc(held, func(c claim) bool { return c.uid == e.UID })
		default: // the others do not change who holds what
		}
	}
	return out
}

// Of keeps the entries of one kind.
func (j Journal) Of(kind Kind) Journal {
	var out Journal
	for _, e := range j {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// Since keeps the entries from a time on.
func (j Journal) Since(t time.Time) Journal {
	var out Journal
	for _, e := range j {
		if !e.At.Before(t) {
			out = append(out, e)
		}
	}
	return out
}

// journalBook collects entries from all goroutines of a node.
type journalBook struct {
	mu      sync.Mutex
	entries Journal
}

func (b *journalBook) add(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.At = time.Now()
	b.entries = append(b.entries, e)
}

func (b *journalBook) copy() Journal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries)
}
