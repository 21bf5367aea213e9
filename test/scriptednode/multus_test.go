package scriptednode

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"k8s.io/apimachinery/pkg/types"
)

func testID() podID {
	return podID{
		NamespacedName: types.NamespacedName{Namespace: "downloads", Name: "vlan50-canary"},
		uid:            "11111111-2222-4333-8444-555555555555",
	}
}

const testSandbox = sandboxID("c0ffee0000000000000000000000000000000000000000000000000000a501d0")

// Each text is the whole message of a kubelet event, written out, so that a
// change of any layer shows.
func TestAddError(t *testing.T) {
	const (
		kubelet = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
		runtime = `failed to setup network for sandbox "c0ffee0000000000000000000000000000000000000000000000000000a501d0": `
		libcni  = `plugin type="multus-shim" name="multus-cni-network" failed (add): `
		shim    = "CmdAdd (shim): CNI request failed with status 400: '"
		daemon  = `ContainerID:"c0ffee0000000000000000000000000000000000000000000000000000a501d0" Netns:"/var/run/netns/cni-c0ffee00-0000-0000-0000-000000000000" ` +
			`IfName:"eth0" Args:"IgnoreUnknown=1;K8S_POD_NAMESPACE=downloads;K8S_POD_NAME=vlan50-canary;` +
			`K8S_POD_INFRA_CONTAINER_ID=c0ffee0000000000000000000000000000000000000000000000000000a501d0;` +
			`K8S_POD_UID=11111111-2222-4333-8444-555555555555" Path:"" ERRORED: error configuring pod [downloads/vlan50-canary] networking: `
		end = "\n': StdinData: {conf}"
		who = "downloads/vlan50-canary/11111111-2222-4333-8444-555555555555"
	)
	for name, row := range map[string]struct {
		fault Fault
		want  string
	}{
		"runtime cannot find the shim": {
			Fault{Layer: LayerRuntime, Text: missingPlugin("multus-shim", "/opt/cni/bin")},
			kubelet + runtime + libcni + `failed to find plugin "multus-shim" in path [/opt/cni/bin]`,
		},
		"shim finds no daemon": {
			Fault{Layer: LayerShim, Text: daemonSilent},
			kubelet + runtime + libcni + "CmdAdd (shim): timed out waiting for the condition",
		},
		"network is not there": {
			missingNetwork(types.NamespacedName{Namespace: "downloads", Name: "vlan50"}),
			kubelet + runtime + libcni + shim + daemon + "Multus: [" + who + "]: error loading k8s delegates k8s args: TryLoadPodDelegates: " +
				"error in getting k8s network for pod: GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: " +
				"cannot find a network-attachment-definition (vlan50) in namespace (downloads): " +
				`networkattachmentdefinition.k8s.cni.cncf.io "vlan50" not found` + end,
		},
		"primary plugin is not there": {
			Fault{Layer: LayerPrimary, Text: missingPlugin("flannel", "/opt/cni/bin")},
			kubelet + runtime + libcni + shim + daemon + "[" + who + `:cbr0]: error adding container to network "cbr0": ` +
				`plugin type="flannel" failed (add): failed to find plugin "flannel" in path [/opt/cni/bin]` + end,
		},
		"macvlan is not there": {
			Fault{Layer: LayerSecondary, Text: missingPlugin("macvlan", "/var/lib/rancher/k3s/data/cni")},
			kubelet + runtime + libcni + shim + daemon + "[" + who + `:vlan50]: error adding container to network "vlan50": ` +
				`failed to find plugin "macvlan" in path [/var/lib/rancher/k3s/data/cni]` + end,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := addError(row.fault, testID(), testSandbox, cniNetwork{"cbr0", "vlan50"}, "{conf}")
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDelError(t *testing.T) {
	want := `error killing pod: failed to "KillPodSandbox" for "11111111-2222-4333-8444-555555555555" with KillPodSandboxError: ` +
		`"rpc error: code = Unknown desc = failed to destroy network for sandbox \"c0ffee0000000000000000000000000000000000000000000000000000a501d0\": ` +
		`plugin type=\"multus-shim\" name=\"multus-cni-network\" failed (delete): netplugin failed with no error message: signal: killed"`
	got := delError(testID().uid, testSandbox, "netplugin failed with no error message: signal: killed")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func testAttachments() []attachment {
	return []attachment{
		{
			network: "cbr0", iface: "eth0", primary: true,
			addresses: []netip.Prefix{netip.MustParsePrefix("10.42.0.5/24")}, gateway: netip.MustParseAddr("10.42.0.1"),
		},
		{network: "downloads/vlan50", iface: "net1", addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.100/24")}},
	}
}

func TestAddedInterfaceMessage(t *testing.T) {
	var got []string
	for _, a := range append(testAttachments(), attachment{network: "downloads/l2", iface: "net2"}) {
		got = append(got, a.message())
	}
	want := []string{
		"Add eth0 [10.42.0.5/24] from cbr0",
		"Add net1 [192.0.2.100/24] from downloads/vlan50",
		"Add net2 [] from downloads/l2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNetworkStatus(t *testing.T) {
	want := []nadv1.NetworkStatus{
		{Name: "cbr0", Interface: "eth0", IPs: []string{"10.42.0.5"}, Mac: "02:00:0a:2a:00:05", Default: true, Gateway: []string{"10.42.0.1"}},
		{Name: "downloads/vlan50", Interface: "net1", IPs: []string{"192.0.2.100"}, Mac: "02:00:c0:00:02:64"},
	}
	if diff := cmp.Diff(want, networkStatus(testAttachments())); diff != "" {
		t.Error(diff)
	}
}

func TestSandboxIDs(t *testing.T) {
	first, again, second := newSandboxID("u", 1), newSandboxID("u", 1), newSandboxID("u", 2)
	if len(first) != 64 || first != again || first == second {
		t.Errorf("ids must be 64 digits long, stable and distinct: %s %s %s", first, again, second)
	}
}

func TestDaemonLogLines(t *testing.T) {
	abroad := noon.In(time.FixedZone("", 3600))
	if got, want := logLine(abroad, "API readiness check done!"), "2026-01-15T12:00:00Z [verbose] API readiness check done!"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := watchLine(Reference()), "started to watch file /host/etc/cni/net.d/10-flannel.conflist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
