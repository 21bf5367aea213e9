package multus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	kubeletWords = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
	longID       = "5ca1ab1e00000000000000000000000000000000000000000000000000000001"
)

func TestParseFailure(t *testing.T) {
	k := []Layer{{LayerKubelet, ""}, {LayerKubelet, "Unknown"}}
	layers := func(more ...Layer) []Layer { return append(append([]Layer{}, k...), more...) }
	for name, row := range map[string]struct {
		message string
		want    Failure
	}{
		"containerd, thin, delegate": {
			kubeletWords + `failed to setup network for sandbox "` + longID + `": plugin type="multus" name="multus-cni-network" failed (add): [ns/pod/uid-1:vlan50]: error adding container to network "vlan50": Link not found`,
			Failure{Layers: layers(Layer{LayerRuntime, Containerd}, Layer{LayerPlugin, "multus"}, Layer{LayerDelegate, "vlan50"}), Text: "Link not found"},
		},
		"combined, thick, conflist delegate": {
			CombinedPrefix + kubeletWords + `failed to setup network for sandbox "x": plugin type="multus-shim" name="n" failed (add): CmdAdd (shim): CNI request failed with status 400: 'ContainerID:"x" Netns:"/n" IfName:"eth0" Args:"a" Path:"" ERRORED: error configuring pod [ns/pod] networking: [ns/pod/uid:cbr0]: error adding container to network "cbr0": plugin type="flannel" failed (add): failed to find plugin "flannel" in path [/opt/cni/bin]` + "\n': StdinData: {\"a\":\"'b': StdinData\"}",
			Failure{Combined: true, Layers: layers(Layer{LayerRuntime, Containerd}, Layer{LayerPlugin, "multus-shim"}, Layer{LayerShim, ""}, Layer{LayerDaemon, ""}, Layer{LayerDelegate, "cbr0"}, Layer{LayerPlugin, "flannel"}), Text: `failed to find plugin "flannel" in path [/opt/cni/bin]`},
		},
		"cri-o, Multus' own words": {
			kubeletWords + `failed to create pod network sandbox k8s_pod_ns_uid_0(` + longID + `): error adding pod ns_pod to CNI network "multus-cni-network": plugin type="multus" name="multus-cni-network" failed (add): Multus: [ns/pod/uid]: error getting pod: Unauthorized`,
			Failure{Layers: layers(Layer{LayerRuntime, CRIO}, Layer{LayerRuntime, CRIO}, Layer{LayerPlugin, "multus"}, Layer{LayerMultus, ""}), Text: "error getting pod: Unauthorized"},
		},
		"dockershim, a list with the cleanup's error": {
			"Failed create pod sandbox: rpc error: code = Unknown desc = " + `[failed to set up sandbox container "x" network for pod "pod": networkPlugin cni failed to set up pod "pod_ns" network: [ns/pod:net]: error adding container to network "net": delegateAdd: error invoking DelegateAdd - "sriov": error in getting result from AddNetwork: no VF, failed to clean up sandbox container "x" network for pod "pod": networkPlugin cni failed to teardown pod "pod_ns" network: other]`,
			Failure{Layers: layers(Layer{LayerRuntime, Dockershim}, Layer{LayerRuntime, Dockershim}, Layer{LayerDelegate, "net"}), Text: "no VF"},
		},
		"teardown, quoted by kubelet": {
			`error killing pod: failed to "KillPodSandbox" for "uid" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \"x\": plugin type=\"multus\" failed (delete): Multus: error getting k8s client: gone"`,
			Failure{Teardown: true, Layers: layers(Layer{LayerRuntime, Containerd}, Layer{LayerPlugin, "multus"}, Layer{LayerMultus, ""}), Text: "error getting k8s client: gone"},
		},
		"teardown, cut short in its quotes": {
			`error killing pod: failed to "KillPodSandbox" for "uid" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \"x\": plugin type=\"port`,
			Failure{Teardown: true, Layers: layers(Layer{LayerRuntime, Containerd}), Text: `plugin type="port`},
		},
		"v3, bare prefix before the delegate": {
			`Multus: [ns/pod]: error adding container to network "net": boom`,
			Failure{Layers: []Layer{{LayerMultus, ""}, {LayerDelegate, "net"}}, Text: "boom"},
		},
		"v2": {
			`Multus: Err adding pod to network "net": cannot set "" ifname`,
			Failure{Layers: []Layer{{LayerMultus, ""}, {LayerDelegate, "net"}}, Text: `cannot set "" ifname`},
		},
		"check, without any plugin": {
			kubeletWords + `failed to get network status for pod sandbox k8s_pod_ns_uid_0(x): delegateCheck: error invoking ConflistCheck - "cbr0": conflistCheck: error in getting result from CheckNetworkList: nope`,
			Failure{Layers: layers(Layer{LayerRuntime, CRIO}, Layer{LayerDelegate, "cbr0"}), Text: "nope"},
		},
		"a wrapper nobody knows": {
			`Failed to create pod sandbox: the runtime of tomorrow says (7): plugin type="multus" failed (add): Multus: [a/b/c]: x`,
			Failure{Layers: []Layer{{LayerKubelet, ""}, {LayerPlugin, "multus"}, {LayerMultus, ""}}, Text: "x"},
		},
		"nothing known at all": {"hello", Failure{Text: "hello"}},
		"empty":                {"", Failure{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, ParseFailure(row.message)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDelegateMayNotPlayMultus: words behind the delegate are its own, whatever
// they look like.
func TestDelegateMayNotPlayMultus(t *testing.T) {
	f := ParseFailure(`Multus: [a/b/c]: error adding container to network "net": the agent said Multus: [x/y/z]: Unauthorized`)
	if f.Text != "the agent said Multus: [x/y/z]: Unauthorized" || f.Network() != "net" {
		t.Errorf("text %q, network %q", f.Text, f.Network())
	}
}

func TestParseFailureEnds(t *testing.T) {
	for _, unit := range []string{`plugin type="x" failed (add): `, "CmdAdd (shim): ", "[a/b:c]: ", "Multus: ", `rpc error: code = X desc = `, `"`, "[", "(combined from similar events): "} {
		f := ParseFailure(strings.Repeat(unit, 50_000))
		if len(f.Layers) > 2*maxLayers {
			t.Errorf("%d layers of %q", len(f.Layers), unit)
		}
	}
}

func TestParseAdded(t *testing.T) {
	for message, want := range map[string]string{
		"Add eth0 [10.42.0.5/24] from cbr0":                       "eth0 [10.42.0.5] cbr0",
		"Add net1 [192.0.2.100/24 2001:DB8::64/64] from a/vlan50": "net1 [192.0.2.100 2001:db8::64] a/vlan50",
		"Add net1 [] from downloads/vlan50":                       "net1 [] downloads/vlan50",
		"Add net1 []":                                             "net1 [] ",
		CombinedPrefix + "Add net1 [192.0.2.1/24] from a/b":       "net1 [192.0.2.1] a/b",
		"Add net1 [::ffff:192.0.2.1/120] from a/b":                "net1 [192.0.2.1] a/b",
		"Add net1 [192.0.2.1/24 nonsense] from a/b":               "net1 [192.0.2.1] a/b",
		"Add net1":                     "no",
		"Add  [192.0.2.1/24]":          "no",
		"Add net1 [192.0.2.1/24":       "no",
		"Add two words [192.0.2.1/24]": "no",
		"Added net1 [192.0.2.1/24]":    "no",
		"Failed to create pod sandbox: Add net1 [192.0.2.1/24] bla": "no",
	} {
		got := "no"
		if a, ok := ParseAdded(message); ok {
			got = fmt.Sprintf("%s %v %s", a.Interface, a.Addresses, a.Network)
		}
		if got != want {
			t.Errorf("%q gave %q, want %q", message, got, want)
		}
	}
}
