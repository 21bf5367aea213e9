package verdict

// setupFaults are faults of Multus, its DaemonSet and the node.
func setupFaults() []Entry {
	return judged(Fail, OnRepeat, []Entry{
		{
			Cause:   DelegatePluginMissing,
			Summary: "The secondary network's plugin binary is not in the directory that is searched.",
			Next:    "put the plugin <plugin> into <dir> on <node> (an init container of the DaemonSet that copies the CNI plugins does it), wait for the rollout, then run the retest again",
		},
		{
			Cause:   PrimaryPluginUnresolved,
			Summary: "The primary network's plugin is not found from inside the Multus daemon: no new Pod on the node gets a network.",
			Next:    "the whole node is hit: set binDir in the daemon's configuration to the node's CNI folder and mount it, with the target of its symlinks, at the same path in the daemon; wait for the rollout, then run the retest again",
		},
		{
			Cause:   MetaPluginMissing,
			Summary: "The container runtime cannot find multus or multus-shim itself: no new Pod on the node gets a network.",
			Next:    "restart the Multus DaemonSet's Pod on <node>, so that its installer copies <plugin> into <dir>; if Multus is to be gone, use: kubectl vlan50 rollback",
		},
		{
			Cause:   DelegateCrashed,
			Summary: "A delegate plugin died without a usable message.",
			Next:    "look at the daemon container's memory limit and at the node's kernel log for an OOM kill (delegates run in the daemon's cgroup), raise the limit or replace the broken plugin binary, then run the retest again",
		},
		{
			Cause:   CNIVersionIncompatible,
			Summary: "The cniVersion of the configuration, the delegate or the command do not fit together.",
			Next:    "bring the cniVersion of the Multus configuration, the primary configuration and <network> to one that all plugins know, then run the retest again",
		},
		{
			Cause:   ShimDaemonVersionSkew,
			Summary: "The shim on the node and the daemon are of different versions and wait for each other.",
			Next:    "let the installer and the daemon use the same image in the DaemonSet, wait for the rollout, then run the retest again",
		},
		{
			Cause:   DaemonOOM,
			Summary: "The Multus daemon is killed for memory again and again.",
			Next:    "raise the memory limit of the daemon container in <daemonset>, wait for the rollout, then run the retest again; after an OOM kill the Multus conf stays in place and every new Pod on <node> hangs",
		},
		{
			Cause:   MultusNotPrivileged,
			Summary: "The daemon or a delegate lacks the rights it needs on the node.",
			Next:    "run the daemon and its installer privileged, as the upstream manifest does, wait for the rollout, then run the retest again",
		},
		{
			Cause:   HostLSMDenied,
			Summary: "SELinux or AppArmor on the node refuses what the runtime or a plugin does.",
			Next:    "read the node's audit log on <node>, allow the access in the SELinux or AppArmor profile, then run the retest again",
		},
		{
			Cause:   MultusSelfDelegation,
			Summary: "Multus took its own configuration for the primary one and calls itself.",
			Next:    "two Multus confs lie in the CNI conf folder of <node>: remove the older one, restart the Multus Pod there, then run the retest again",
		},
		{
			Cause:   StaleMultusConf,
			Settles: AtOnce,
			Summary: "Multus is gone, but its conf is still the node's first one: the node starts no Pods.",
			Next:    "move 00-multus.conf out of the CNI conf folder on <node> first, prove it with an ordinary Pod, then remove the rest: kubectl vlan50 rollback does it in that order",
		},
		{
			Cause:   CNIConfEmpty,
			Summary: "The first CNI conf on the node is empty or broken: the runtime has no network at all.",
			Next:    "no Pod starts on <node>: restart the Multus daemon's Pod there, which writes the conf again, or remove the broken file; then run the retest again",
		},
		{
			Cause:   MultusConfDisplaced,
			Settles: AtOnce,
			Summary: "Another CNI renamed the Multus conf or put its own before it.",
			Next:    "find which CNI owns the first conf on <node> and stop it from renaming others (for Cilium: cni.exclusive=false), restart the Multus Pod there, then run the retest again",
		},
		{
			Cause:   MultusConfWrongDir,
			Settles: AtOnce,
			Summary: "The Multus conf was written to a folder that this node's runtime does not read.",
			Next:    "mount <dir> of the node as the daemon's CNI conf folder, wait for the rollout, then run the retest again",
		},
		{
			Cause:   MultusNotInChain,
			Window:  true,
			Settles: AtOnce,
			Summary: "The Pod came up on the primary network alone: Multus never ran. Inconclusive while the daemon was changing, as its conf is away then; a fault when it was stable.",
			Next:    "wait until the Multus daemon on <node> is steady, see that its conf lies in the CNI conf folder there as the first file (restarting the daemon's Pod writes it), then run the retest again",
		},
		{
			Cause:   MultusTokenExpired,
			Summary: "The API server refuses Multus: its credentials are no longer valid.",
			Next:    "restart the Multus Pod on <node>, which writes new credentials, then run the retest again",
		},
		{
			Cause:   MultusCAMismatch,
			Summary: "Multus does not trust the API server's certificate.",
			Next:    "restart the Multus Pod on <node>, so that its kubeconfig gets the cluster's present CA, then run the retest again",
		},
		{
			Cause:   MultusRBACMissing,
			Summary: "Multus lacks a permission.",
			Next:    "apply Multus' ClusterRole and ClusterRoleBinding for the service account named in the message, then run the retest again",
		},
		{
			Cause:   APIServerUnreachable,
			Settles: OnStanding,
			Summary: "Multus cannot reach the API server from the node.",
			Next:    "make the API server's service address reachable from <node> (kube-proxy, primary network, firewall), then run the retest again",
		},
	})
}

