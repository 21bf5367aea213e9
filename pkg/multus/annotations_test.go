package multus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podWith(key, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Annotations: map[string]string{key: value}}}
}

func TestRequestedNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"vlan50":                               "downloads/vlan50@net1",
		" vlan50 , media/other@data_0 ":        "downloads/vlan50@net1 media/other@data_0",
		"vlan50@Net.7":                         "downloads/vlan50@Net.7",
		`[{"name":"vlan50"}]`:                  "downloads/vlan50@net1",
		`[{"name":"a"},{"name":"b"}]`:          "downloads/a@net1 downloads/b@net2",
		`[{"name":"a","namespace":"media"}]`:   "media/a@net1",
		`[{"name":"a","interface":"storage"}]`: "downloads/a@storage",
		"\n[\n{\"name\":\"a\"}]\n":             "downloads/a@net1",
		`[null]`:                               "error: entry 1 is null",
		`[{"name":"a"}, null]`:                 "error: entry 2 is null",
		`[{"name":"a",}]`:                      "error: not a JSON list",
		`{"name":"a"}`:                         "error: not a JSON list",
		`[{"namespace":"media"}]`:              "error: entry 1 names no network",
		`"vlan50"`:                             "error: not a JSON list",
		"vlan50,":                              "error: an entry names no network",
		"a/b/c":                                "error: ",
		"VLAN50":                               "error: ",
		"vlan50@":                              "error: ",
		"vlan50@an-interface-name-too-long":    "error: ",
		"vlan50@a@b":                           "error: ",
		`[{"name":"a","ips":["192.0.2.1/24"],"ipam-claim-reference":"c"}]`: "error: ",
	} {
		got, err := RequestedNetworks(podWith(nadv1.NetworkAttachmentAnnot, text))
		var parts []string
		for _, s := range got {
			parts = append(parts, s.Network()+"@"+s.Interface)
		}
		have := strings.Join(parts, " ")
		if err != nil {
			have = "error: " + strings.TrimPrefix(err.Error(), "annotation "+nadv1.NetworkAttachmentAnnot+": ")
		}
		if have != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(have, want)) {
			t.Errorf("%q gave %q, want %q", text, have, want)
		}
		if strings.Contains(have, "\n") {
			t.Errorf("%q gave an error of several lines", text)
		}
	}
	for _, pod := range []*corev1.Pod{{}, podWith(nadv1.NetworkAttachmentAnnot, "  ")} {
		if _, err := RequestedNetworks(pod); !errors.Is(err, ErrNoNetworks) {
			t.Errorf("a Pod without networks gave %v", err)
		}
	}
}

func TestNetworkStatus(t *testing.T) {
	const text = `[{"name":"cbr0","interface":"eth0","default":true,"dns":{}},{"name":"downloads/vlan50","interface":"net1","ips":["192.0.2.100"],"dns":{}}]`
	both := podWith(nadv1.NetworkStatusAnnot, text)
	both.Annotations[LegacyStatusAnnot] = "[]"
	for name, row := range map[string]struct {
		pod             *corev1.Pod
		entries         int
		present, legacy bool
	}{
		"the present key":           {podWith(nadv1.NetworkStatusAnnot, text), 2, true, false},
		"the old key":               {podWith(LegacyStatusAnnot, text), 2, true, true},
		"both: the present one":     {both, 2, true, false},
		"several lines":             {podWith(nadv1.NetworkStatusAnnot, strings.ReplaceAll(text, ",", ",\n    ")), 2, true, false},
		"none":                      {&corev1.Pod{}, 0, false, false},
		"JSON null is present":      {podWith(nadv1.NetworkStatusAnnot, "null"), 0, true, false},
		"an empty list is present,": {podWith(nadv1.NetworkStatusAnnot, "[]"), 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := NetworkStatus(row.pod)
			if err != nil || len(st.Entries) != row.entries || st.Present != row.present || st.Legacy != row.legacy {
				t.Errorf("got %+v, %v", st, err)
			}
		})
	}
	if st, err := NetworkStatus(podWith(nadv1.NetworkStatusAnnot, "[{")); err == nil || !st.Present {
		t.Errorf("broken JSON gave %+v, %v", st, err)
	}
}

