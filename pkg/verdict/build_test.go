package verdict

import (
	"fmt"
	"strings"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// The names and times every built case starts from. They differ from those of
// the case files on purpose.
const (
	testNS    = "lab"
	testName  = "probe"
	testUID   = types.UID("a0a0a0a0-1111-4222-8333-444444444444")
	otherUID  = types.UID("b1b1b1b1-1111-4222-8333-555555555555")
	testNode  = "worker-7"
	daemonUID = types.UID("d1d1d1d1-1111-4222-8333-666666666666")
	ifName    = "net1"
	address   = "198.51.100.7"
	netConf   = `{"cniVersion":"1.0.0","name":"storage-net","type":"macvlan","master":"bond0.70","capabilities":{"ips":true},"ipam":{"type":"static"}}`
)

// start is when the canary was created; now is when it is judged.
var (
	start = time.Date(2026, 3, 3, 9, 0, 0, 0, time.UTC)
	now   = start.Add(5 * time.Minute)
)

// change makes one deviation from the base case.
type change func(e *evidence.Evidence)

// build gives a canary that waits for its sandbox under a steady daemon, and
// then what the changes make of it.
func build(changes ...change) evidence.Evidence {
	e := evidence.Evidence{
		CollectedAt: now,
		Canary:      evidence.Ref{Namespace: testNS, Name: testName, UID: testUID},
		DaemonSet:   evidence.Ref{Namespace: "net-system", Name: "multus"},
		Collected: map[evidence.Resource]bool{
			evidence.Pods: true, evidence.Events: true, evidence.DaemonSets: true, evidence.ControllerRevisions: true,
			evidence.Nodes: true, evidence.Networks: true,
		},
		Pods:                []corev1.Pod{waitingCanary(), steadyDaemon()},
		DaemonSets:          []appsv1.DaemonSet{steadyDaemonSet()},
		ControllerRevisions: []appsv1.ControllerRevision{revision(1, start.Add(-48*time.Hour))},
		Nodes:               []corev1.Node{node(testNode, corev1.ConditionTrue)},
		Networks: []nadv1.NetworkAttachmentDefinition{{
			ObjectMeta: metav1.ObjectMeta{Namespace: testNS, Name: "storage", Generation: 1, CreationTimestamp: at(-72 * time.Hour)},
			Spec:       nadv1.NetworkAttachmentDefinitionSpec{Config: netConf},
		}},
	}
	event(0, "Scheduled", "Successfully assigned", "default-scheduler")(&e)
	for _, c := range changes {
		c(&e)
	}
	return e
}

func at(d time.Duration) metav1.Time { return metav1.NewTime(start.Add(d)) }

func waitingCanary() corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNS, Name: testName, UID: testUID, CreationTimestamp: at(0),
			Annotations: map[string]string{nadv1.NetworkAttachmentAnnot: `[{"name":"storage","ips":["` + address + `/24"]}]`},
		},
		Spec: corev1.PodSpec{
			NodeName: testNode, RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "guard", Image: "busybox:1"}},
			Containers:     []corev1.Container{{Name: "main", Image: "busybox:2"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, StartTime: new(at(time.Second)),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "guard", State: waits("PodInitializing", "")}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "main", State: waits("PodInitializing", "")}},
		},
	}
}

func steadyDaemon() corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "net-system", Name: "multus-abcde", UID: daemonUID, CreationTimestamp: at(-47 * time.Hour),
			Labels:          map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: "hash1"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "multus", UID: "ds1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName:       testNode,
			InitContainers: []corev1.Container{{Name: "install", Image: "example.test/multus-cni:v4.3.0-thick"}},
			Containers:     []corev1.Container{{Name: "daemon", Image: "example.test/multus-cni:v4.3.0-thick"}},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "install", State: ended(0, "Completed", "", -47*time.Hour)}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "daemon", Ready: true, State: runs(-46 * time.Hour)}},
		},
	}
}

func steadyDaemonSet() appsv1.DaemonSet {
	return appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "net-system", Name: "multus", UID: "ds1", Generation: 2, Labels: map[string]string{"app": "multus"}},
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 3, NumberAvailable: 3,
		},
	}
}

func revision(n int64, made time.Time) appsv1.ControllerRevision {
	return appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "net-system", Name: fmt.Sprintf("multus-hash%d", n), CreationTimestamp: metav1.NewTime(made),
			Labels:          map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: fmt.Sprintf("hash%d", n)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "multus", UID: "ds1"}},
		},
		Revision: n,
	}
}

func node(name string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.51.100.2"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func runs(since time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(since)}}
}

func ended(code int32, reason, message string, when time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: at(when - 10*time.Second), FinishedAt: at(when),
	}}
}

// event adds an old-style event of the canary's UID.
func event(when time.Duration, reason, message, component string) change {
	return eventOf(testUID, when, 1, reason, message, component)
}