// attachFaults are faults of the network asked for.
func attachFaults() []Entry {
	return judged(Fail, OnRepeat, []Entry{
		{
			Cause:   NADNotFound,
			Summary: "There is no such NetworkAttachmentDefinition where the annotation looks.",
			Next:    "create <network> as a NetworkAttachmentDefinition, or correct the canary's annotation, then run the retest again",
		},
		{
			Cause:   NADConfigMissing,
			Summary: "The NetworkAttachmentDefinition has no CNI configuration.",
			Next:    "put the CNI configuration into spec.config of <network>, then run the retest again",
		},
		{
			Cause:   NADConfigInvalid,
			Summary: "The NetworkAttachmentDefinition's configuration does not parse.",
			Next:    "correct the JSON in spec.config of <network>, then run the retest again",
		},
		{
			Cause:   PodAnnotationInvalid,
			Summary: "The canary's networks annotation does not parse.",
			Next:    "correct the annotation k8s.v1.cni.cncf.io/networks in the canary's manifest, then run the retest with that manifest",
		},
		{
			Cause:   NamespaceIsolation,
			Summary: "The NetworkAttachmentDefinition is in a namespace this Pod may not use.",
			Next:    "copy <network> into the canary's namespace, or add its namespace to globalNamespaces in the Multus configuration, then run the retest again",
		},
		{
			Cause:   MasterLinkMissing,
			Summary: "The parent interface does not exist on the node.",
			Next:    "create the parent interface <parent> on <node>, or correct \"master\" in <network>, then run the retest again",
		},
		{
			Cause:   MacvlanParentBusy,
			Summary: "The parent interface is already used in a way that excludes macvlan.",
			Next:    "take <parent> on <node> out of its bridge or bond, or give macvlan a parent of its own (a VLAN sub-interface), then run the retest again",
		},
		{
			Cause:   MACAddressInvalid,
			Summary: "The MAC address asked for cannot be used.",
			Next:    "choose a unicast, locally administered MAC address (second hex digit 2, 6, a or e), then run the retest again",
		},
		{
			Cause:   MACAddressInUse,
			Summary: "Another child of that parent interface has this MAC address.",
			Next:    "free the MAC address on <parent> of <node> (a leftover sandbox holds it: crictl pods), or ask for another one, then run the retest again",
		},
		{
			Cause:   IfnameCollision,
			Summary: "The interface name is already taken in the Pod.",
			Next:    "let only one Multus conf be on <node> and give each network its own interface name, then run the retest again",
		},
		{
			Cause:   StaticIPMissing,
			Summary: "Static IPAM got no usable address.",
			Next:    "ask for the address with its prefix length (\"ips\": [\"192.0.2.10/24\"]) and set \"capabilities\": {\"ips\": true} in <network>, then run the retest again",
		},
		{
			Cause:   DHCPDaemonMissing,
			Summary: "The network uses dhcp IPAM, and its daemon does not run on the node.",
			Next:    "run the CNI dhcp daemon on <node>, or use static IPAM in <network>, then run the retest again",
		},
		{
			Cause:   DHCPNoLease,
			Summary: "No DHCP server answers on that segment.",
			Next:    "check the DHCP server and the VLAN tagging behind <parent>, or use static IPAM in <network>, then run the retest again",
		},
		{
			Cause:   DeviceNotAllocated,
			Summary: "No device (VF) was given to the delegate.",
			Next:    "check that the device plugin on <node> offers the resource, that <network> names it in its resourceName annotation and that the canary requests it, then run the retest again",
		},
	})
}

// guardFaults are what the guard finds once the network is attached.
func guardFaults() []Entry {
	return judged(Fail, AtOnce, []Entry{
		{
			Cause:   DuplicateAddress,
			Summary: "Somebody else answers for the canary's address.",
			Next:    "find who holds <address>: another machine on that segment, or a leftover sandbox on <node> (crictl pods) after a forced deletion; free it, then run the retest again",
		},
		{
			Cause:   L2Unreachable,
			Summary: "Attached and addressed, but traffic does not come back.",
			Next:    "the attachment is fine: check the VLAN tagging behind <parent>, and that the switch or hypervisor port lets more than one MAC address through (promiscuous mode, forged transmits), then run the retest again",
		},
		{
			Cause:   MacvlanHostIsolation,
			Summary: "The guard tested against its own host, which macvlan cannot reach.",
			Next:    "let the guard test against another machine of the segment, not an address of <node>, then run the retest again",
		},
		{
			Cause:   GuardFailed,
			Summary: "The guard or the canary exited non-zero for a reason that is not told apart further.",
			Next:    "read the message and the log of the container that failed, mend what it names, then run the retest again",
		},
		{
			Cause:   EventsExpired,
			Summary: "The Pod failed long ago and its events are gone: the cause can no longer be told.",
			Next:    "run the retest again and let it watch",
		},
	})
}
