package status

import (
	"encoding/json"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

// now is the moment of every test; the canary was judged a minute before.
func now() time.Time { return time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

const (
	network   = "downloads/vlan50"
	canaryUID = types.UID("11111111-1111-4111-8111-111111111111")
)

// world is a site on which all is well: tests change one thing.
type world struct {
	t *testing.T
	*Data
}

func healthy(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, Data: &Data{
		At: now(), Subject: evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"},
		DaemonSet: evidence.Ref{Namespace: "kube-system", Name: "kube-multus-ds"},
		Logs:      map[types.UID]rollout.DaemonLog{}, OtherNetworks: map[types.NamespacedName]multus.NetConf{},
		CRD:      CRDRead{Object: crd("Established", "NamesAccepted")},
		Search:   Search{Pods: 40},
		Networks: []NetworkRead{{Namespace: "downloads", Name: "vlan50", Definition: definition(macvlan)}},
		Argo:     ArgoRead{Known: true},
	}}
	w.Shared = evidence.Evidence{
		DaemonSet: w.DaemonSet, CollectedAt: now(),
		Collected: map[evidence.Resource]bool{
			evidence.Pods: true, evidence.DaemonSets: true, evidence.ControllerRevisions: true, evidence.Nodes: true, evidence.CRDs: true,
		},
		DaemonSets:          []appsv1.DaemonSet{*daemonSet()},
		ControllerRevisions: []appsv1.ControllerRevision{*revision(1, "aaaa")},
		Pods:                []corev1.Pod{*daemon("node-a", "aaaa")},
		Nodes:               []corev1.Node{node("node-a", "boot-1")},
	}
	w.addCanary(canaryPod())
	w.record("pass", "ok")
	return w
}

const macvlan = `{"cniVersion":"0.3.1","type":"macvlan","master":"enp1s0.50","mode":"bridge","capabilities":{"ips":true},"ipam":{"type":"static"}}`

// addCanary puts a canary's evidence and its Pod on the network.
func (w *world) addCanary(pod *corev1.Pod) {
	e := w.Shared
	e.Canary = evidence.Ref{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	e.Pods = append([]corev1.Pod{*pod}, w.Shared.Pods...)
	e.Events = []corev1.Event{added(pod, "eth0", "10.42.0.9/24", "cbr0"), added(pod, "net1", "192.0.2.100/24", network)}
	e.Networks = []nadv1.NetworkAttachmentDefinition{*w.Networks[0].Definition}
	e.ConfigMaps = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "egress-guard", ResourceVersion: "7", CreationTimestamp: ago(time.Hour)}}}
	e.Collected = map[evidence.Resource]bool{evidence.Events: true, evidence.Networks: true, evidence.ConfigMaps: true}
	for r := range w.Shared.Collected {
		e.Collected[r] = true
	}
	w.Canaries = append(w.Canaries, Canary{Evidence: e})
	w.Pods = append(w.Pods, *pod)
}

// evidence is that of the first canary.
func (w *world) evidence() *evidence.Evidence { return &w.Canaries[0].Evidence }

// change changes the first canary's Pod wherever it is.
func (w *world) change(change func(*corev1.Pod)) {
	change(&w.evidence().Pods[0])
	w.Pods[0] = w.evidence().Pods[0]
}

