package verdict

import (
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

const (
	noSocket   = `CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": dial unix /run/multus/multus.sock: connect: no such file or directory`
	refused    = `CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": dial unix /host/run/multus/multus.sock: connect: connection refused`
	shimWaited = `CmdAdd (shim): timed out waiting for the condition`
)

func shim(text string) string {
	return `plugin type="multus-shim" name="multus-cni-network" failed (add): ` + text
}

// ran lets the guard fail on a sandbox made without Multus.
func ran(message string) change {
	return func(e *evidence.Evidence) {
		started(5 * time.Second)(e)
		guardSays(message)(e)
	}
}

func daemonStatus(state, last corev1.ContainerState, restarts int32) change {
	return daemon(func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = state
		p.Status.ContainerStatuses[0].LastTerminationState = last
		p.Status.ContainerStatuses[0].RestartCount = restarts
	})
}

func installer(state, last corev1.ContainerState, restarts int32) change {
	return daemon(func(p *corev1.Pod) {
		p.Status.InitContainerStatuses[0].State = state
		p.Status.InitContainerStatuses[0].LastTerminationState = last
		p.Status.InitContainerStatuses[0].RestartCount = restarts
		p.Status.ContainerStatuses[0].State = waits("PodInitializing", "")
	})
}

func crd(deleting bool) change {
	return func(e *evidence.Evidence) {
		obj := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "network-attachment-definitions.k8s.cni.cncf.io"}}}
		if deleting {
			obj.SetDeletionTimestamp(new(at(-time.Minute)))
			obj.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
		} else {
			obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Terminating", "status": "True"}}}
		}
		e.CRDs = append(e.CRDs, obj)
	}
}

func rebooted(when time.Duration) change {
	return func(e *evidence.Evidence) {
		e.Events = append(e.Events, corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "reboot"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: testNode},
			Reason: "Rebooted", Message: "Node rebooted", FirstTimestamp: at(when), LastTimestamp: at(when), Count: 1,
		})
	}
}

func deleting(grace int64) change {
	return canary(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(2*time.Minute)), &grace
	})
}

func newRevision(when time.Duration) change {
	return func(e *evidence.Evidence) {
		e.ControllerRevisions = append(e.ControllerRevisions, revision(2, start.Add(when)))
		daemon(func(p *corev1.Pod) { p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = "hash2" })(e)
	}
}

func counts(desired, updated, ready, available int32) change {
	return daemonSet(func(ds *appsv1.DaemonSet) {
		ds.Status.DesiredNumberScheduled, ds.Status.UpdatedNumberScheduled = desired, updated
		ds.Status.NumberReady, ds.Status.NumberAvailable, ds.Status.NumberUnavailable = ready, available, desired-available
	})
}

func initWaits(reason, message string) change {
	return canary(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State = waits(reason, message) })
}

