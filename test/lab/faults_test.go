//go:build lab && linux

package lab_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// TestFaults breaks the node, the daemon, the network or the cluster, and wants
// the right word for it.
func TestFaults(t *testing.T) {
	for _, s := range append(daemonFaults(), append(networkFaults(), clusterFaults()...)...) {
		t.Run(s.name, s.run)
	}
}

// What the cluster says of a daemon that did not change during the attempt, and
// of a DaemonSet that no node is meant for.
const (
	steadyDaemon = "container kube-multus started (restarts 0)"
	noneDesired  = "wants no Pod on any node (nodeSelector kubernetes.io/hostname=node-2)"
)

// confsAre wants these confs on the node, and no other.
func confsAre(names ...string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		out, err := l.NodeCommand(t.Context(), "sh", "-c", "cd "+node.ConfDir+" && ls | grep -E 'conf(list)?$'").Output()
		if err != nil || !slices.Equal(strings.Fields(string(out)), names) {
			t.Errorf("the node has the confs %q (%v), want %v", out, err, names)
		}
	}
}

// plainSandbox wants, besides, a canary that has run and that Multus never saw.
func plainSandbox(besides func(*testing.T, *lab.Lab)) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		besides(t, l)
		clients, err := l.Clients()
		if err != nil {
			t.Fatal(err)
		}
		pod, err := clients.Kube.CoreV1().Pods(lab.Namespace).Get(t.Context(), lab.CanaryName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events, err := clients.Kube.CoreV1().Events(lab.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
		if err != nil {
			t.Fatal(err)
		}
		reasons := map[string]int{}
		for _, event := range events.Items {
			reasons[event.Reason]++
		}
		if reasons["Started"] == 0 || reasons["AddedInterface"] > 0 {
			t.Errorf("the canary's events are %v", reasons)
		}
	}
}

// daemonFaults are of the daemon and its conf.
func daemonFaults() []scenario {
	return []scenario{
		{
			name:    "daemon killed and restarted before the retest",
			arrange: killAndWait,
			verdict: "pass", cause: "ok",
		},
		{
			name:    "daemon killed in mid-attempt",
			during:  func(_ context.Context, l *lab.Lab) error { return l.KillDaemon() },
			verdict: "inconclusive", cause: "stale-attempt",
			next: "again", seen: "daemon pod restarted (restarts",
		},
		{
			name: "daemon starved of memory",
			arrange: changeSite(func(site *lab.Site) {
				limits := site.DaemonSet.Spec.Template.Spec.Containers[0].Resources
				limits.Limits[corev1.ResourceMemory] = resource.MustParse("6Mi")
				limits.Requests[corev1.ResourceMemory] = resource.MustParse("6Mi")
			}),
			verdict: "fail", cause: "daemon-oom",
			next: "memory", seen: "OOMKilled",
		},
		{
			name:    "conf emptied",
			arrange: func(_ context.Context, l *lab.Lab) error { return l.WriteNode(node.MultusConf, "") },
			timeout: time.Minute,
			// From outside the node an empty conf looks like any runtime without a
			// network.
			verdict: "inconclusive", cause: "default-network-not-ready",
			next: "primary network", seen: "cni plugin not initialized",
		},
		{
			name: "conf removed",
			arrange: func(_ context.Context, l *lab.Lab) error {
				return l.RemoveNode(node.MultusConf)
			},
			verdict: "fail", cause: "multus-not-in-chain",
			next: "restarting the daemon's Pod writes it", seen: steadyDaemon,
			proof: plainSandbox(confsAre("10-flannel.conflist")),
		},
		{
			name: "conf outranked",
			arrange: func(_ context.Context, l *lab.Lab) error {
				return l.WriteNode(node.ConfDir+"/00-a.conflist", node.FlannelConf)
			},
			verdict: "fail", cause: "multus-not-in-chain",
			next: "the first file", seen: steadyDaemon,
			proof: plainSandbox(confsAre("00-a.conflist", "00-multus.conf", "10-flannel.conflist")),
		},
		{
			name:    "conf left behind without a daemon",
			arrange: leaveConf,
			timeout: time.Minute,
			verdict: "inconclusive", cause: "rollout-zero-desired",
			next: "node selector", seen: noneDesired,
			proof: confsAre("00-multus.conf", "10-flannel.conflist"),
		},
	}
}