// record notes a verdict on the canary, under the configuration that is there.
func (w *world) record(verdict, cause string) {
	w.t.Helper()
	configuration, err := json.Marshal(evidence.FingerprintOf(*w.evidence()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.change(func(pod *corev1.Pod) {
		for key, value := range map[string]string{
			canary.JudgedAnnot: string(pod.UID), canary.VerdictAnnot: verdict, canary.CauseAnnot: cause,
			canary.DecidedAtAnnot: now().Add(-time.Minute).Format(time.RFC3339), canary.ConfigurationAnnot: string(configuration),
		} {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
	})
}

// share changes what all canaries rest on.
func (w *world) share(change func(*evidence.Evidence)) {
	change(&w.Shared)
	for i := range w.Canaries {
		change(&w.Canaries[i].Evidence)
	}
}

// daemonNotReady makes the daemon's container wait for its first restart.
func (w *world) daemonNotReady() {
	w.share(func(e *evidence.Evidence) {
		for i := range e.Pods {
			if pod := &e.Pods[i]; pod.Namespace == "kube-system" {
				for j := range pod.Status.Conditions {
					if pod.Status.Conditions[j].Type == corev1.PodReady {
						pod.Status.Conditions[j].Status = corev1.ConditionFalse
					}
				}
			}
		}
	})
}

// hideNetworkAndGuard is a user who may not read them.
func (w *world) hideNetworkAndGuard() {
	e := w.evidence()
	e.Networks, e.ConfigMaps = nil, nil
	delete(e.Collected, evidence.Networks)
	delete(e.Collected, evidence.ConfigMaps)
}

// noCanary takes the canary away.
func (w *world) noCanary() {
	e := w.evidence()
	e.Pods, e.Events, e.Canary.UID = w.Shared.Pods, nil, ""
	w.Pods = nil
}

func crd(conditions ...string) *unstructured.Unstructured {
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c, "status": "True"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": crdName}, "status": map[string]any{"conditions": list},
	}}
}

func definition(config string) *nadv1.NetworkAttachmentDefinition {
	return &nadv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "vlan50", UID: "22222222-2222-4222-8222-222222222222", Generation: 1, CreationTimestamp: ago(time.Hour)},
		Spec:       nadv1.NetworkAttachmentDefinitionSpec{Config: config},
	}
}

func daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-multus-ds", UID: "33333333-3333-4333-8333-333333333333", Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template:       corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-multus", Image: "multus:v4.3.0-thick"}}}},
		},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 1, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1,
			UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		},
	}
}

func ownedByDaemonSet() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(daemonSet(), appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
}

func revision(number int64, hash string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "kube-multus-ds-" + hash, CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}, OwnerReferences: ownedByDaemonSet(),
		},
		Revision: number,
	}
}

// daemon has run for an hour on its node.
func daemon(node, hash string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "kube-multus-ds-" + node, UID: types.UID("daemon-" + node), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}, OwnerReferences: ownedByDaemonSet(),
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-multus"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "kube-multus", Ready: true, ContainerID: "containerd://" + node, ImageID: "multus@sha256:abcd",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Hour)}},
			}},
		},
	}
}

func node(name, boot string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: boot},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// canaryPod has passed two minutes ago.
func canaryPod() *corev1.Pod {
	done := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: ago(2 * time.Minute), FinishedAt: ago(2 * time.Minute),
		}}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "downloads", Name: "vlan50-canary", UID: canaryUID, CreationTimestamp: ago(3 * time.Minute),
			Annotations: map[string]string{
				nadv1.NetworkAttachmentAnnot: `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`,
				nadv1.NetworkStatusAnnot:     `[{"name":"cbr0","interface":"eth0","ips":["10.42.0.9"],"default":true,"dns":{}},{"name":"downloads/vlan50","interface":"net1","ips":["192.0.2.100"],"dns":{}}]`,
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-a", RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "guard"}}, Containers: []corev1.Container{{Name: "main"}},
			Volumes: []corev1.Volume{{Name: "guard", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "egress-guard"}}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodSucceeded, StartTime: new(ago(3 * time.Minute)),
			InitContainerStatuses: []corev1.ContainerStatus{done("guard")}, ContainerStatuses: []corev1.ContainerStatus{done("main")},
		},
	}
}

func added(pod *corev1.Pod, ifname, address, network string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "." + ifname},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         multus.ReasonAddedInterface, Message: "Add " + ifname + " [" + address + "] from " + network, Type: corev1.EventTypeNormal, Count: 1,
		Source: corev1.EventSource{Component: multus.Component}, FirstTimestamp: ago(150 * time.Second), LastTimestamp: ago(150 * time.Second),
	}
}

// running turns a Pod into one whose main container runs on.
func running(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(2 * time.Minute)}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}