// scenes are causes that the state of objects tells, at least two of each kind.
var scenes = []struct {
	name    string
	cause   Cause
	outcome Outcome // where the catalogue's is not meant
	changes []change
}{
	{name: "everything shown", cause: OK, changes: []change{attached(), done()}},
	{name: "running and ready", cause: OK, changes: []change{attached(), canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.InitContainerStatuses[0].State = ended(0, "Completed", "", time.Minute)
		p.Status.ContainerStatuses[0].State = runs(time.Minute)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	})}},
	{name: "both containers done before the phase says so", cause: OK, changes: []change{attached(), done(), canary(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })}},
	{name: "dual stack, written in other ways", cause: OK, changes: []change{
		networks(`[{"name":"storage","ips":["198.51.100.7/24","2001:db8::7/64"]}]`), eth0(1), started(5 * time.Second), done(),
		event(4*time.Second, "AddedInterface", "Add net1 [198.51.100.7/24 2001:0db8:0:0::0007/64] from lab/storage", "multus"),
		status(`[{"name":"lab/storage","interface":"net1","ips":["2001:DB8:0::7","198.51.100.7"],"dns":{}}]`),
	}},
	{name: "short annotation with an interface, address in the NAD", cause: OK, changes: []change{
		networks("lab/storage@data0"), nadConfig(`{"name":"n","plugins":[{"type":"macvlan","ipam":{"type":"static","addresses":[{"address":"198.51.100.7/24"}]}}]}`),
		eth0(1), started(5 * time.Second), done(), status(`[{"name":"lab/storage","interface":"data0","ips":["198.51.100.7"],"dns":{}}]`),
		event(4*time.Second, "AddedInterface", "Add data0 [198.51.100.7/24] from lab/storage", "multus"),
	}},
	{name: "layer two only", cause: OK, changes: []change{
		networks("storage"), nadConfig(`{"name":"n","type":"macvlan"}`), eth0(1), started(5 * time.Second), done(),
		event(4*time.Second, "AddedInterface", "Add net1 [] from lab/storage", "multus"), status(`[{"name":"lab/storage","interface":"net1","dns":{}}]`),
	}},
	{name: "Multus may not write events", cause: OKNoMultusEvents, changes: []change{status(statusJSON), started(5 * time.Second), done()}},
	{name: "every event expired, the annotation is left", cause: OKNoMultusEvents, changes: []change{status(statusJSON), done(), func(e *evidence.Evidence) { e.Events = nil; e.CollectedAt = now.Add(26 * time.Hour) }}},
	{name: "the annotation lists eth0 alone", cause: NetworkStatusPartial, changes: []change{attached(), done(), status(`[{"name":"cluster-net","interface":"eth0","ips":["10.1.2.3"],"default":true,"dns":{}}]`)}},
	{name: "the annotation lists net1 without its address", cause: NetworkStatusPartial, changes: []change{attached(), done(), status(`[{"name":"lab/storage","interface":"net1","dns":{}}]`)}},
	{name: "the annotation was removed", cause: NetworkStatusAbsent, changes: []change{attached(), done(), canary(func(p *corev1.Pod) { delete(p.Annotations, nadv1.NetworkStatusAnnot) })}},
	{name: "no annotation, address of the NAD", cause: NetworkStatusAbsent, changes: []change{eth0(1), net1(2), started(5 * time.Second), done()}},
	{name: "Multus v3, both", cause: LegacyAnnotationKey, changes: []change{eth0(1), net1(2), started(5 * time.Second), done(), annotate("k8s.v1.cni.cncf.io/networks-status", statusJSON)}},
	{name: "Multus v3, no events", cause: LegacyAnnotationKey, changes: []change{started(5 * time.Second), done(), annotate("k8s.v1.cni.cncf.io/networks-status", statusJSON)}},
	{name: "a burst ate the events of the containers", cause: EventsIncomplete, changes: []change{
		eventOf(testUID, 0, 31, "FailedCreatePodSandBox", combined(thin(own("error waiting for pod: Unauthorized")[0])), "kubelet"), eth0(2), net1(3), status(statusJSON), done(),
	}},
	{name: "a burst of mounts ate them", cause: EventsIncomplete, changes: []change{eventOf(testUID, 0, 40, "FailedMount", "MountVolume.SetUp failed", "kubelet"), eth0(2), net1(3), status(statusJSON), done()}},
	{name: "the daemon came late", cause: LateSuccess, changes: []change{failing(containerd(shim(refused))), attached(), done()}},
	{name: "the NAD was created late", cause: LateSuccess, changes: []change{event(1, "NoNetworkFound", "cannot find a network-attachment-definition (storage) in namespace (lab): not found", "multus"), failing(crio(thin(own("cannot find a network-attachment-definition (storage) in namespace (lab): not found")[0]))), attached(), done()}},

	{name: "thin binary gone", cause: MetaPluginMissing, changes: []change{failing(crio(`failed to find plugin "multus" in path [/opt/cni/bin /usr/libexec/cni]`))}},
	{name: "shim gone, dockershim", cause: MetaPluginMissing, changes: []change{failing(dockershim(`failed to find plugin "multus-shim" in path [/opt/cni/bin]`))}},
	{name: "shim cannot be run", cause: MetaPluginMissing, changes: []change{failing(containerd(shim(`fork/exec /opt/cni/bin/multus-shim: no such file or directory`)))}},
	{name: "daemon logs a request it does not know", cause: ShimDaemonVersionSkew, changes: []change{failing(containerd(shim(shimWaited))), podLog(daemonUID, "daemon", "2026-03-03T08:59:00Z [error] http not found: &{POST /readyz HTTP/1.1 1 1 map[]}\n")}},
	{name: "the daemon's server has no handler", cause: ShimDaemonVersionSkew, changes: []change{failing(crio(shim("CmdAdd (shim): CNI request failed with status 404: '404 page not found\n': StdinData: {}")))}},
	{name: "installer of another version", cause: ShimDaemonVersionSkew, changes: []change{failing(crio(shim(shimWaited))), daemon(func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "example.test/multus-cni:v4.3.1-thick" })}},
	{name: "killed for memory, waiting to be started", cause: DaemonOOM, changes: []change{failing(containerd(shim(noSocket))), daemonStatus(waits("CrashLoopBackOff", ""), ended(137, "OOMKilled", "", 0), 1)}},
	{name: "killed for memory, no canary yet", cause: DaemonOOM, changes: []change{noCanary(), daemonStatus(runs(0), ended(137, "OOMKilled", "", 0), 6)}},
	{name: "Multus removed, shim left", cause: StaleMultusConf, changes: []change{noDaemonSet(), failing(crio(shim(noSocket)))}},
	{name: "thin Multus removed with its rights", cause: StaleMultusConf, changes: []change{noDaemonSet(), failing(containerd(thin(own("error getting pod: Unauthorized")[0])))}},
	{name: "Multus removed, nobody says what it was called", cause: StaleMultusConf, changes: []change{noDaemonSet(), failing(containerd(shim(noSocket))), func(e *evidence.Evidence) { e.DaemonSet = evidence.Ref{} }}},
	{name: "Multus removed with its binary", cause: StaleMultusConf, changes: []change{noDaemonSet(), failing(containerd(`plugin type="multus" failed (add): failed to find plugin "multus" in path [/opt/cni/bin]`))}},
	{name: "empty conf", cause: CNIConfEmpty, changes: []change{hostFiles("/etc/cni/net.d", "", "empty 00-multus.conf", "10-x.conflist"), event(10*time.Second, "NetworkNotReady", "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized", "kubelet")}},
	{name: "broken conf, told at the sandbox", cause: CNIConfEmpty, changes: []change{func(e *evidence.Evidence) {
		e.HostFiles = []evidence.HostFiles{{Node: testNode, Dir: "/etc/cni/net.d", RuntimeConfDir: "/etc/cni/net.d", Files: []evidence.HostFile{{Name: "00-multus.conf", Size: 4, Content: `{"ty`}}}}
	}, failing("Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"x\": cni plugin not initialized")}},
	{name: "a conf that names no plugin", cause: CNIConfEmpty, changes: []change{func(e *evidence.Evidence) {
		e.HostFiles = []evidence.HostFiles{{Node: testNode, Dir: "/etc/cni/net.d", Files: []evidence.HostFile{{Name: "00-multus.conf", Size: 20, Content: `{"cniVersion":"1.0"}`}}}}
	}, event(10*time.Second, "NetworkNotReady", "network is not ready: cni plugin not initialized", "kubelet")}},
	{name: "empty conf, the folder written in another way", cause: CNIConfEmpty, changes: []change{hostFiles("/etc/cni/net.d", "/etc/cni/net.d/", "empty 00-multus.conf"), event(10*time.Second, "NetworkNotReady", "network is not ready: cni config uninitialized", "kubelet")}},
	{name: "the runtime names the broken file", cause: CNIConfEmpty, changes: []change{event(10*time.Second, "NetworkNotReady", "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni config load failed: failed to load CNI config file /etc/cni/net.d/00-multus.conf: error parsing configuration: unexpected end of JSON input: invalid cni config: failed to load cni config", "kubelet")}},
	{name: "the daemon's log shows an empty conf", cause: CNIConfEmpty, changes: []change{podLog(daemonUID, "daemon", "2026-03-03T08:59:00Z [verbose] Generated MultusCNI config: \n"), event(10*time.Second, "NetworkNotReady", "network is not ready: cni config uninitialized", "kubelet")}},
	{name: "Cilium renamed the conf", cause: MultusConfDisplaced, changes: []change{ran("no net1"), hostFiles("/etc/cni/net.d", "/etc/cni/net.d", "05-cilium.conflist", "00-multus.conf.cilium_bak")}},
	{name: "another conf sorts first", cause: MultusConfDisplaced, changes: []change{ran("no net1"), hostFiles("/etc/cni/net.d", "", "00-calico.conflist", "05-multus.conflist")}},
	{name: "k3s reads another folder", cause: MultusConfWrongDir, changes: []change{ran("no net1"), hostFiles("/etc/cni/net.d/", "/var/lib/rancher/k3s/agent/etc/cni/net.d", "00-multus.conflist")}},
	{name: "containers did well on the wrong network", cause: MultusConfWrongDir, changes: []change{started(5 * time.Second), done(), hostFiles("/etc/cni/net.d", "/run/cni/net.d", "00-multus.conf")}},
	{name: "steady daemon", cause: MultusNotInChain, outcome: Fail, changes: []change{ran("net1 missing")}},
	{name: "steady daemon, containers did well", cause: MultusNotInChain, outcome: Fail, changes: []change{started(5 * time.Second), done()}},
	{name: "steady by its log although young", cause: MultusNotInChain, outcome: Fail, changes: []change{ran("net1 missing"), daemonStatus(runs(-20*time.Second), corev1.ContainerState{}, 0), podLog(daemonUID, "daemon", "2026-03-03T08:59:45Z [verbose] started to watch file /x\n")}},
	{name: "the folder multus.d is no conf", cause: MultusNotInChain, outcome: Fail, changes: []change{ran("net1 missing"), hostFiles("/etc/cni/net.d", "/etc/cni/net.d", "10-x.conflist", "multus.d")}},
	{name: "nor is what lies in there", cause: MultusNotInChain, outcome: Fail, changes: []change{ran("net1 missing"), hostFiles("/etc/cni/net.d", "", "10-x.conflist", "multus.d/multus.kubeconfig", "multus.d/daemon-config.json")}},
	{name: "the folder multus.d of a young daemon", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), hostFiles("/etc/cni/net.d", "", "10-x.conflist", "multus.d"), daemonStatus(runs(-20*time.Second), corev1.ContainerState{}, 0)}},
	{name: "no DaemonSet at all", cause: MultusNotInChain, outcome: Fail, changes: []change{noDaemonSet(), ran("net1 missing")}},
	{name: "young daemon", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemonStatus(runs(-20*time.Second), corev1.ContainerState{}, 0)}},
	{name: "daemon wrote its conf after the sandbox", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemonStatus(runs(-2*time.Second), corev1.ContainerState{}, 0), podLog(daemonUID, "daemon", "2026-03-03T09:00:08Z [verbose] started to watch file /x\n")}},
	{name: "daemon wrote its conf between the Pod's start and its first container", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemonStatus(runs(-2*time.Second), corev1.ContainerState{}, 0), podLog(daemonUID, "daemon", "2026-03-03T09:00:03Z [verbose] started to watch file /x\n")}},
	{name: "which DaemonSet is Multus' is not known", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), func(e *evidence.Evidence) { e.DaemonSet.Name = "another" }}},
	{name: "daemon restarted since", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemonStatus(runs(time.Minute), ended(1, "Error", "", 50*time.Second), 1)}},
	{name: "daemon was being stopped", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemon(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(28*time.Second)), new(int64(30))
	})}},
	{name: "daemon of an old revision", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), func(e *evidence.Evidence) {
		e.ControllerRevisions = append(e.ControllerRevisions, revision(2, start.Add(-time.Minute)))
	}}},
	{name: "no daemon on the node", cause: MultusNotInChain, outcome: Inconclusive, changes: []change{ran("net1 missing"), daemon(func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" })}},

	{name: "annotation is not JSON", cause: PodAnnotationInvalid, changes: []change{networks(`[{"name":"storage",}]`)}},
	{name: "no annotation", cause: PodAnnotationInvalid, changes: []change{networks("")}},
	{name: "null entry", cause: PodAnnotationInvalid, changes: []change{networks("[null]")}},
	{name: "only Multus' own event is left", cause: NADNotFound, changes: []change{noNetworks(), event(9*time.Second, "NoNetworkFound", `cannot find a network-attachment-definition (storage) in namespace (lab): networkattachmentdefinition.k8s.cni.cncf.io "storage" not found`, "multus")}},
	{name: "net1 without an address", cause: StaticIPMissing, changes: []change{eth0(1), event(2, "AddedInterface", "Add net1 [] from lab/storage", "multus"), started(5 * time.Second), done()}},
	{name: "net1 with another address", cause: StaticIPMissing, changes: []change{eth0(1), event(2, "AddedInterface", "Add net1 [198.51.100.70/24] from lab/storage", "multus"), ran("wrong address")}},

	{name: "arping -D got a reply", cause: DuplicateAddress, changes: []change{attached(), guardSays("Unicast reply from 198.51.100.7 [02:42:00:00:00:01] 0.512ms")}},
	{name: "the log alone tells", cause: DuplicateAddress, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "net1 is up\nERROR: IP conflict detected for 198.51.100.7\n")}},
	{name: "in use by a stranger's MAC", cause: DuplicateAddress, changes: []change{attached(), guardSays("198.51.100.7 already in use by 02:42:00:00:00:01")}},
	{name: "taken by another", cause: DuplicateAddress, changes: []change{attached(), guardSays("address 198.51.100.7: taken by another machine")}},
	{name: "claimed by a stranger's MAC", cause: DuplicateAddress, changes: []change{attached(), guardSays("DAD on net1: 198.51.100.7 claimed by [02:42:00:00:00:01]")}},
	{name: "a reply for the address, with whose", cause: DuplicateAddress, changes: []change{attached(), guardSays("2 probes sent, 1 reply for 198.51.100.7 (02:42:00:00:00:01), wanted none")}},
	{name: "IPv6 duplicate", cause: DuplicateAddress, changes: []change{attached(), guardSays("net1: 2001:db8::7/64 dadfailed")}},
	{name: "ping lost all", cause: L2Unreachable, changes: []change{attached(), guardSays("ping 198.51.100.1: 3 packets transmitted, 0 packets received, 100% packet loss")}},
	{name: "nobody answers for the gateway", cause: L2Unreachable, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "checking gateway\narping: no reply from 198.51.100.1\n")}},
	{name: "arping's last words", cause: L2Unreachable, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 198.51.100.1 from 198.51.100.7 net1\nSent 3 probe(s) (3 broadcast(s))\nReceived 0 response(s)\n")}},
	{name: "ping's two lines", cause: L2Unreachable, changes: []change{attached(), guardSays("PING 198.51.100.1 (198.51.100.1): 56 data bytes\n\n--- 198.51.100.1 ping statistics ---\n5 packets transmitted, 0 packets received, 100% packet loss\n")}},
	{name: "ping's two lines and the guard's last word", cause: L2Unreachable, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "--- 198.51.100.1 ping statistics ---\n5 packets transmitted, 0 received, +5 errors, 100% packet loss, time 4010ms\n\ngiving up\n")}},
	{name: "another arping's two lines", cause: L2Unreachable, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "--- 198.51.100.1 statistics ---\n3 packets transmitted, 0 packets received, 100% unanswered (0 extra)\n")}},
	{name: "arping's lines and the guard's last word", cause: L2Unreachable, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "ARPING 198.51.100.1 from 198.51.100.7 net1\nSent 4 probe(s) (4 broadcast(s))\nReceived 0 response(s) (0 request(s), 0 broadcast(s))\ngiving up\n")}},
	{name: "no reply of a kind", cause: L2Unreachable, changes: []change{attached(), guardSays("no ICMP echo reply from 198.51.100.1")}},
	{name: "the gateway did not respond", cause: L2Unreachable, changes: []change{attached(), guardSays("the gateway did not respond")}},
	{name: "counted replies", cause: L2Unreachable, changes: []change{attached(), guardSays("198.51.100.1: 4 requests, 0 responses")}},
	{name: "waited for a reply in vain", cause: L2Unreachable, changes: []change{attached(), guardSays("timed out waiting for an ARP reply of 198.51.100.1")}},
	{name: "request timed out", cause: L2Unreachable, changes: []change{attached(), guardSays("net1: request timed out")}},
	{name: "packets sent, none came back", cause: L2Unreachable, changes: []change{attached(), guardSays("3 packets over net1, received nothing")}},
	{name: "the node's own address in ping's two lines", cause: MacvlanHostIsolation, changes: []change{attached(), guardSays(""), podLog(testUID, "guard", "--- 198.51.100.2 ping statistics ---\n5 packets transmitted, 0 packets received, 100% packet loss\n")}},
	{name: "host unreachable", cause: L2Unreachable, changes: []change{attached(), guardSays("wget: can't connect to remote host (198.51.100.9): No route to host")}},
	{name: "the node's own address", cause: MacvlanHostIsolation, changes: []change{attached(), guardSays("198.51.100.2 unreachable via net1")}},
	{name: "the node by its name", cause: MacvlanHostIsolation, changes: []change{attached(), guardSays("no reply from worker-7 (203.0.113.9)")}},
	{name: "an exit code alone", cause: GuardFailed, changes: []change{attached(), guardSays("")}},
	{name: "name resolution", cause: GuardFailed, changes: []change{attached(), guardSays("wget: bad address 'example.test'")}},
	{name: "the main container failed", cause: GuardFailed, changes: []change{attached(), done(), canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses[0].State = ended(3, "Error", "assertion failed", time.Minute)
	})}},
	{name: "failed a day ago", cause: EventsExpired, changes: []change{guardSays("net1 missing"), func(e *evidence.Evidence) { e.Events, e.CollectedAt = nil, now.Add(24*time.Hour) }}},
	{name: "failed hours ago, only the last event is left", cause: EventsExpired, changes: []change{guardSays(""), func(e *evidence.Evidence) { e.Events, e.CollectedAt = nil, now.Add(2*time.Hour) }, event(90*time.Minute, "Killing", "Stopping container", "kubelet")}},

	{name: "no socket", cause: DaemonUnreachable, changes: []change{failing(containerd(shim(noSocket)))}},
	{name: "socket closed in mid-call", cause: DaemonUnreachable, changes: []change{failing(crio(shim(`CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": EOF`)))}},
	{name: "shim waited in vain for a young daemon", cause: DaemonUnreachable, changes: []change{failing(combined(shim(shimWaited))), daemonStatus(runs(4*time.Minute), corev1.ContainerState{}, 0)}},
	{name: "the daemon knows no network", cause: DaemonInformerStale, changes: []change{podLog(daemonUID, "daemon", "2026-03-03T08:59:00Z [error] failed to sync net-attach-def informer cache\n"), failing(containerd(thick(own("cannot find a network-attachment-definition (storage) in namespace (lab): not found")[0])))}},
	{name: "the daemon's cache lacks a network that is there", cause: DaemonInformerStale, changes: []change{failing(containerd(thick(own(`cannot find a network-attachment-definition (storage) in namespace (lab): networkattachmentdefinition.k8s.cni.cncf.io "storage" not found`)[0])))}},
	{name: "Multus answered without a network", cause: DaemonInformerStale, changes: []change{ran("net1 missing"), canary(func(p *corev1.Pod) { p.Status.PodIP = "0.0.0.0" })}},
	{name: "runtime has no network, files not known", cause: DefaultNetworkNotReady, changes: []change{event(10*time.Second, "NetworkNotReady", "network is not ready: container runtime network not ready: cni plugin not initialized", "kubelet")}},
	{name: "installer fails, no canary", cause: MultusInstallFailed, changes: []change{noCanary(), installer(waits("CrashLoopBackOff", ""), ended(1, "Error", "cp: can't create '/host/opt/cni/bin/multus': Permission denied", 0), 3)}},
	{name: "installer cannot be run, canary waits", cause: MultusInstallFailed, changes: []change{failing(containerd(shim(noSocket))), installer(ended(128, "StartError", "exec: \"/install\": no such file", 0), corev1.ContainerState{}, 2)}},
	{name: "stack trace as last words", cause: MultusConfigRejected, changes: []change{noCanary(), daemonStatus(waits("CrashLoopBackOff", ""), ended(1, "Error", "2026-03-03T08:59:00Z [panic] ========= Stack trace output ========", 0), 4)}},
	{name: "between two crashes, running", cause: MultusConfigRejected, changes: []change{noCanary(), counts(3, 3, 2, 2), daemonNotReady(), daemonStatus(runs(4*time.Minute+55*time.Second), ended(1, "Error", "bad configuration", 4*time.Minute), 7)}},
	{name: "between two crashes, ended", cause: MultusConfigRejected, changes: []change{noCanary(), counts(3, 3, 2, 2), daemonNotReady(), daemonStatus(ended(1, "Error", "bad configuration", 4*time.Minute), corev1.ContainerState{}, 3)}},
	{name: "canary waits for a daemon that refuses its conf", cause: MultusConfigRejected, changes: []change{failing(crio(shim(refused))), daemonStatus(waits("CrashLoopBackOff", ""), ended(2, "Error", "failed to unmarshall the daemon configuration", 0), 4)}},

	{name: "not yet observed", cause: RolloutInProgress, changes: []change{noCanary(), daemonSet(func(ds *appsv1.DaemonSet) { ds.Generation = 3 })}},
	{name: "young revision, one not available", cause: RolloutInProgress, changes: []change{noCanary(), counts(3, 3, 2, 2), newRevision(4 * time.Minute)}},
	{name: "one not available while others wait for their turn", cause: RolloutInProgress, changes: []change{noCanary(), counts(3, 1, 2, 2)}},
	{name: "the canary waits meanwhile", cause: RolloutInProgress, changes: []change{counts(3, 1, 3, 3)}},
	{name: "image of the daemon cannot be had", cause: RolloutStuck, changes: []change{noCanary(), counts(3, 3, 2, 2), daemonStatus(waits("ImagePullBackOff", ""), corev1.ContainerState{}, 0)}},
	{name: "an old revision, one not available", cause: RolloutStuck, changes: []change{noCanary(), counts(3, 3, 2, 2)}},
	{name: "a daemon Pod that does not go", cause: RolloutStuck, changes: []change{noCanary(), counts(3, 2, 2, 2), newRevision(4 * time.Minute), daemon(func(p *corev1.Pod) { p.DeletionTimestamp = new(at(0)) })}},
	{name: "OnDelete, none deleted", cause: RolloutOnDelete, changes: []change{noCanary(), counts(3, 0, 3, 3), onDelete()}},
	{name: "OnDelete, told by the Pod's hash", cause: RolloutOnDelete, changes: []change{noCanary(), onDelete(), func(e *evidence.Evidence) {
		e.ControllerRevisions = append(e.ControllerRevisions, revision(2, start))
	}}},
	{name: "selector matches no node", cause: RolloutZeroDesired, changes: []change{noCanary(), counts(0, 0, 0, 0)}},
	{name: "selector matches no node, canary failed", cause: RolloutZeroDesired, changes: []change{counts(0, 0, 0, 0), ran("net1 missing"), func(e *evidence.Evidence) { e.Pods = e.Pods[:1] }}},
	{name: "a node is down", cause: RolloutBlockedNodeNotReady, changes: []change{noCanary(), counts(3, 3, 2, 2), func(e *evidence.Evidence) {
		e.Nodes = append(e.Nodes, node("worker-8", corev1.ConditionUnknown))
	}}},
	{name: "a node is down and not updated", cause: RolloutBlockedNodeNotReady, changes: []change{noCanary(), counts(3, 2, 2, 2), newRevision(time.Minute), func(e *evidence.Evidence) {
		e.Nodes = append(e.Nodes, node("worker-8", corev1.ConditionFalse))
	}}},

	{name: "status not written as the Pod was gone", cause: PodDeletedDuringAdd, changes: []change{noCanary(), eventOf(otherUID, 0, 1, "FailedCreatePodSandBox", crio(thin(own(`error setting the networks status: pods "probe" not found`)[0])), "kubelet")}},
	{name: "attached and gone, UID pinned", cause: PodDeletedDuringAdd, changes: []change{noCanary(), func(e *evidence.Evidence) { e.Canary.UID = testUID }, eth0(1)}},
	{name: "rebooted after a container was made", cause: NeverPodStranded, changes: []change{attached(), rebooted(time.Minute), canary(func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse })}},
	{name: "rebooted, an older kubelet without the condition", cause: NeverPodStranded, changes: []change{attached(), rebooted(time.Minute), canary(func(p *corev1.Pod) { p.Status.Conditions = nil })}},
	{name: "sandbox gone, its status cannot be read", cause: NeverPodStranded, changes: []change{attached(), event(time.Minute, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: rpc error: code = NotFound desc = not found", "kubelet"), canary(func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse })}},
	{name: "evicted", cause: NeverPodStranded, changes: []change{attached(), canary(func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })}},
	{name: "kubelet lost the container", cause: NeverPodStranded, changes: []change{attached(), canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.InitContainerStatuses[0].State = ended(137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated", time.Minute)
	})}},
	{name: "failed before the newest revision", cause: StaleAttempt, changes: []change{attached(), guardSays("no reply from 198.51.100.1"), newRevision(3 * time.Minute)}},
	{name: "passed before the network was created anew", cause: StaleAttempt, changes: []change{attached(), done(), func(e *evidence.Evidence) { e.Networks[0].CreationTimestamp = at(4 * time.Minute) }}},
	{name: "without Multus, before Multus was changed", cause: StaleAttempt, changes: []change{ran("net1 missing"), newRevision(4 * time.Minute), daemonStatus(runs(4*time.Minute), corev1.ContainerState{}, 0)}},
	{name: "the network came while it was asked for", cause: StaleAttempt, changes: []change{failing(crio(thin(own(`cannot find a network-attachment-definition (storage) in namespace (lab): network-attachment-definitions.k8s.cni.cncf.io "storage" not found`)[0]))), madeNetwork(24 * time.Second)}},
	{name: "the network came after the last try", cause: StaleAttempt, changes: []change{failing(crio(thin(own(`cannot find a network-attachment-definition (storage) in namespace (lab): networkattachmentdefinition.k8s.cni.cncf.io "storage" not found`)[0]))), madeNetwork(time.Minute)}},
	{name: "another UID has the name", cause: StaleAttempt, changes: []change{func(e *evidence.Evidence) { e.Canary.UID = otherUID }}},
	{name: "sandbox changed after the attach", cause: StaleNetworkStatus, changes: []change{attached(), event(time.Minute, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.", "kubelet")}},
	{name: "did well in a sandbox without Multus", cause: StaleNetworkStatus, changes: []change{eth0(1), net1(2), status(statusJSON), event(20*time.Second, "SandboxChanged", "Pod sandbox changed", "kubelet"), started(40 * time.Second), done()}},
	{name: "failed after a reboot", cause: StaleNetworkStatus, changes: []change{eth0(1), net1(2), status(statusJSON), rebooted(20 * time.Second), started(40 * time.Second), guardSays("net1 missing")}},
	{name: "no node fits", cause: Unscheduled, changes: []change{unbound("0/3 nodes are available")}},
	{name: "told by an event alone", cause: Unscheduled, changes: []change{unbound(""), event(1, "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", "default-scheduler")}},
	{name: "no scheduler looked at it", cause: Unscheduled, changes: []change{unbound(""), func(e *evidence.Evidence) { e.Events = nil }}},
	{name: "refused by the node", cause: Unscheduled, changes: []change{canary(func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeAffinity", Message: "Pod was rejected: Predicate NodeAffinity failed"}
	})}},
	{name: "main image cannot be had", cause: ImagePull, changes: []change{attached(), canary(func(p *corev1.Pod) {
		p.Status.InitContainerStatuses[0].State = ended(0, "Completed", "", time.Minute)
		p.Status.ContainerStatuses[0].State = waits("ErrImagePull", "not found")
	})}},
	{name: "told by events alone", cause: ImagePull, changes: []change{attachedOnly(), event(10*time.Second, "Failed", `Failed to pull image "busybox:1": not found`, "kubelet"), event(10*time.Second, "Failed", "Error: ErrImagePull", "kubelet"), eventOf(testUID, 20*time.Second, 3, "BackOff", `Back-off pulling image "busybox:1"`, "kubelet")}},
	{name: "never pull", cause: ImagePull, changes: []change{attached(), initWaits("ErrImageNeverPull", "image is not present with pull policy of Never")}},
	{name: "pause image, containerd", cause: SandboxImagePull, changes: []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image "registry.example/pause:3.9": failed to pull image: dial tcp: i/o timeout`)}},
	{name: "pause image, dockershim", cause: SandboxImagePull, changes: []change{failing(`Failed create pod sandbox: rpc error: code = Unknown desc = failed pulling image "registry.example/pause:3.1": Error response from daemon`)}},
	{name: "name reserved, containerd", cause: SandboxNameReserved, changes: []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to reserve sandbox name "probe_lab_x_0": name "probe_lab_x_0" is reserved for "5ca1"`)}},
	{name: "name reserved, cri-o", cause: SandboxNameReserved, changes: []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = Kubelet may be retrying requests that are timing out in CRI-O due to system load: error reserving pod name k8s_probe_lab_x_0 for id 5ca1: name is reserved`)}},
	{name: "name reserved, dockershim", cause: SandboxNameReserved, changes: []change{failing(`Failed create pod sandbox: rpc error: code = Unknown desc = failed to create a sandbox for pod "probe": Error response from daemon: Conflict. The container name "/k8s_POD_probe_lab_x_0" is already in use by container 5ca1`)}},
	{name: "a Secret is missing", cause: VolumeMount, changes: []change{event(5*time.Second, "FailedMount", `MountVolume.SetUp failed for volume "script" : secret "x" not found`, "kubelet")}},
	{name: "a claim is not attached", cause: VolumeMount, changes: []change{event(5*time.Second, "FailedAttachVolume", `AttachVolume.Attach failed for volume "pvc-1" : timed out waiting for the condition`, "attachdetach-controller")}},
	{name: "ConfigMap of a variable is missing", cause: ContainerConfigError, changes: []change{attached(), initWaits("CreateContainerConfigError", `configmap "guard-env" not found`)}},
	{name: "a Secret's key is missing, told by events alone", cause: ContainerConfigError, changes: []change{attachedOnly(), event(10*time.Second, "Pulled", "already present on machine", "kubelet"), eventOf(testUID, 10*time.Second, 9, "Failed", "Error: couldn't find key mode in Secret lab/guard", "kubelet")}},
	{name: "runtime may not make the namespace", cause: HostLSMDenied, changes: []change{failing(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create network namespace for sandbox "5c": mount --make-rshared /run/netns failed: "permission denied"`)}},
	{name: "command cannot be run", cause: ContainerConfigError, changes: []change{attached(), canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.InitContainerStatuses[0].State = ended(128, "StartError", `exec: "/guard.sh": permission denied`, time.Minute)
	})}},
	{name: "net1 went away", cause: MasterLinkRecreated, changes: []change{attached(), guardSays("interface net1 disappeared")}},
	{name: "net1 went away while it was looked at", cause: MasterLinkRecreated, changes: []change{attached(), guardSays("net1 is missing after 30s")}},
	{name: "net1 went away, and that is all", cause: MasterLinkRecreated, changes: []change{attached(), guardSays("error: net1 no longer exists, giving up")}},
	{name: "tool finds no net1", cause: MasterLinkRecreated, changes: []change{attached(), guardSays(`Device "net1" does not exist.`)}},
	{name: "busybox finds no net1", cause: MasterLinkRecreated, changes: []change{attached(), guardSays(`ip: can't find device 'net1'`)}},
	{name: "ifconfig finds no net1", cause: MasterLinkRecreated, changes: []change{attached(), guardSays(`net1: error fetching interface information: Device not found`)}},
	{name: "held by a finalizer", cause: OldPodTerminating, changes: []change{deleting(30), canary(func(p *corev1.Pod) { p.Finalizers = []string{"example.test/hold"} })}},
	{name: "the namesake is going", cause: OldPodTerminating, changes: []change{deleting(1), func(e *evidence.Evidence) { e.Canary.UID = otherUID }}},
	{name: "done, and being deleted", cause: OldPodTerminating, changes: []change{attached(), done(), deleting(30)}},
	{name: "teardown fails, in a list of errors", cause: TeardownBlocked, changes: []change{deleting(30), event(2*time.Minute, "FailedKillPod", `error killing pod: [failed to "KillContainer" for "main" with KillContainerError: "x", failed to "KillPodSandbox" for "a0" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \"5c\": plugin type=\"multus-shim\" failed (delete): dial unix: no such file"]`, "kubelet")}},
	{name: "the namesake cannot be torn down", cause: TeardownBlocked, changes: []change{deleting(30), event(2*time.Minute, "FailedKillPod", `error killing pod: failed to "KillPodSandbox" for "a0" with KillPodSandboxError: "x"`, "kubelet"), func(e *evidence.Evidence) { e.Canary.UID = otherUID }}},
	{name: "CRD by its deletion time", cause: CRDTerminating, changes: []change{noCanary(), crd(true)}},
	{name: "CRD by its condition, canary waits", cause: CRDTerminating, changes: []change{crd(false), failing(containerd(thin(own("cannot find a network-attachment-definition (storage) in namespace (lab): not found")[0])))}},
	{name: "nothing there", cause: NoAttempt, changes: []change{noCanary()}},
	{name: "just created", cause: AttemptInProgress, changes: []change{}},
	{name: "guard is running", cause: AttemptInProgress, changes: []change{attached(), canary(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State = runs(5 * time.Second) })}},
	{name: "Pods not looked at", cause: EvidenceIncomplete, changes: []change{without(evidence.Pods)}},
	{name: "events not looked at, guard saw no net1", cause: EvidenceIncomplete, changes: []change{without(evidence.Events), guardSays("net1 missing")}},
	{name: "events not looked at, guard silent", cause: EvidenceIncomplete, changes: []change{without(evidence.Events), guardSays("")}},
}

