package verdict

import (
	"fmt"
	"testing"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// said by whom, in the tables below.
const (
	byMultus    = "multus"
	byPrimary   = "cluster-net"
	bySecondary = "storage-net"
)

// attachRows are the faults that a failure message names, in the innermost
// words alone; the test puts every wrapper around them.
var attachRows = []struct {
	cause Cause
	by    string
	text  string
	with  change
}{
	{DelegatePluginMissing, bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin /opt/cni/bin]`, nil},
	{DelegatePluginMissing, bySecondary, `failed to find plugin "static" in path [/usr/libexec/cni]`, nil},
	{DelegatePluginMissing, bySecondary, `failed to find plugin "whereabouts" in path []`, eth0(2)},
	{DuplicateAddress, bySecondary, `failed to settle addresses for "net1": link net1 has address 2001:db8::100 in DADFAILED state`, nil},
	{PrimaryPluginUnresolved, byPrimary, `failed to find plugin "flannel" in path [/opt/cni/bin]`, nil},
	{PrimaryPluginUnresolved, byPrimary, `failed to find plugin "portmap" in path [/var/lib/rancher/k3s/data/cni]`, nil},
	{DelegateCrashed, bySecondary, `netplugin failed with no error message: signal: segmentation fault`, nil},
	{DelegateCrashed, byPrimary, `netplugin failed: "panic: runtime error: invalid memory address"`, nil},
	{DelegateCrashed, bySecondary, `netplugin failed but error parsing its diagnostic message "": unexpected end of JSON input`, nil},
	{DelegateCrashed, bySecondary, `failed to unmarshal raw result: unexpected end of JSON input`, nil},
	{CNIVersionIncompatible, bySecondary, `incompatible CNI versions; config is "1.1.0", plugin supports ["0.1.0" "0.3.1" "0.4.0"]`, nil},
	{CNIVersionIncompatible, byPrimary, `unsupported CNI result version "1.1.0"`, nil},
	{DelegateCrashed, bySecondary, `netplugin failed: "dlopen: cannot load shared object"`, nil},
	{CNIVersionIncompatible, byPrimary, `cannot convert version ["0.3.0" "0.3.1"] to 0.1.0`, nil},
	{CNIVersionIncompatible, byMultus, `configuration version "0.3.1" does not support the CHECK command`, nil},
	{CNIVersionIncompatible, bySecondary, `plugin version does not allow CHECK`, nil},
	{CNIVersionIncompatible, byMultus, `config version does not allow GC`, nil},
	{CNIVersionIncompatible, bySecondary, `CNI version 0.2.0 does not support more than 1 address per family`, nil},
	{DelegateCrashed, byMultus, `netplugin failed with no error message: signal: segmentation fault`, nil},
	{DelegateCrashed, byMultus, `netplugin failed: "panic: runtime error: index out of range"`, nil},
	{MultusNotPrivileged, bySecondary, `open /proc/sys/net/ipv6/conf/net1/accept_dad: read-only file system`, nil},
	{MultusNotPrivileged, bySecondary, `failed to create macvlan: operation not permitted`, nil},
	{MultusNotPrivileged, byPrimary, `DelegateAdd: cannot set "" interface name to "eth0": error switching to ns /run/netns/cni-1: operation not permitted`, nil},
	{HostLSMDenied, bySecondary, `failed to open netns "/var/run/netns/cni-1": permission denied`, nil},
	{HostLSMDenied, byPrimary, `fork/exec /opt/cni/bin/flannel: permission denied`, nil},
	{HostLSMDenied, bySecondary, `netplugin failed: "/opt/cni/bin/macvlan: error while loading shared libraries: libc.so.6: cannot restore segment prot after reloc: Permission denied"`, nil},
	{MultusSelfDelegation, "multus-cni-network", `failed to find plugin "x" in path [/opt/cni/bin]`, nil},
	{MultusSelfDelegation, byPrimary, `failed to find plugin "multus-shim" in path [/opt/cni/bin]`, nil},
	{MultusTokenExpired, byMultus, `error getting pod: Unauthorized`, nil},
	{MultusTokenExpired, byMultus, `error waiting for pod: the server has asked for the client to provide credentials`, nil},
	{MultusTokenExpired, byMultus, `error loading k8s delegates k8s args: cannot find a network-attachment-definition (storage) in namespace (lab): Unauthorized`, nil},
	{MultusCAMismatch, byMultus, `error waiting for pod: Get "https://10.0.0.1:443/api": tls: failed to verify certificate: x509: certificate has expired or is not yet valid`, nil},
	{MultusCAMismatch, byMultus, `error getting pod: Get "https://10.0.0.1:443/api": x509: certificate is valid for 10.0.0.2, not 10.0.0.1`, nil},
	{MultusRBACMissing, byMultus, `error getting pod: pods "probe" is forbidden: User "system:serviceaccount:net-system:multus" cannot get resource "pods" in API group "" in the namespace "lab"`, nil},
	{MultusRBACMissing, byMultus, `error getting pod: pods "probe" is forbidden: User "system:serviceaccount:net-system:multus" cannot get resource "pods" in API group "" in the namespace "lab": RBAC: clusterrole.rbac.authorization.k8s.io "net-reader" not found`, nil},
	{MultusRBACMissing, byMultus, `error loading k8s delegates k8s args: cannot find a network-attachment-definition (storage) in namespace (lab): network-attachment-definitions.k8s.cni.cncf.io "storage" is forbidden: User "x" cannot get resource "network-attachment-definitions"`, nil},
	{APIServerUnreachable, byMultus, `error getting pod: Get "https://10.0.0.1:443/api/v1/namespaces/lab/pods/probe": dial tcp 10.0.0.1:443: connect: no route to host`, nil},
	{APIServerUnreachable, byMultus, `error waiting for pod: Get "https://10.0.0.1:443/api": net/http: TLS handshake timeout`, nil},
	{APIServerUnreachable, byMultus, `error getting pod: Get "https://kubernetes.default:443/api": dial tcp: lookup kubernetes.default: no such host`, nil},
	{APIServerUnreachable, byMultus, `error getting pod: Get "https://10.0.0.1:443/api": http2: client connection lost`, nil},
	{APIServerUnreachable, byMultus, `error waiting for pod: Get "https://10.0.0.1:443/api": read tcp 10.0.0.7:40000->10.0.0.1:443: read: connection timed out`, nil},
	{APIServerUnreachable, byMultus, `error loading k8s delegates k8s args: cannot find a network-attachment-definition (storage) in namespace (lab): Get "https://10.0.0.1:443/apis": net/http: TLS handshake timeout`, nil},
	{APIServerUnreachable, byMultus, `error loading k8s delegates k8s args: cannot find a network-attachment-definition (storage) in namespace (lab): Get "https://10.0.0.1:443/apis": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, nil},
	{NADNotFound, byMultus, `error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: cannot find a network-attachment-definition (storage) in namespace (lab): network-attachment-definitions.k8s.cni.cncf.io "storage" not found`, nil},
	{NADNotFound, byMultus, `Err in getting k8s network from pod: getPodNetwork: failed getting the delegate: failed to get network resource: network-attachment-definitions.k8s.cni.cncf.io "storage" not found`, nil},
	{NADConfigMissing, byMultus, `error loading k8s delegates k8s args: GetCNIConfig: err in GetCNIConfigFromFile: no network available in the name storage in cni dir /etc/cni/multus/net.d`, nadConfig("")},
	{NADConfigMissing, byMultus, `failed getting the delegate: GetCNIConfig: err in GetCNIConfigFromFile: No networks found in /host/etc/cni/net.d`, nadConfig("  ")},
	{NADConfigInvalid, byMultus, `failed getting the delegate: LoadDelegateNetConf: error unmarshalling delegate config: json: cannot unmarshal number into Go struct field`, nil},
	{NADConfigInvalid, byMultus, `failed getting the delegate: LoadDelegateNetConfList: delegate must have the 'type' or 'plugin' field`, nil},
	{NADConfigInvalid, bySecondary, `error in converting the raw bytes to conf: error parsing configuration: missing 'type'`, nil},
	{NADConfigInvalid, bySecondary, `no plugin name provided`, nil},
	{NADConfigInvalid, bySecondary, `missing network name:; `, nil},
	{NADConfigInvalid, bySecondary, `invalid MTU 65000, must be [0, master MTU(9000)]`, nil},
	{PodAnnotationInvalid, byMultus, `error loading k8s delegates k8s args: parsePodNetworkAnnotation: failed to parse pod Network Attachment Selection Annotation JSON format: invalid character 'x'`, nil},
	{PodAnnotationInvalid, byMultus, `error loading k8s delegates k8s args: failed to parse IP address "198.51.100.777"`, nil},
	{NamespaceIsolation, byMultus, `GetNetworkDelegates: namespace isolation violation: pod namespace: lab / target namespace: media`, nil},
	{NamespaceIsolation, byMultus, `GetNetworkDelegates: namespace isolation enabled, annotation violates permission, pod is in namespace lab but refers to target namespace kube-system`, nil},
	{MasterLinkMissing, bySecondary, `Link not found`, nil},
	{MasterLinkMissing, bySecondary, `failed to lookup master "bond0.71": Link not found`, nil},
	{MasterLinkMissing, bySecondary, `Link bond0.71 not found`, nil},
	{MasterLinkMissing, bySecondary, `no default route interface found`, nil},
	{MacvlanParentBusy, bySecondary, `failed to create macvlan: device or resource busy`, nil},
	{MacvlanParentBusy, bySecondary, `device or resource busy`, eth0(2)},
	{MACAddressInvalid, bySecondary, `failed to create macvlan: cannot assign requested address`, nil},
	{MACAddressInvalid, byMultus, `error loading k8s delegates k8s args: parsePodNetworkAnnotation: failed to mac: address zz:00: invalid MAC address`, nil},
	{MACAddressInUse, bySecondary, `failed to create macvlan: address already in use`, nil},
	{MACAddressInUse, bySecondary, `address already in use`, nil},
	{IfnameCollision, bySecondary, `DelegateAdd: cannot set "macvlan" interface name to "net1": validateIfName: interface name net1 already exists`, nil},
	{IfnameCollision, bySecondary, `failed to rename macvlan to "net1": file exists`, nil},
	{IfnameCollision, bySecondary, `cannot set "" ifname to "net1": ifname net1 is already exist`, nil},
	{StaticIPMissing, bySecondary, `an entry in the 'ips' field is NOT in CIDR notation, got: '198.51.100.7'`, nil},
	{StaticIPMissing, bySecondary, `the 'ip' field is expected to be in CIDR notation, got: '198.51.100.7'`, nil},
	{StaticIPMissing, bySecondary, `invalid CIDR 198.51.100.7: invalid CIDR address: 198.51.100.7`, nil},
	{StaticIPMissing, bySecondary, `invalid CIDR 2001:db8::7: invalid CIDR address: 2001:db8::7`, nil},
	{StaticIPMissing, bySecondary, `IPAM plugin returned missing IP config`, nil},
	{DHCPDaemonMissing, bySecondary, `error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: no such file or directory`, nil},
	{DHCPDaemonMissing, bySecondary, `error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: connection refused`, nil},
	{DHCPNoLease, bySecondary, `error calling DHCP.Allocate: no more tries`, nil},
	{DHCPNoLease, bySecondary, `error calling DHCP.Allocate: timed out waiting for a lease`, nil},
	{DHCPNoLease, bySecondary, `error calling DHCP.Allocate: got an error while the request: no matching response packet received`, nil},
	{DeviceNotAllocated, bySecondary, `SRIOV-CNI failed to load netconf: LoadConf(): VF pci addr is required`, nil},
	{DeviceNotAllocated, byMultus, `getKubernetesDelegate: failed to get a ResourceClient instance: GetResourceClient: error getting kubelet client`, nil},
	{DefaultNetworkNotReady, byMultus, `have you checked that your default network is ready? still waiting for readinessindicatorfile @ /host/run/x.conf. pollimmediate error: timed out waiting for the condition`, nil},
	{DefaultNetworkNotReady, byMultus, `PollImmediate error waiting for ReadinessIndicatorFile: timed out waiting for the condition`, nil},
	{DefaultNetworkNotReady, byPrimary, `loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory`, nil},
	{PodUIDMismatch, byMultus, `expected pod UID "a0a0a0a0" but got "b1b1b1b1" from Kube API`, nil},
	{PodUIDMismatch, byMultus, `error setting the networks status: SetNetworkStatus: expected pod lab/probe UID "a0a0a0a0" but got "b1b1b1b1" from Kube API`, nil},
	{DaemonInformerStale, byMultus, `error waiting for pod: pod "probe" not found`, nil},
	{DaemonInformerStale, byMultus, `error getting pod: pod "probe" not found`, nil},
	{SandboxFailed, bySecondary, `the moon is in the wrong phase`, nil},
	{SandboxFailed, byMultus, `error saving the delegates: no space left on device`, nil},
}

