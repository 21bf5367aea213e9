package verdict

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// nearMisses look like a cause that they are not. Each says which it must not
// be taken for, and what it is instead.
var nearMisses = []struct {
	name    string
	not     Cause
	want    []Cause
	changes []change
}{
	{"connection refused by the API server, not by multus.sock", DaemonUnreachable, []Cause{APIServerUnreachable}, []change{failing(containerd(thin(own(`error getting pod: Get "https://10.0.0.1:443/api": dial tcp 10.0.0.1:443: connect: connection refused`)[0])))}},
	{"connection refused by the dhcp daemon, not by multus.sock", DaemonUnreachable, []Cause{DHCPDaemonMissing}, []change{failing(containerd(thin(delegate(bySecondary, `error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: connection refused`)[0])))}},
	{"connection refused by another delegate's agent", APIServerUnreachable, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(byPrimary, `error calling agent: Post "http://localhost:50051": dial tcp 127.0.0.1:50051: connect: connection refused`)[0])))}},
	{"connection refused by the runtime's own registry", DaemonUnreachable, []Cause{SandboxImagePull}, []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image "r/pause:3": dial tcp 192.0.2.1:443: connect: connection refused`)}},
	{"connection refused told by the guard", DaemonUnreachable, []Cause{GuardFailed}, []change{attached(), guardSays("wget: can't connect to remote host (198.51.100.9): Connection refused")}},
	{"no networks found by containerd, not by Multus", NADConfigMissing, []Cause{DefaultNetworkNotReady}, []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5c": no networks found in /etc/cni/net.d`)}},
	{"no networks found by Multus, not by containerd", DefaultNetworkNotReady, []Cause{NADConfigMissing}, []change{failing(containerd(thin(own("GetCNIConfig: err in GetCNIConfigFromFile: No networks found in /etc/cni/multus/net.d")[0])))}},
	{"timed out in the shim", DefaultNetworkNotReady, []Cause{DaemonUnreachable, ShimDaemonVersionSkew}, []change{failing(containerd(shim(shimWaited)))}},
	{"timed out in Multus on its readiness file", DaemonUnreachable, []Cause{DefaultNetworkNotReady}, []change{failing(containerd(thin(own("have you checked that your default network is ready? still waiting for readinessindicatorfile @ /x. pollimmediate error: timed out waiting for the condition")[0])))}},
	{"timed out in kubelet on a volume", DaemonUnreachable, []Cause{VolumeMount}, []change{event(9*time.Second, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[script]: timed out waiting for the condition", "kubelet")}},
	{"timed out in the guard", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("timed out after 30 s")}},
	{"deadline of the sandbox call", DaemonUnreachable, []Cause{SandboxFailed}, []change{failing("Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded")}},
	{"the primary network's plugin after an earlier attempt attached it", DelegatePluginMissing, []Cause{PrimaryPluginUnresolved}, []change{eth0(1), failing(containerd(thin(delegate(byPrimary, `failed to find plugin "portmap" in path [/opt/cni/bin]`)[0]))), without(evidence.Networks)}},
	{"macvlan missing for another network of the Pod's", PrimaryPluginUnresolved, []Cause{DelegatePluginMissing}, []change{eth0(1), failing(containerd(thin(delegate("other-conf", `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0]))), without(evidence.Networks)}},
	{"flannel missing, nothing attached", DelegatePluginMissing, []Cause{PrimaryPluginUnresolved}, []change{failing(containerd(thin(delegate(byPrimary, `failed to find plugin "flannel" in path [/opt/cni/bin]`)[0])))}},
	{"multus missing below Multus", MetaPluginMissing, []Cause{MultusSelfDelegation}, []change{failing(containerd(thin(delegate(byPrimary, `failed to find plugin "multus" in path [/opt/cni/bin]`)[0])))}},
	{"a plugin whose name begins like Multus", MetaPluginMissing, []Cause{PrimaryPluginUnresolved, DelegatePluginMissing, SandboxFailed}, []change{failing(containerd(`failed to find plugin "multus-helper" in path [/opt/cni/bin]`))}},
	{"address already in use by a listener", MACAddressInUse, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(byPrimary, "listen tcp 127.0.0.1:9000: bind: address already in use")[0])))}},
	{"address already in use by a listener of the network's plugin", MACAddressInUse, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "listen unix /run/x.sock: bind: address already in use")[0])))}},
	{"Link not found in the primary network", MasterLinkMissing, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(byPrimary, "Link not found")[0])))}},
	{"Link not found of the Pod's own interface", MasterLinkMissing, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "Link net1 not found")[0])))}},
	{"Link and not found in two sentences", MasterLinkMissing, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "Link is up, but its profile was not found")[0])))}},
	{"a route that is no CIDR", StaticIPMissing, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "bad route: invalid CIDR address: 10.0.0.0")[0])))}},
	{"an MTU of the primary network's", NADConfigInvalid, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(byPrimary, "invalid MTU 9000, must be [0, master MTU(1500)]")[0])))}},
	{"Multus killed by a runtime that waited long enough", DelegateCrashed, []Cause{SandboxFailed}, []change{failing(containerd(thin("netplugin failed with no error message: signal: killed")))}},
	{"a file system that is read-only elsewhere", MultusNotPrivileged, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "open /var/lib/cni/results/x: read-only file system")[0])))}},
	{"a library that is missing", HostLSMDenied, []Cause{DelegateCrashed}, []change{failing(containerd(thin(delegate(bySecondary, `netplugin failed: "error while loading shared libraries: libm.so.6: cannot open shared object file"`)[0])))}},
	{"a Pod not found in a sentence about another object", PodDeletedDuringAdd, []Cause{SandboxFailed}, []change{failing(containerd(thin(own(`error getting pod: pods "probe" is locked: node "worker-7" not found`)[0])))}},
	{"a wait for another agent of the cluster's", APIServerUnreachable, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(byPrimary, `Get "https://10.0.0.9:9000/x": http2: client connection lost`)[0])))}},
	{"not found of the Pod, not of the NAD", NADNotFound, []Cause{DaemonInformerStale}, []change{failing(containerd(thin(own(`error waiting for pod: pod "probe" not found`)[0])))}},
	{"forbidden by a quota, not to Multus", MultusRBACMissing, []Cause{SandboxFailed}, []change{failing(containerd(thin(own(`error getting pod: pods "probe" is forbidden: exceeded quota`)[0])))}},
	{"a dhcp daemon that sees no namespaces", DHCPNoLease, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, `error calling DHCP.Allocate: failed to Statfs "/var/run/netns/cni-1": no such file or directory`)[0])))}},
	{"rights that the primary network lacks, v3.2", MultusRBACMissing, []Cause{SandboxFailed}, []change{failing(dockershim(`Multus: Err in tearing down failed plugins: Multus: error in invoke Conflist add - "cluster-net": error in getting result from AddNetworkList: namespaces "lab" is forbidden: User "system:node:x" cannot get resource "namespaces"`))}},
	{"chained plugin called alone", PrimaryPluginUnresolved, []Cause{SandboxFailed}, []change{failing(containerd(bare(delegate(byPrimary, "must be called as chained plugin")[0])))}},
	{"permission denied without a word of where", HostLSMDenied, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "permission denied")[0])))}},
	{"interface exists in the guard's words", IfnameCollision, []Cause{GuardFailed}, []change{attached(), guardSays("ip: RTNETLINK answers: File exists")}},
	{"no duplicate found, then another fault", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("no duplicate address for 198.51.100.7\nscript line 12: bad substitution")}},
	{"nobody answers for the address", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("nobody answered for 198.51.100.7\nscript: line 3: awk: not found")}},
	{"no other host answers for the address", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("198.51.100.7: no other host has answered")}},
	{"silence about the canary's own address", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("no reply from 198.51.100.7 on net1\nscript: line 3: awk: not found")}},
	{"an address that is not in use", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("198.51.100.7 is not in use by another host")}},
	{"an address in use by nobody that is named", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("httpd: bind 198.51.100.7: address already in use")}},
	{"an address in use by the canary itself", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("198.51.100.7 in use on net1 by 02:00:00:00:00:07"), networks(`[{"name":"storage","ips":["198.51.100.7/24"],"mac":"02:00:00:00:00:07"}]`)}},
	{"the canary's own announcement", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("sent ARP reply for 198.51.100.7 with 02:00:00:00:00:07")}},
	{"a reply to the canary", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("reply from 198.51.100.1 to 198.51.100.7\nassertion failed")}},
	{"another address that is in use", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("198.51.100.70 is in use by 02:42:00:00:00:01")}},
	{"arping from nowhere, for duplicates", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 198.51.100.9 from 0.0.0.0 net1\nSent 2 probe(s)\nReceived 0 response(s)\n")}},
	{"arping for the own address as last words", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 198.51.100.7 from 198.51.100.7 net1\nSent 2 probe(s)\nReceived 0 response(s)\n")}},
	{"arping over the primary interface", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 10.1.2.1 from 10.1.2.3 eth0\nReceived 0 response(s)\n")}},
	{"ping to another segment in two lines", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("--- 10.43.0.10 ping statistics ---\n3 packets transmitted, 0 packets received, 100% packet loss")}},
	{"ping that lost all at first and nothing later", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays(""), podLog(testUID, "guard", "--- 198.51.100.1 ping statistics ---\n1 packets transmitted, 0 received, 100% packet loss\n--- 198.51.100.1 ping statistics ---\n3 packets transmitted, 3 received, 0% packet loss\nscript: line 3: awk: not found\n")}},
	{"an answer that was not the expected one", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("198.51.100.1 did not give the expected response")}},
	{"a check that did not pass, and a reply", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("check did not pass: reply from 198.51.100.1 took 900 ms")}},
	{"an HTTP request that timed out", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("http: 198.51.100.9: request timed out")}},
	{"busybox finds no net10", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays(`ip: can't find device 'net10'`)}},
	{"a reply from the gateway is good news", DuplicateAddress, []Cause{GuardFailed}, []change{attached(), guardSays("Unicast reply from 198.51.100.1 [02:42:00:00:00:01]\nassertion failed")}},
	{"the primary gateway is silent", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("gateway 10.1.2.1 unreachable via eth0")}},
	{"no route in the Pod", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("ping: sendto: Network is unreachable")}},
	{"host unreachable is not the host itself", MacvlanHostIsolation, []Cause{L2Unreachable}, []change{attached(), guardSays("From 198.51.100.7 icmp_seq=1 Destination Host Unreachable")}},
	{"net1 missing before it was ever there", MasterLinkRecreated, []Cause{MultusNotInChain}, []change{ran("net1 missing")}},
	{"net1 lacks an address", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("net1: missing address 198.51.100.9")}},
	{"net1 lacks an address, in a sentence", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("net1 is missing address 198.51.100.9")}},
	{"net1 has no carrier any more", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("net1 has lost carrier")}},
	{"net1 has lost its address", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("net1 no longer has 198.51.100.7")}},
	{"replies were lost on net1", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("lost net1 heartbeat")}},
	{"something else is missing on net1", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("default route missing on net1")}},
	{"a check for duplicates that went well, then another fault", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 198.51.100.7\nSent 2 probe(s)\nReceived 0 response(s)\nscript: line 9: bad number\n")}},
	{"an address of another segment is silent", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("no reply from 10.43.0.10")}},
	{"a port that is closed", L2Unreachable, []Cause{GuardFailed}, []change{attached(), guardSays("From 198.51.100.1 icmp_seq=1 Destination Port Unreachable")}},
	{"net10 is not net1", MasterLinkRecreated, []Cause{GuardFailed}, []change{attached(), guardSays("interface net10 not found")}},
	{"another UID's missing plugin", DelegatePluginMissing, []Cause{AttemptInProgress}, []change{eventOf(otherUID, 9*time.Second, 4, "FailedCreatePodSandBox", containerd(thin(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0])), "kubelet")}},
	{"another UID's attachment", OK, []Cause{MultusNotInChain}, []change{eventOf(otherUID, 3*time.Second, 1, "AddedInterface", "Add net1 [198.51.100.7/24] from lab/storage", "multus"), started(5 * time.Second), done()}},
	{"AddedInterface by somebody else", OK, []Cause{MultusNotInChain}, []change{event(3*time.Second, "AddedInterface", "Add net1 [198.51.100.7/24] from lab/storage", "impostor"), started(5 * time.Second), done()}},
	{"net1 of another network", OK, []Cause{EvidenceIncomplete}, []change{eth0(1), event(3*time.Second, "AddedInterface", "Add net1 [198.51.100.7/24] from lab/other", "multus"), started(5 * time.Second), done()}},
	{"an address that only begins the same", OK, []Cause{StaticIPMissing}, []change{eth0(1), event(3*time.Second, "AddedInterface", "Add net1 [198.51.100.70/24] from lab/storage", "multus"), started(5 * time.Second), done()}},
	{"one of two networks", OK, []Cause{EvidenceIncomplete}, []change{networks("storage,second"), attached(), done()}},
	{"Succeeded with a container that failed", OK, []Cause{GuardFailed}, []change{attached(), done(), canary(func(p *corev1.Pod) {
		p.Status.InitContainerStatuses[0].State = ended(1, "Error", "", time.Minute)
	})}},
	{"Running, guard not done", OK, []Cause{AttemptInProgress}, []change{attached(), canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.InitContainerStatuses[0].State = runs(5 * time.Second)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	})}},
	{"words of a plugin in a delegate's mouth", MultusTokenExpired, []Cause{SandboxFailed}, []change{failing(containerd(thin(delegate(bySecondary, "agent says: Unauthorized")[0])))}},
	{"a failure that is history", DelegatePluginMissing, []Cause{AttemptInProgress}, []change{failing(containerd(thin(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0]))), attached()}},
	{"a daemon that lacks memory once", DaemonOOM, []Cause{DaemonUnreachable}, []change{failing(containerd(shim(refused))), daemonStatus(runs(4*time.Minute), ended(137, "OOMKilled", "", 4*time.Minute), 1)}},
	{"a daemon that lacked memory days ago", DaemonOOM, []Cause{NoAttempt}, []change{noCanary(), daemonStatus(runs(-40*time.Hour), ended(137, "OOMKilled", "", -40*time.Hour), 6)}},
	{"a daemon killed by a signal", MultusConfigRejected, []Cause{RolloutStuck}, []change{noCanary(), daemonStatus(waits("CrashLoopBackOff", ""), ended(139, "Error", "", 0), 4)}},
	{"ended by its deadline while its sandbox failed", Unscheduled, []Cause{MasterLinkMissing}, []change{failing(containerd(thin(delegate(bySecondary, "Link not found")[0]))), canary(func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded" })}},
	{"a sidecar stopped at the end", GuardFailed, []Cause{OK}, []change{attached(), done(), canary(func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "proxy", RestartPolicy: &always})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: ended(143, "Error", "", time.Minute)})
	})}},
	{"a listing of another node", MultusConfWrongDir, []Cause{MultusNotInChain}, []change{ran("net1 missing"), hostFiles("/etc/cni/net.d", "/run/cni", "00-multus.conf"), func(e *evidence.Evidence) { e.HostFiles[0].Node = "worker-8" }}},
	{"a first conf that is a good list", CNIConfEmpty, []Cause{DefaultNetworkNotReady}, []change{func(e *evidence.Evidence) {
		e.HostFiles = []evidence.HostFiles{{Node: testNode, Dir: "/etc/cni/net.d", Files: []evidence.HostFile{{Name: "10-x.conflist", Size: 40, Content: `{"name":"x","plugins":[{"type":"bridge"}]}`}}}}
	}, event(10*time.Second, "NetworkNotReady", "network is not ready: cni config uninitialized", "kubelet")}},
	{"no word of the DaemonSet, and others are there", StaleMultusConf, []Cause{DaemonUnreachable}, []change{failing(containerd(shim(noSocket))), func(e *evidence.Evidence) {
		e.DaemonSet = evidence.Ref{}
		e.DaemonSets[0].Name, e.DaemonSets[0].Labels = "cni", nil
	}}},
	{"no word of the DaemonSet, and a Pod of it is left", StaleMultusConf, []Cause{DaemonUnreachable}, []change{failing(containerd(shim(noSocket))), func(e *evidence.Evidence) { e.DaemonSet, e.DaemonSets = evidence.Ref{}, nil }}},
	{"a daemon that crashed long ago and is not Ready now", MultusConfigRejected, []Cause{RolloutStuck}, []change{noCanary(), counts(3, 3, 2, 2), daemonNotReady(), daemonStatus(runs(-40*time.Hour), ended(1, "Error", "no route to host", -40*time.Hour), 7)}},
	{"a daemon that stopped well and comes back", MultusConfigRejected, []Cause{RolloutStuck}, []change{noCanary(), counts(3, 3, 2, 2), daemonNotReady(), daemonStatus(runs(4*time.Minute), ended(0, "Completed", "", 4*time.Minute), 3)}},
	{"a status that could not be read after a fault", SandboxFailed, []Cause{DelegatePluginMissing}, []change{
		failing(containerd(thin(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0]))),
		event(2*time.Minute, "FailedSync", "error determining status: rpc error: code = DeadlineExceeded desc = context deadline exceeded", "kubelet"),
		event(3*time.Minute, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: rpc error: code = NotFound desc = sandbox not found", "kubelet"),
	}},
	{"another attempt that is not understood after a fault", DelegatePluginMissing, []Cause{SandboxFailed}, []change{
		failing(containerd(thin(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0]))),
		event(2*time.Minute, "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded", "kubelet"),
	}},
	{"only statuses that could not be read", AttemptInProgress, []Cause{SandboxFailed}, []change{event(2*time.Minute, "FailedSync", "error determining status: rpc error: code = Unknown desc = x", "kubelet")}},
	{"the API server's words that a network is not there", DaemonInformerStale, []Cause{NADNotFound}, []change{failing(containerd(thin(own(`cannot find a network-attachment-definition (storage) in namespace (lab): network-attachment-definitions.k8s.cni.cncf.io "storage" not found`)[0])))}},
	{"the cache's words for a network of another namespace", DaemonInformerStale, []Cause{NADNotFound}, []change{failing(containerd(thick(own(`cannot find a network-attachment-definition (storage) in namespace (media): networkattachmentdefinition.k8s.cni.cncf.io "storage" not found`)[0])))}},
	{"a page not found in Multus' own words", ShimDaemonVersionSkew, []Cause{SandboxFailed}, []change{failing(containerd(thin(own("error getting pod: 404 page not found")[0])))}},
	{"a pull that worked at the second try", ImagePull, []Cause{AttemptInProgress}, []change{attachedOnly(), event(10*time.Second, "Failed", `Failed to pull image "busybox:1": EOF`, "kubelet"), event(20*time.Second, "Pulled", "Successfully pulled image", "kubelet")}},
	{"a container that is started again", ImagePull, []Cause{AttemptInProgress}, []change{attachedOnly(), event(10*time.Second, "BackOff", "Back-off restarting failed container", "kubelet")}},
	{"a DaemonSet under another name is not gone", StaleMultusConf, []Cause{DaemonUnreachable}, []change{failing(containerd(shim(noSocket))), func(e *evidence.Evidence) { e.DaemonSet.Name = "kube-multus-ds" }}},
	{"DaemonSets were not looked at", StaleMultusConf, []Cause{DaemonUnreachable}, []change{noDaemonSet(), without(evidence.DaemonSets), failing(containerd(shim(noSocket)))}},
	{"words that nobody knows", "", []Cause{SandboxFailed}, []change{failing("Failed to create pod sandbox: rpc error: code = Unknown desc = the frobnicator is out of blinker fluid")}},
}

func TestNearMisses(t *testing.T) {
	const least = 20
	if len(nearMisses) < least {
		t.Fatalf("%d near misses, want at least %d", len(nearMisses), least)
	}
	for _, row := range nearMisses {
		t.Run(row.name, func(t *testing.T) {
			e := build(row.changes...)
			got := Decide(e, e.CollectedAt)
			if got.Cause == row.not || !slices.Contains(row.want, got.Cause) {
				t.Errorf("got %s %s, want one of %v, never %q\n%s", got.Outcome, got.Cause, row.want, row.not, got.Message)
			}
			if got.Cause == SandboxFailed && got.Outcome != Inconclusive {
				t.Errorf("unknown words gave %s", got.Outcome)
			}
		})
	}
}

func TestUnknownWordsAreShownRaw(t *testing.T) {
	const words = "the frobnicator is out of blinker fluid"
	e := build(failing("Failed to create pod sandbox: rpc error: code = Unknown desc = " + words))
	got := Decide(e, now)
	if !slices.ContainsFunc(got.Lines, func(l Line) bool {
		return l.Text == "FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = "+words
	}) {
		t.Errorf("the raw line is not among %v", got.Lines)
	}
}
