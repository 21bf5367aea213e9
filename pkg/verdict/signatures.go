package verdict

import (
	"slices"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// zone says whose words a text is: the same words mean another thing from
// another mouth ("connection refused", "no networks found", "timed out").
type zone int

const (
	// inRuntime: the runtime's own trouble; no plugin was reached.
	inRuntime zone = 1 << iota
	// inShim: the thick shim, before the daemon answered.
	inShim
	// inMultus: Multus itself, before any delegate.
	inMultus
	// inPrimary and inSecondary: a delegate, of the cluster's network or of one
	// the canary asks for.
	inPrimary
	inSecondary

	inDelegate = inPrimary | inSecondary
	anywhere   = inRuntime | inShim | inMultus | inDelegate
)

// signature tells a fault by words that upstream sources write; a * in them
// stands for a name.
type signature struct {
	cause Cause
	zones zone
	// all of these must be there.
	all []string
	// any of these is enough; none listed asks for nothing more.
	any []string
	// none of these may be there.
	none []string
}

func (sig *signature) matches(z zone, text string) bool {
	if sig.zones&z == 0 {
		return false
	}
	for _, w := range sig.all {
		if !says(text, w) {
			return false
		}
	}
	return !saysAny(text, sig.none) && (len(sig.any) == 0 || saysAny(text, sig.any))
}

// signatures is the table in the order of precedence: what names its fault
// outright comes first, bare errno texts last. "failed to find plugin" is not
// here: its meaning depends on the plugin's name. It never changes.
var signatures = slices.Concat(multusSignatures(), pluginSignatures(), errnoSignatures())

// multusSignatures are the words of the runtime and of Multus itself.
func multusSignatures() []signature {
	return []signature{
		{cause: SandboxImagePull, zones: inRuntime, any: []string{
			"failed to get sandbox image", "failed to pull sandbox image", "unable to pull sandbox image",
			"failed pulling image", "initializing source docker://",
		}},
		{cause: SandboxNameReserved, zones: inRuntime, any: []string{
			"failed to reserve sandbox name", "is reserved for ", "name is reserved", "error reserving pod name",
			"The container name * is already in use by container", // dockershim
		}},
		{cause: CNIConfEmpty, zones: inRuntime, any: []string{
			"cni plugin not initialized", "cni config uninitialized", "No CNI configuration file in",
			"no networks found in", "no network config found in", "cni config load failed", "failed to load CNI config",
		}},
		{cause: PodUIDMismatch, zones: inMultus, all: []string{"expected pod", "UID \"", "but got \""}},
		{cause: NamespaceIsolation, zones: inMultus, any: []string{
			"namespace isolation enabled", "namespace isolation violation", "annotation violates permission",
		}},
		{cause: DefaultNetworkNotReady, zones: inMultus, any: []string{
			"readinessindicatorfile", "ReadinessIndicatorFile", "have you checked that your default network is ready",
		}},
		{cause: MACAddressInvalid, zones: inMultus, any: []string{"failed to mac: ", "invalid MAC address"}},
		{cause: PodAnnotationInvalid, zones: inMultus, any: []string{
			"parsePodNetworkAnnotation", "parsePodNetworkObjectName", "failed to parse pod Network Attachment Selection Annotation",
			"failed to parse CIDR", "failed to parse IP address",
		}},
		{cause: MultusTokenExpired, zones: inMultus, any: []string{
			"Unauthorized", "the server has asked for the client to provide credentials", "token has expired",
		}},
		{cause: MultusCAMismatch, zones: inMultus, any: []string{"x509: ", "tls: failed to verify certificate"}},
		{cause: MultusRBACMissing, zones: inMultus, all: []string{"is forbidden: ", " cannot "}},
		{cause: DeviceNotAllocated, zones: inMultus, any: []string{
			"failed to get a ResourceClient instance", "failed to get resourceMap from ResourceClient", "GetPodResourceMap",
		}},
		{cause: DefaultNetworkNotReady, zones: inMultus, any: []string{"failed to get clusterNetwork/defaultNetworks"}},
		{cause: NADNotFound, zones: inMultus, any: []string{"getNetDelegate: cannot find network"}},
		{cause: NADConfigMissing, zones: inMultus, any: []string{"GetCNIConfigFromFile", "getCNIConfigFromFile"}},
		{cause: NADConfigInvalid, zones: inMultus, any: []string{
			"getCNIConfigFromSpec", "GetCNIConfigFromSpec", "failed to unmarshal Spec.Config", "LoadDelegateNetConf",
			"error unmarshalling delegate config", "delegate must have the",
		}},
	}
}

// pluginSignatures are the words of libcni and of the plugins.
func pluginSignatures() []signature {
	return []signature{
		{cause: CNIVersionIncompatible, zones: anywhere, any: []string{
			"incompatible CNI version", "does not support the CHECK command", "does not support the STATUS command",
			"does not support the GC command", "unsupported CNI result version", "unsupported CNI version",
			"cannot convert version", "does not support config version", "no converter for CNI result version", "but unmarshalled CNIVersion is",
			"version does not allow ", "does not support more than 1 address per family",
		}},
		// The kernel's duplicate address detection for IPv6, which the plugins wait
		// for (plugins pkg/ip.SettleAddresses).
		{cause: DuplicateAddress, zones: inSecondary, all: []string{"DADFAILED state"}},
		{cause: DHCPDaemonMissing, zones: inDelegate, any: []string{"error dialing DHCP daemon", "dhcp.sock"}},
		{cause: DHCPNoLease, zones: inDelegate, all: []string{"DHCP.Allocate"}, any: []string{
			"no more tries", "timed out", "timeout", "deadline exceeded", "resource temporarily unavailable",
			"no matching response packet received",
		}},
		{cause: DHCPNoLease, zones: inDelegate, any: []string{"no more tries", "DHCPDISCOVER", "no DHCP offer"}},
		{cause: StaticIPMissing, zones: inSecondary, any: []string{
			"IPAM plugin returned missing IP config", "NOT in CIDR notation", "expected to be in CIDR notation",
			"invalid CIDR *: invalid CIDR address: ",
		}},
		{cause: DeviceNotAllocated, zones: inSecondary, any: []string{
			"pci addr is required", "no VF", "deviceID is required", "must be specified: deviceID", "specify either \"device\", \"hwaddr\"",
		}},
		{cause: NADConfigInvalid, zones: inSecondary, any: []string{
			"error in converting the raw bytes to conf", "error converting the raw bytes into a conflist", "error parsing configuration",
			"failed to load netconf", "failed to parse network configuration", "unknown macvlan mode", "\"master\" field is required",
			"no plugin name provided", "missing network name", "invalid characters found in network name", "invalid MTU *, must be",
		}},
		{cause: DelegateCrashed, zones: inDelegate, any: []string{
			"netplugin failed with no error message", "netplugin failed but error parsing its diagnostic message",
			"failed to unmarshal raw result", "signal: ", "panic: ", "fatal error: ",
		}},
		// Multus itself or its shim; one that is merely killed may be the runtime's
		// doing, whose patience was over.
		{cause: DelegateCrashed, zones: inMultus, all: []string{"netplugin failed"}, any: []string{
			"signal: segmentation fault", "signal: aborted", "signal: bus error", "signal: illegal instruction", "panic: ", "fatal error: ",
		}},
		{cause: IfnameCollision, zones: inDelegate, all: []string{"already exist"}, any: []string{
			"interface name ", "ifname ", "container veth name", "container interface",
		}},
		{cause: IfnameCollision, zones: inSecondary, all: []string{"failed to rename ", "file exists"}},
		{cause: MACAddressInvalid, zones: inSecondary, any: []string{"invalid MAC address", "failed to parse mac", "failed to parse MAC"}},
		{cause: MasterLinkMissing, zones: inSecondary, any: []string{
			"Link not found", "Link * not found", "failed to lookup master", "failed to lookup parent", "no default route interface found",
		}},
		{cause: DefaultNetworkNotReady, zones: inPrimary, any: []string{
			"subnet.env", "/var/lib/calico/nodename", "Is the agent running?", "unable to connect to Cilium",
		}},
		{cause: MetaPluginMissing, zones: inMultus, all: []string{"fork/exec ", "no such file or directory"}},
	}
}

// errnoSignatures are what the kernel says; they come last, as they say little.
func errnoSignatures() []signature {
	// The same errno of a socket is not about the network's own address.
	sockets := []string{"listen ", "bind: ", "dial "}
	return []signature{
		{cause: HostLSMDenied, zones: anywhere, any: []string{"SELinux", "selinux", "AppArmor", "apparmor", "avc:  denied"}},
		// The dynamic linker's words where SELinux keeps it from a library.
		{cause: HostLSMDenied, zones: anywhere, all: []string{"error while loading shared libraries", "Permission denied"}, any: []string{
			"memory protection", "segment prot", "executable stack",
		}},
		{cause: MACAddressInvalid, zones: inSecondary, all: []string{"cannot assign requested address"}, none: sockets},
		{cause: MACAddressInUse, zones: inSecondary, all: []string{"address already in use"}, none: sockets},
		{cause: MacvlanParentBusy, zones: inSecondary, all: []string{"device or resource busy"}},
		{cause: MultusNotPrivileged, zones: inMultus | inDelegate, all: []string{"operation not permitted"}},
		// /proc/sys is read-only in a container that is not privileged.
		{cause: MultusNotPrivileged, zones: inDelegate, all: []string{"/proc/sys/", "read-only file system"}},
		{cause: HostLSMDenied, zones: anywhere, all: []string{"permission denied"}, any: []string{
			"/ns/net", "/netns", "/proc/", "fork/exec", "multus.sock", "/cni/", "/multus/",
		}},
		{cause: APIServerUnreachable, zones: inMultus, all: []string{"dial tcp"}},
		{cause: APIServerUnreachable, zones: inMultus, all: []string{"https://"}, any: []string{
			"i/o timeout", "TLS handshake timeout", "context deadline exceeded", "Client.Timeout exceeded", "connection reset", "EOF",
			"connection timed out", "broken pipe", "http2: client connection", "http2: server sent GOAWAY",
		}},
		// The plugin ended without the error object it owes; what it wrote to
		// stderr told nothing that is known above.
		{cause: DelegateCrashed, zones: inDelegate, all: []string{"netplugin failed: "}},
	}
}

// zoneOf tells whose words a failure's innermost text is.
func (s *scene) zoneOf(f *multus.Failure) zone {
	switch {
	case f.Reached(multus.LayerDelegate):
		if s.isSecondary(f) {
			return inSecondary
		}
		return inPrimary
	case f.Reached(multus.LayerMultus), f.Reached(multus.LayerDaemon):
		return inMultus
	case f.Reached(multus.LayerShim):
		return inShim
	case f.Reached(multus.LayerPlugin):
		return s.zoneOfPlugin(f)
	}
	return inRuntime
}

// zoneOfPlugin judges a message whose deepest known layer is libcni's note of
// the plugin: Multus itself where that is Multus, a delegate else.
func (s *scene) zoneOfPlugin(f *multus.Failure) zone {
	plugins := f.Names(multus.LayerPlugin)
	if isMetaPlugin(plugins[len(plugins)-1]) {
		return inMultus
	}
	return inPrimary
}

// isSecondary tells a network the canary asks for from the cluster's: by the
// name of its conf, which is the NetworkAttachmentDefinition's where the conf
// has none; the cluster's is known from an earlier attempt's event; where no name
// is known, by whether the primary one was attached before it.
func (s *scene) isSecondary(f *multus.Failure) bool {
	network := f.Network()
	if _, ok := s.wantedOf(network); ok {
		return true
	}
	unknown := slices.ContainsFunc(s.wanted, func(w wanted) bool { return !w.known })
	if network != "" && (!unknown || s.isPrimary(network)) {
		return false
	}
	if len(s.ev.added) > 0 {
		return true
	}
	plugin, _, _ := missingPlugin(f.Text)
	return isSecondaryPlugin(plugin) || slices.ContainsFunc(f.Names(multus.LayerPlugin), isSecondaryPlugin)
}

// isPrimary reports a network that an interface came from that was not asked for.
func (s *scene) isPrimary(network string) bool {
	return slices.ContainsFunc(s.ev.added, func(a addedEvent) bool { return a.Network == network && !s.wants(a.Interface) })
}

// isSecondaryPlugin names plugins that no cluster uses for its primary network:
// a hint where nothing else is known.
func isSecondaryPlugin(plugin string) bool {
	switch plugin {
	case "macvlan", "ipvlan", "vlan", "host-device", "sriov", "ib-sriov", "bond", "static", "dhcp", "whereabouts":
		return true
	}
	return false
}

// apiRefusal reads how the API server refused Multus, empty where it did not.
func apiRefusal(text string) Cause {
	return oneOf(text, MultusTokenExpired, MultusCAMismatch, MultusRBACMissing)
}

// isUnreachable reports that Multus got no answer from the API server.
func isUnreachable(text string) bool { return oneOf(text, APIServerUnreachable) != "" }

// oneOf gives the first of some causes whose words Multus says.
func oneOf(text string, causes ...Cause) Cause {
	for _, sig := range signatures {
		if slices.Contains(causes, sig.cause) && sig.matches(inMultus, text) {
			return sig.cause
		}
	}
	return ""
}
