package canary

import (
	"fmt"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

var (
	nadResource        = nadv1.SchemeGroupVersion.WithResource("network-attachment-definitions")
	leasesResource     = coordinationv1.SchemeGroupVersion.WithResource("leases")
	daemonSetsResource = appsv1.SchemeGroupVersion.WithResource("daemonsets")
)

// The log of a thick daemon of Multus v4.3.0 at level verbose: before and after
// its CNI conf is on the disk.
const (
	startingLog = "2026-01-15T12:00:00Z [verbose] multus-daemon started\n2026-01-15T12:00:01Z [verbose] API readiness check done!\n"
	readyLog    = startingLog + "2026-01-15T12:00:02Z [verbose] Generated MultusCNI config: {\"cniVersion\":\"0.3.1\"}\n" +
		"2026-01-15T12:00:02Z [verbose] started to watch file /host/var/run/secrets\n"
)

// site is what a world begins with. A test changes one thing of it.
type site struct {
	node      *corev1.Node
	daemonSet *appsv1.DaemonSet
	revision  *appsv1.ControllerRevision
	daemon    *corev1.Pod
	networks  []*nadv1.NetworkAttachmentDefinition
	// canary is the Pod of the earlier attempt; nil where there is none.
	canary *corev1.Pod
	others []runtime.Object
}

func newSite() *site {
	start := metav1.NewTime(time.Now().Add(-30 * time.Second))
	old := metav1.NewTime(start.Add(-time.Hour))
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "multus"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-multus", Image: "multus-cni:v4.3.0-thick"}}},
	}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-multus-ds", UID: "ds-uid", Generation: 3, CreationTimestamp: old},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
		},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 3, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1,
			UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		},
	}
	return &site{
		node:      readyNode("node-a"),
		daemonSet: ds,
		revision: &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "kube-multus-ds-rev3", Labels: revisionLabels("rev3"),
				OwnerReferences: ownedBy(ds), CreationTimestamp: old,
			},
			Revision: 3,
		},
		daemon:   daemonPod(ds, "kube-multus-ds-x7k2p", "node-a", start),
		networks: []*nadv1.NetworkAttachmentDefinition{network("downloads", "vlan50", "enp1s0.50")},
		canary:   failedCanary(),
	}
}

func (s *site) objects() []runtime.Object {
	objects := append([]runtime.Object{s.node, s.daemonSet, s.revision, s.daemon}, s.others...)
	if s.canary != nil {
		objects = append(objects, s.canary)
	}
	return objects
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func ownedBy(ds *appsv1.DaemonSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
}

func revisionLabels(hash string) map[string]string {
	return map[string]string{"name": "multus", appsv1.ControllerRevisionHashLabelKey: hash}
}

// daemonPod is a daemon that has been running and Ready since start.
func daemonPod(ds *appsv1.DaemonSet, name, node string, start metav1.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: name, UID: types.UID(name + "-uid"),
			Labels: revisionLabels("rev3"), OwnerReferences: ownedBy(ds), CreationTimestamp: start,
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-multus"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "kube-multus", Ready: true, ContainerID: "containerd://" + name,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
			}},
		},
	}
}

func network(namespace, name, master string) *nadv1.NetworkAttachmentDefinition {
	return &nadv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1},
		Spec: nadv1.NetworkAttachmentDefinitionSpec{Config: fmt.Sprintf(
			`{"cniVersion": "0.3.1", "name": %q, "type": "macvlan", "master": %q, "capabilities": {"ips": true}, "ipam": {"type": "static"}}`, name, master)},
	}
}

