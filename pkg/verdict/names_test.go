package verdict

import (
	"strings"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// twoNetworks lets the canary ask for a second network, which is there, on another
// parent and with a conf of another name.
func twoNetworks() change {
	return func(e *evidence.Evidence) {
		networks("storage,second")(e)
		second := nadv1.NetworkAttachmentDefinition{ObjectMeta: *e.Networks[0].ObjectMeta.DeepCopy()}
		second.Name = "second"
		second.Spec.Config = `{"cniVersion":"1.0.0","name":"second-net","type":"macvlan","master":"eth7","ipam":{"type":"static"}}`
		e.Networks = append(e.Networks, second)
	}
}

// What to do next names the network at fault, not the first one asked for.
func TestNextNamesTheNetworkAtFault(t *testing.T) {
	t.Parallel()
	missing := func(name string) string {
		return `error loading k8s delegates k8s args: cannot find a network-attachment-definition (` + name + `) in namespace (lab): network-attachment-definitions.k8s.cni.cncf.io "` + name + `" not found`
	}
	for name, row := range map[string]struct {
		changes []change
		cause   Cause
		names   []string
		not     string
	}{
		"the second is missing": {
			[]change{networks("storage,second"), failing(containerd(thin(own(missing("second"))[0])))}, NADNotFound, []string{"create lab/second"}, "lab/storage",
		},
		"the first is missing": {
			[]change{noNetworks(), networks("storage,second"), failing(containerd(thin(own(missing("storage"))[0])))}, NADNotFound, []string{"create lab/storage"}, "lab/second",
		},
		"the second has no parent": {
			[]change{twoNetworks(), failing(containerd(thin(delegate("second-net", "Link not found")[0])))}, MasterLinkMissing, []string{"eth7", "lab/second"}, "lab/storage",
		},
		"the second does not reach its gateway": {
			[]change{
				twoNetworks(), attached(), status(`[{"name":"lab/storage","interface":"net1","ips":["` + address + `"]},{"name":"lab/second","interface":"net2","ips":["203.0.113.7"]}]`),
				guardSays("no reply from the gateway via net2"),
			},
			L2Unreachable,
			[]string{"behind eth7"},
			"storage",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(build(row.changes...), start.Add(2*time.Minute))
			if got.Cause != row.cause {
				t.Fatalf("%s: %s", got.Cause, got.Message)
			}
			for _, want := range row.names {
				if !strings.Contains(got.Next, want) {
					t.Errorf("next does not name %s: %s", want, got.Next)
				}
			}
			if strings.Contains(got.Next, row.not) {
				t.Errorf("next names %s: %s", row.not, got.Next)
			}
		})
	}
}

// Networks that Multus' own configuration adds to every Pod come before those that
// the canary asks for, and take the first numbers.
func TestInterfacesThatMultusNames(t *testing.T) {
	t.Parallel()
	const audit = "10.99.0.5"
	shifted := `[{"name":"cluster-net","interface":"eth0","ips":["10.1.2.3"],"default":true},{"name":"kube-system/audit","interface":"net1","ips":["` + audit + `"]},{"name":"lab/storage","interface":"net2","ips":["` + address + `"]}]`
	added := func(ifname, ip, network string) change {
		return event(3*time.Second, "AddedInterface", "Add "+ifname+" ["+ip+"/24] from "+network, "multus")
	}
	for name, row := range map[string]struct {
		changes []change
		cause   Cause
		ifname  string
	}{
		"a network of a definition before it": {[]change{eth0(1), added("net1", audit, "kube-system/audit"), added("net2", address, "lab/storage"), status(shifted), started(5 * time.Second), done()}, OK, "net2"},
		"a network of a conf file before it": {[]change{
			eth0(1), added("net1", audit, "audit"), added("net2", address, "lab/storage"),
			status(strings.ReplaceAll(shifted, "kube-system/audit", "audit")), started(5 * time.Second), done(),
		}, OK, "net2"},
		"its own at another address": {[]change{eth0(1), added("net1", address, "kube-system/audit"), added("net2", audit, "lab/storage"), status(
			strings.NewReplacer(audit, address, address, audit).Replace(shifted)), started(5 * time.Second), done()}, StaticIPMissing, ""},
		"an interface that was asked for is no other": {[]change{
			networks("storage@net1"), eth0(1), added("net2", address, "lab/storage"),
			status(strings.ReplaceAll(shifted, `"net1"`, `"net9"`)), started(5 * time.Second), done(),
		}, EvidenceIncomplete, ""},
		"nothing before it": {[]change{attached(), done()}, OK, "net1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(build(row.changes...), start.Add(3*time.Minute))
			if got.Cause != row.cause || got.Interface != row.ifname {
				t.Errorf("%s on %q: %s", got.Cause, got.Interface, got.Message)
			}
		})
	}
}
