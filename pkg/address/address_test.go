package address

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

var errDown = errors.New("down")

// lookup knows two networks on one parent and one elsewhere.
func lookup(namespace, name string) (multus.NetConf, error) {
	switch namespace + "/" + name {
	case "a/vlan50", "b/other":
		return multus.NetConf{Type: "macvlan", Master: "enp1s0.50"}, nil
	case "a/static":
		return multus.NetConf{Type: "bridge", IPAM: multus.IPAM{Type: "static", Addresses: []multus.StaticAddress{{Address: "192.0.2.7/24"}}}}, nil
	case "a/down":
		return multus.NetConf{}, errDown
	}
	return multus.NetConf{}, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func asking(networks string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{nadv1.NetworkAttachmentAnnot: networks}}}
}

func claim(address, segment string) Claim {
	return Claim{Address: netip.MustParseAddr(address), Segment: segment}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		networks string
		want     []Claim
		err      error
	}{
		"an address of its own":          {`[{"name":"vlan50","ips":["192.0.2.1/24"]}]`, []Claim{claim("192.0.2.1", "master enp1s0.50")}, nil},
		"the network's own":              {`static`, []Claim{claim("192.0.2.7", "master cni0")}, nil},
		"a network that is not there":    {`[{"name":"gone","ips":["192.0.2.1/24"]}]`, []Claim{claim("192.0.2.1", "network a/gone")}, nil},
		"no address at all":              {`vlan50`, nil, nil},
		"nothing asked":                  {``, nil, multus.ErrNoNetworks},
		"a network that cannot be read":  {`down`, nil, errDown},
		"two families on two interfaces": {`[{"name":"vlan50","ips":["192.0.2.1/24","2001:db8::1/64"]}]`, []Claim{claim("192.0.2.1", "master enp1s0.50"), claim("2001:db8::1", "master enp1s0.50")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Claims(asking(row.networks), lookup)
			if !errors.Is(err, row.err) {
				t.Errorf("got error %v, want %v", err, row.err)
			}
			if diff := cmp.Diff(row.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	mine, err := Claims(asking(`[{"name":"vlan50","ips":["192.0.2.1/24"]}]`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		networks string
		want     int
	}{
		"the same address on the same wire by another network": {`[{"name":"other","namespace":"b","ips":["192.0.2.1/24"]}]`, 1},
		"the same address with another prefix":                 {`[{"name":"vlan50","ips":["192.0.2.1/25"]}]`, 1},
		"the same address on another wire":                     {`[{"name":"static","ips":["192.0.2.1/24"]}]`, 0},
		"another address":                                      {`[{"name":"vlan50","ips":["192.0.2.2/24"]}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, err := Claims(asking(row.networks), lookup)
			if err != nil {
				t.Fatal(err)
			}
			if got := Overlaps(mine, theirs); len(got) != row.want {
				t.Errorf("got %v, want %d", got, row.want)
			}
		})
	}
}

// What lies on one wire, whatever the plugin calls it.
func TestSegment(t *testing.T) {
	t.Parallel()
	selection := multus.Selection{NetworkSelectionElement: nadv1.NetworkSelectionElement{Namespace: "a", Name: "net"}}
	for want, confs := range map[string][]multus.NetConf{
		"master enp1s0.50": {{Type: "macvlan", Master: "enp1s0.50"}, {Type: "ipvlan", Master: "enp1s0.50"}, {Type: "vlan", Master: "enp1s0", VLANID: 50}},
		"master enp1s0.51": {{Type: "vlan", Master: "enp1s0", VLANID: 51}},
		"master enp1s0":    {{Type: "macvlan", Master: "enp1s0"}},
		"master br0":       {{Type: "bridge", Bridge: "br0"}, {Type: "macvlan", Master: "br0"}},
		"master br0.7":     {{Type: "bridge", Bridge: "br0", VLAN: 7}},
		"master cni0":      {{Type: "bridge"}},
		"network a/net":    {{Type: "host-device"}, {}},
	} {
		for _, conf := range confs {
			if got := Segment(selection, conf); got != want {
				t.Errorf("%+v: got %q, want %q", conf, got, want)
			}
		}
	}
}

func TestFinished(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false, "": false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		if got := Finished(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("%q: got %v", phase, got)
		}
	}
}

// An address that IPAM chose is claimed as well, on its own network alone.
func TestClaimsOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	pod := asking(`vlan50`)
	pod.Annotations[nadv1.NetworkStatusAnnot] = `[{"name":"cbr0","interface":"eth0","ips":["10.42.0.9"],"default":true},{"name":"a/vlan50","interface":"net1","ips":["192.0.2.9","not an address"]}]`
	got, err := Claims(pod, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Claim{claim("192.0.2.9", "master enp1s0.50")}, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Multus counts networks of its own as well.
	pod.Annotations[nadv1.NetworkStatusAnnot] = strings.ReplaceAll(pod.Annotations[nadv1.NetworkStatusAnnot], "net1", "net2")
	if got, err = Claims(pod, lookup); err != nil || len(got) != 1 {
		t.Errorf("held on an interface that Multus named: %v (%v)", got, err)
	}
	pod.Annotations[nadv1.NetworkAttachmentAnnot] = `[{"name":"vlan50","ips":["192.0.2.9/24"]}]`
	if got, err = Claims(pod, lookup); err != nil || len(got) != 1 {
		t.Errorf("asked for and held: %v (%v)", got, err)
	}
}