// canaryManifest is the canary as a user writes it.
func canaryManifest() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "downloads", Name: "vlan50-canary",
			Annotations: map[string]string{nadv1.NetworkAttachmentAnnot: `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyNever,
			NodeSelector:   map[string]string{corev1.LabelHostname: "node-a"},
			InitContainers: []corev1.Container{{Name: "guard", Image: "busybox:1.36"}},
			Containers:     []corev1.Container{{Name: "canary", Image: "busybox:1.36"}},
		},
	}
}

// failedCanary is the canary of an earlier attempt, which failed.
func failedCanary() *corev1.Pod {
	pod := canaryManifest()
	pod.UID, pod.ResourceVersion = "old-uid", "old-version"
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	pod.Spec.NodeName = "node-a"
	pod.Annotations[nadv1.NetworkStatusAnnot] = `[{"name":"cbr0","interface":"eth0","ips":["10.42.0.4"],"default":true,"dns":{}}]`
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed}
	return pod
}

func managedBy(manager string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, Time: new(metav1.Now())}}
}

// newObject is an empty object of the kind that is watched.
func newObject(request clienttesting.WatchActionImpl) (runtime.Object, error) {
	return scheme.Scheme.New(kindOf(request.Resource))
}

// passes plays a canary that is attached, addressed and done.
func (w *world) passes(pod *corev1.Pod) {
	w.play(pod, 500*time.Millisecond, w.scheduled)
	w.play(pod, time.Second, func(pod *corev1.Pod) {
		w.event(pod, "AddedInterface", "Add eth0 [10.42.0.5/24] from cbr0")
		w.event(pod, "AddedInterface", "Add net1 [192.0.2.100/24] from downloads/vlan50")
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, nadv1.NetworkStatusAnnot, `[{"name":"cbr0","interface":"eth0","ips":["10.42.0.5"],"default":true,"dns":{}},`+
			`{"name":"downloads/vlan50","interface":"net1","ips":["192.0.2.100"],"dns":{}}]`)
	})
	w.play(pod, 3*time.Second, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("guard", 0)}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended("canary", 0)}
	})
}

// guardFails plays a canary whose guard fails after a good attachment.
func (w *world) guardFails(pod *corev1.Pod) {
	w.passes(pod)
	w.play(pod, 2*time.Second, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("guard", 7)}
	})
}

// noMacvlan plays a canary whose sandbox cannot be made.
func (w *world) noMacvlan(pod *corev1.Pod) {
	w.play(pod, 500*time.Millisecond, w.scheduled)
	for _, after := range []time.Duration{time.Second, 15 * time.Second} {
		w.play(pod, after, func(pod *corev1.Pod) {
			w.eventOf(pod, "kubelet", corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown desc = "+
				`failed to setup network for sandbox "c0ffee": plugin type="multus-shim" name="multus-cni-network" failed (add): `+
				`CmdAdd (shim): CNI request failed with status 400: 'ContainerID:"c0ffee" Netns:"/var/run/netns/x" IfName:"eth0" Args:"" Path:"" `+
				`ERRORED: error configuring pod [downloads/vlan50-canary] networking: [downloads/vlan50-canary/`+string(pod.UID)+`:vlan50]: `+
				`error adding container to network "vlan50": failed to find plugin "macvlan" in path [/var/lib/rancher/k3s/data/cni]`+"\n': StdinData: {}")
		})
	}
}

// play changes the Pod at its time, while it is still the same Pod.
func (w *world) play(pod *corev1.Pod, after time.Duration, change func(*corev1.Pod)) {
	time.AfterFunc(after, func() {
		w.update(pod.UID, func(pod *corev1.Pod) {
			if pod.Status.Phase != corev1.PodFailed {
				change(pod)
			}
		})
	})
}

func (w *world) scheduled(pod *corev1.Pod) {
	pod.Spec.NodeName = "node-a"
	pod.Status.StartTime = new(metav1.Now())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
}

func ended(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()},
	}}
}

// event is one of Multus about this Pod.
func (w *world) event(pod *corev1.Pod, reason, message string) {
	w.eventOf(pod, "multus", corev1.EventTypeNormal, reason, message)
}

func (w *world) eventOf(pod *corev1.Pod, component, kind, reason, message string) {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "." + w.next()},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         reason, Message: message, Type: kind, Source: corev1.EventSource{Component: component},
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
	check(w.t, w.tracker.Create(eventsResource, event, event.Namespace))
}