func TestRequestedAddresses(t *testing.T) {
	const static = `{"type":"macvlan","ipam":{"type":"static","addresses":[{"address":"192.0.2.9/24"},{"address":"2001:db8::9/64"}]}}`
	for name, row := range map[string]struct{ annotation, config, want string }{
		"ips with prefix":           {`[{"name":"n","ips":["192.0.2.1/24"]}]`, `{"type":"macvlan"}`, "[192.0.2.1]"},
		"ips without prefix":        {`[{"name":"n","ips":["192.0.2.1"]}]`, `{"type":"macvlan"}`, "[192.0.2.1]"},
		"dual stack":                {`[{"name":"n","ips":["192.0.2.1/24","2001:0db8:0::1/64"]}]`, `{"type":"macvlan"}`, "[192.0.2.1 2001:db8::1]"},
		"cni-args, a list":          {`[{"name":"n","cni-args":{"ips":["192.0.2.2/24"]}}]`, static, "[192.0.2.2]"},
		"cni-args, text":            {`[{"name":"n","cni-args":{"ips":"192.0.2.2/24,2001:db8::2/64"}}]`, static, "[192.0.2.2 2001:db8::2]"},
		"cni-args of another shape": {`[{"name":"n","cni-args":{"ips":7}}]`, static, "[192.0.2.9 2001:db8::9]"},
		"ips outrank the config":    {`[{"name":"n","ips":["192.0.2.1/24"]}]`, static, "[192.0.2.1]"},
		"config of the network":     {"n", static, "[192.0.2.9 2001:db8::9]"},
		"config in a list":          {"n", `{"name":"x","plugins":[` + static + `,{"type":"tuning"}]}`, "[192.0.2.9 2001:db8::9]"},
		"another IPAM's addresses":  {"n", `{"type":"macvlan","ipam":{"type":"whereabouts","addresses":[{"address":"192.0.2.9/24"}]}}`, "[]"},
		"nonsense is left out":      {`[{"name":"n","ips":["192.0.2.1/24","x"]}]`, `{"type":"macvlan"}`, "[192.0.2.1]"},
		"nothing asked for":         {"n", `{"type":"macvlan"}`, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			sels, err := RequestedNetworks(podWith(nadv1.NetworkAttachmentAnnot, row.annotation))
			if err != nil {
				t.Fatal(err)
			}
			conf, err := ParseNetConf(row.config)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(RequestedAddresses(sels[0], conf)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestAddressErrors(t *testing.T) {
	sels, err := RequestedNetworks(podWith(nadv1.NetworkAttachmentAnnot, `[{"name":"n","ips":["192.0.2.1/24","192.0.2.2","fe80::1%eth0","pear"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(AddressErrors(sels[0])); got != `["192.0.2.2" has no prefix length "fe80::1%eth0" has no prefix length "pear" is no IP address]` {
		t.Errorf("got %s", got)
	}
}

func TestParseNetConf(t *testing.T) {
	for name, row := range map[string]struct{ config, want string }{
		"single":                           {`{"name":"n","type":"macvlan","master":"eth1","capabilities":{"ips":true}}`, "n macvlan eth1 1 true"},
		"list":                             {`{"name":"n","plugins":[{"type":"ipvlan","master":"eth1"},{"type":"tuning"}]}`, "n ipvlan eth1 2 false"},
		"a field of another plugin's type": {`{"name":"n","type":"macvlan","master":"eth1","mode":7}`, "n macvlan eth1 1 false"},
		"empty":                            {" \n", "error"},
		"not JSON":                         {`{"type":"macvlan",}`, "error"},
		"an array":                         {`[{"type":"macvlan"}]`, "error"},
		"no type":                          {`{"name":"n"}`, "error"},
		"first plugin without type":        {`{"name":"n","plugins":[{}]}`, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseNetConf(row.config)
			got := fmt.Sprintf("%s %s %s %d %v", c.Name, c.Type, c.Master, len(c.Plugins), c.Capabilities["ips"])
			if err != nil {
				got = "error"
			}
			if got != row.want {
				t.Errorf("got %s (%v), want %s", got, err, row.want)
			}
		})
	}
	if _, err := ParseNetConf(""); !errors.Is(err, ErrNoConfig) {
		t.Errorf("an empty config gave %v", err)
	}
}