func TestAttachFaultsInEveryWrapper(t *testing.T) {
	t.Parallel()
	all := wrappers()
	for _, row := range attachRows {
		t.Run(fmt.Sprintf("%s/%s", row.cause, row.text[:min(30, len(row.text))]), func(t *testing.T) {
			forms := delegate(row.by, row.text)
			if row.by == byMultus {
				forms = own(row.text)
			}
			var with []change
			if row.with != nil {
				with = append(with, row.with)
			}
			for _, name := range wrapperNames() {
				for i, form := range forms {
					got := expect(t, build(append(with, failing(all[name](form)))...), outcomeOf(t, row.cause), row.cause)
					if got.Cause != row.cause {
						t.Fatalf("in the words of %s, form %d", name, i)
					}
				}
			}
		})
	}
}

// outcomeOf is what the catalogue says of a cause.
func outcomeOf(t *testing.T, c Cause) Outcome {
	t.Helper()
	entry, ok := Lookup(c)
	if !ok {
		t.Fatalf("%s is not in the catalogue", c)
	}
	return entry.Outcome
}

func expect(t *testing.T, e evidence.Evidence, outcome Outcome, cause Cause) Verdict {
	t.Helper()
	got := Decide(e, e.CollectedAt)
	if got.Outcome != outcome || got.Cause != cause {
		t.Errorf("got %s %s, want %s %s\n%s\n%s", got.Outcome, got.Cause, outcome, cause, got.Message, lastMessage(e))
	}
	return got
}

func lastMessage(e evidence.Evidence) string {
	if len(e.Events) == 0 {
		return "no events"
	}
	return e.Events[len(e.Events)-1].Message
}