// attachedOnly is a sandbox made well, with no container of it yet.
func attachedOnly() change {
	return func(e *evidence.Evidence) {
		for _, c := range []change{eth0(3 * time.Second), net1(4 * time.Second), status(statusJSON), sandboxReady()} {
			c(e)
		}
	}
}

func daemonNotReady() change {
	return daemon(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
}

// madeNetwork lets the network be created so long after the canary.
func madeNetwork(when time.Duration) change {
	return func(e *evidence.Evidence) { e.Networks[0].CreationTimestamp = at(when) }
}

// noNetworks: looked for, and none is there.
func noNetworks() change {
	return func(e *evidence.Evidence) { e.Networks = nil }
}

func onDelete() change {
	return daemonSet(func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
}

func unbound(message string) change {
	return canary(func(p *corev1.Pod) {
		p.Spec.NodeName = ""
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if message != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
		}
	})
}

func TestScenes(t *testing.T) {
	for _, row := range scenes {
		t.Run(string(row.cause)+"/"+row.name, func(t *testing.T) {
			want := row.outcome
			if want == "" {
				want = outcomeOf(t, row.cause)
			}
			expect(t, build(row.changes...), want, row.cause)
		})
	}
}

// TestEveryCauseHasItsOwnCases counts the tables above: two cases of our own
// for each cause, besides the files.
func TestEveryCauseHasItsOwnCases(t *testing.T) {
	n := map[Cause]int{}
	for _, row := range scenes {
		n[row.cause]++
	}
	for _, row := range attachRows {
		n[row.cause]++
	}
	for _, entry := range Catalogue() {
		if n[entry.Cause] < 2 && entry.Cause != NoAttempt {
			t.Errorf("%s has %d cases of its own", entry.Cause, n[entry.Cause])
		}
	}
}
