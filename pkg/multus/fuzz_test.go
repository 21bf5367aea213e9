package multus

import (
	"strings"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
)

func FuzzParseFailure(f *testing.F) {
	for _, seed := range []string{
		`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "x": plugin type="multus-shim" name="n" failed (add): CmdAdd (shim): CNI request failed with status 400: 'ContainerID:"x" ERRORED: error configuring pod [ns/pod] networking: [ns/pod/uid:net]: error adding container to network "net": delegateAdd: error invoking confAdd - "macvlan": boom` + "\n': StdinData: {}",
		`(combined from similar events): Failed create pod sandbox: rpc error: code = X desc = [failed to set up sandbox container "x" network for pod "p": networkPlugin cni failed to set up pod "p_n" network: y, failed to clean up sandbox container "x"]`,
		`error killing pod: failed to "KillPodSandbox" for "uid" with KillPodSandboxError: "rpc error: code = U desc = \"`,
		`Error syncing pod, skipping: failed to "CreatePodSandbox" for "x" with E: "\x1b[31m`,
		`failed to create pod network sandbox k8s_a_b_c_0(d): error adding pod b_a to CNI network "n": Multus: [b/a]: x`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := ParseFailure(message)
		if len(got.Layers) > 2*maxLayers {
			t.Errorf("%d layers", len(got.Layers))
		}
		// Only kubelet's quoted errors are unquoted; nothing else is made up.
		if !strings.Contains(Plain(message), got.Text) && !strings.Contains(message, `"`) {
			t.Errorf("text %q is not in the message", got.Text)
		}
		got.Network()
		got.Innermost()
	})
}

func FuzzParseAdded(f *testing.F) {
	f.Add("Add net1 [192.0.2.1/24 2001:db8::1/64] from a/b")
	f.Add(CombinedPrefix + "Add net1 []")
	f.Fuzz(func(t *testing.T, message string) {
		a, ok := ParseAdded(message)
		if ok && (a.Interface == "" || !strings.Contains(Plain(message), a.Interface)) {
			t.Errorf("interface %q", a.Interface)
		}
	})
}

func FuzzRequestedNetworks(f *testing.F) {
	for _, seed := range []string{"a/b@c,d", `[{"name":"a","ips":["192.0.2.1/24"],"cni-args":{"ips":[1,null]}}]`, "[null]", `[{"name":"a","portMappings":[null]}]`, "[[]]"} {
		f.Add(seed, `{"type":"macvlan","ipam":{"type":"static","addresses":[{"address":"192.0.2.1/24"}]}}`)
	}
	f.Fuzz(func(t *testing.T, annotation, config string) {
		sels, err := RequestedNetworks(podWith(nadv1.NetworkAttachmentAnnot, annotation))
		if err == nil && len(sels) == 0 && strings.TrimSpace(annotation) != "null" && !strings.HasPrefix(strings.TrimSpace(annotation), "[") {
			t.Error("neither networks nor an error")
		}
		conf, _ := ParseNetConf(config)
		for _, s := range sels {
			if s.Name == "" || s.Namespace == "" || s.Interface == "" {
				t.Errorf("selection %+v", s)
			}
			for _, a := range RequestedAddresses(s, conf) {
				if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
					t.Errorf("address %v", a)
				}
			}
			AddressErrors(s)
		}
	})
}

func FuzzNetworkStatus(f *testing.F) {
	f.Add(`[{"name":"a/b","interface":"net1","ips":["192.0.2.1"],"dns":{}}]`)
	f.Add(`[{"device-info":{"pci":null}},null]`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = NetworkStatus(podWith(nadv1.NetworkStatusAnnot, text))
		_, _ = NetworkStatus(podWith(LegacyStatusAnnot, text))
	})
}

func FuzzAttachState(f *testing.F) {
	f.Add(realLog)
	f.Add("2026-03-03T08:59:44Z [verbose] [error] started to watch file /x\r\n")
	f.Fuzz(func(t *testing.T, log string) {
		s := AttachReady(log)
		if s.Ready() && !strings.Contains(log, logWatching) {
			t.Error("ready without the line that says so")
		}
	})
}
