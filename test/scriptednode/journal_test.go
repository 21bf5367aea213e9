package scriptednode

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestOverlaps(t *testing.T) {
	alive := func(uid types.UID, addresses ...string) Entry {
		e := Entry{Kind: PodAlive, UID: uid}
		for _, a := range addresses {
			e.Addresses = append(e.Addresses, netip.MustParsePrefix(a))
		}
		return e
	}
	down := func(uid types.UID) Entry { return Entry{Kind: PodDown, UID: uid} }
	type pair struct{ First, Second types.UID }
	for name, row := range map[string]struct {
		journal Journal
		want    []pair
	}{
		"one after the other": {Journal{alive("a", "192.0.2.100/24"), down("a"), alive("b", "192.0.2.100/24"), down("b")}, nil},
		"second before the first is down": {
			Journal{alive("a", "192.0.2.100/24"), alive("b", "192.0.2.100/24"), down("a"), down("b")},
			[]pair{{"a", "b"}},
		},
		"prefix does not matter":        {Journal{alive("a", "192.0.2.100/24"), alive("b", "192.0.2.100/32")}, []pair{{"a", "b"}}},
		"other address":                 {Journal{alive("a", "192.0.2.100/24"), alive("b", "192.0.2.101/24")}, nil},
		"Pods without address":          {Journal{alive("a"), alive("b")}, nil},
		"same Pod seen twice":           {Journal{alive("a", "192.0.2.100/24"), alive("a", "192.0.2.100/24")}, nil},
		"gone from the API, still held": {Journal{alive("a", "192.0.2.100/24"), {Kind: PodGone, UID: "a"}, alive("b", "192.0.2.100/24")}, []pair{{"a", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []pair
			for _, o := range row.journal.Overlaps() {
				got = append(got, pair{o.First, o.Second})
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