// killAndWait kills the daemon and waits until the kubelet has seen it, so that
// the retest meets the new container from its first look on.
func killAndWait(ctx context.Context, l *lab.Lab) error {
	before, err := daemonRestarts(ctx, l)
	if err != nil {
		return err
	}
	if err := l.KillDaemon(); err != nil {
		return err
	}
	for {
		now, err := daemonRestarts(ctx, l)
		if err != nil || now > before {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func daemonRestarts(ctx context.Context, l *lab.Lab) (int32, error) {
	clients, err := l.Clients()
	if err != nil {
		return 0, err
	}
	pods, err := clients.Kube.CoreV1().Pods(lab.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "name=multus"})
	if err != nil {
		return 0, err
	}
	var restarts int32
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
		}
	}
	return restarts, nil
}

// leaveConf takes the daemon away and leaves its conf, as a crashed node or a
// forced deletion does.
func leaveConf(ctx context.Context, l *lab.Lab) error {
	conf, err := l.ReadNode(node.MultusConf)
	if err != nil {
		return err
	}
	if err := changeSite(noNode)(ctx, l); err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "wait", "--for=delete", "pod", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--timeout", "1m"); err != nil {
		return err
	}
	return l.WriteNode(node.MultusConf, conf)
}

// networkFaults are of the network that the canary asks for.
func networkFaults() []scenario {
	return []scenario{
		{
			name: "network missing",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				clients, err := l.Clients()
				if err != nil {
					return err
				}
				return clients.Networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions(lab.Namespace).Delete(ctx, lab.NetworkName, metav1.DeleteOptions{})
			},
			verdict: "fail", cause: "nad-not-found",
			next: "vlan50", seen: "cannot find a network-attachment-definition (vlan50)",
		},
		{
			name:    "network with broken JSON",
			arrange: changeNetwork(`{"cniVersion": "0.3.1", "type": "macvlan", "master": `),
			verdict: "fail", cause: "nad-config-invalid",
			next: "JSON", seen: "unexpected end of JSON input",
		},
		{
			name:    "wrong master",
			arrange: changeNetwork(`{"cniVersion": "0.3.1", "name": "vlan50", "type": "macvlan", "master": "enp1s0.51", "capabilities": {"ips": true}, "ipam": {"type": "static"}}`),
			verdict: "fail", cause: "master-link-missing",
			next: "enp1s0.51", seen: "Link not found",
		},
		{
			name:    "address already answered for",
			arrange: func(ctx context.Context, l *lab.Lab) error { return l.HoldAddress(ctx) },
			verdict: "fail", cause: "duplicate-address",
			next: node.CanaryAddress, seen: "guard: duplicate address: somebody else answers for " + node.CanaryAddress,
		},
		{
			name:    "gateway does not answer",
			arrange: func(ctx context.Context, l *lab.Lab) error { return l.MuteSwitch(ctx) },
			verdict: "fail", cause: "l2-unreachable",
			next: node.VLANInterface, seen: "does not answer on net1",
		},
	}
}

func changeNetwork(config string) func(context.Context, *lab.Lab) error {
	return changeSite(func(site *lab.Site) { site.Network.Spec.Config = config })
}

// clusterFaults are of what the canary needs besides, and of the cluster's own
// parts.
func clusterFaults() []scenario {
	return []scenario{
		{
			name: "guard script missing",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				clients, err := l.Clients()
				if err != nil {
					return err
				}
				return clients.Kube.CoreV1().ConfigMaps(lab.Namespace).Delete(ctx, lab.GuardName, metav1.DeleteOptions{})
			},
			verdict: "inconclusive", cause: "volume-mount",
			next: "guard", seen: `configmap "vlan50-guard" not found`,
		},
		{
			name: "image missing",
			canary: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Image = "lab.invalid/missing:1"
				pod.Spec.InitContainers[0].Image = "lab.invalid/missing:1"
			},
			verdict: "inconclusive", cause: "image-pull",
			next: "lab.invalid/missing:1", seen: `failed to pull and unpack image "lab.invalid/missing:1"`,
		},
		{
			name: "kubelet stopped and started",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				return l.StopService(ctx, node.Kubelet)
			},
			during: func(ctx context.Context, l *lab.Lab) error {
				return l.StartService(ctx, node.Kubelet)
			},
			verdict: "pass", cause: "ok",
		},
		{
			name:    "API server restarted in mid-attempt",
			during:  restartService(node.APIServer),
			verdict: "pass", cause: "ok", also: "late-success",
		},
		{
			name:    "containerd restarted in mid-attempt",
			during:  restartService(node.Containerd),
			verdict: "pass", cause: "ok", also: "late-success",
		},
	}
}

func restartService(name string) func(context.Context, *lab.Lab) error {
	return func(ctx context.Context, l *lab.Lab) error {
		return errors.Join(l.KillService(ctx, name), l.StartService(ctx, name))
	}
}