func eventOf(uid types.UID, when time.Duration, count int32, reason, message, component string) change {
	return func(e *evidence.Evidence) {
		e.Events = append(e.Events, corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: testNS, Name: fmt.Sprintf("%s.%d", testName, len(e.Events)), CreationTimestamp: at(when)},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: testNS, Name: testName, UID: uid},
			Reason:         reason, Message: message, Source: corev1.EventSource{Component: component}, Count: count,
			FirstTimestamp: at(when), LastTimestamp: at(when),
		})
	}
}

// failing adds two failed attempts to make the sandbox.
func failing(message string) change {
	return func(e *evidence.Evidence) {
		event(10*time.Second, "FailedCreatePodSandBox", message, "kubelet")(e)
		event(25*time.Second, "FailedCreatePodSandBox", message, "kubelet")(e)
	}
}

func eth0(when time.Duration) change {
	return event(when, "AddedInterface", "Add eth0 [10.1.2.3/24] from cluster-net", "multus")
}

func net1(when time.Duration) change {
	return event(when, "AddedInterface", "Add net1 ["+address+"/24] from lab/storage", "multus")
}

// canary changes the canary's Pod.
func canary(f func(p *corev1.Pod)) change {
	return func(e *evidence.Evidence) {
		for i := range e.Pods {
			if e.Pods[i].Name == testName {
				f(&e.Pods[i])
			}
		}
	}
}

// daemon changes the daemon's Pod.
func daemon(f func(p *corev1.Pod)) change {
	return func(e *evidence.Evidence) {
		for i := range e.Pods {
			if e.Pods[i].Name == "multus-abcde" {
				f(&e.Pods[i])
			}
		}
	}
}

func daemonSet(f func(ds *appsv1.DaemonSet)) change {
	return func(e *evidence.Evidence) { f(&e.DaemonSets[0]) }
}

func annotate(key, value string) change {
	return canary(func(p *corev1.Pod) { p.Annotations[key] = value })
}

func networks(value string) change { return annotate(nadv1.NetworkAttachmentAnnot, value) }

func nadConfig(config string) change {
	return func(e *evidence.Evidence) { e.Networks[0].Spec.Config = config }
}

const statusJSON = `[{"name":"cluster-net","interface":"eth0","ips":["10.1.2.3"],"default":true,"dns":{}},{"name":"lab/storage","interface":"net1","ips":["` + address + `"],"dns":{}}]`

func status(text string) change { return annotate(nadv1.NetworkStatusAnnot, text) }

// started adds kubelet's events of a container that was started.
func started(when time.Duration) change {
	return func(e *evidence.Evidence) {
		event(when, "Created", "Created container guard", "kubelet")(e)
		event(when, "Started", "Started container guard", "kubelet")(e)
	}
}

// done lets guard and main container finish well.
func done() change {
	return canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.InitContainerStatuses[0].State = ended(0, "Completed", "", time.Minute)
		p.Status.ContainerStatuses[0].State = ended(0, "Completed", "", 2*time.Minute)
	})
}

// guardSays lets the guard fail with a message.
func guardSays(message string) change {
	return canary(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.PodIP = "10.1.2.3"
		p.Status.InitContainerStatuses[0].State = ended(1, "Error", message, time.Minute)
	})
}

// attached is a sandbox made well, with all its events.
func attached() change {
	return func(e *evidence.Evidence) {
		for _, c := range []change{eth0(3 * time.Second), net1(4 * time.Second), status(statusJSON), started(5 * time.Second), sandboxReady()} {
			c(e)
		}
	}
}

func sandboxReady() change {
	return canary(func(p *corev1.Pod) {
		p.Status.Conditions[1].Status = corev1.ConditionTrue
	})
}

func hostFiles(dir, runtimeDir string, files ...string) change {
	return func(e *evidence.Evidence) {
		hf := evidence.HostFiles{Node: testNode, Dir: dir, RuntimeConfDir: runtimeDir}
		for _, f := range files {
			name, empty := strings.CutPrefix(f, "empty ")
			size := int64(300)
			if empty {
				size = 0
			}
			hf.Files = append(hf.Files, evidence.HostFile{Name: name, Size: size})
		}
		e.HostFiles = append(e.HostFiles, hf)
	}
}

func podLog(uid types.UID, container, text string) change {
	return func(e *evidence.Evidence) {
		e.PodLogs = append(e.PodLogs, evidence.PodLog{Pod: evidence.Ref{Namespace: testNS, Name: "x", UID: uid}, Container: container, Log: text})
	}
}

func without(r evidence.Resource) change {
	return func(e *evidence.Evidence) {
		delete(e.Collected, r)
		switch r {
		case evidence.Events:
			e.Events = nil
		case evidence.Networks:
			e.Networks = nil
		case evidence.Pods:
			e.Pods = nil
		default: // nothing of it matters to these tests
		}
	}
}

// noCanary takes the canary away, as before the first attempt.
func noCanary() change {
	return func(e *evidence.Evidence) {
		e.Canary.UID = ""
		e.Pods = e.Pods[1:]
		e.Events = nil
	}
}

func noDaemonSet() change {
	return func(e *evidence.Evidence) {
		e.DaemonSets, e.ControllerRevisions, e.Pods = nil, nil, e.Pods[:1]
	}
}
