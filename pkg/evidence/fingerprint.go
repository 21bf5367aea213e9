package evidence

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Fingerprint is the configuration a verdict was reached under. Two that differ
// mean that the verdict of one says nothing about the other. An empty field is
// unknown, never a difference.
type Fingerprint struct {
	DaemonSetUID        types.UID `json:"daemonSetUID,omitempty"`
	DaemonSetGeneration int64     `json:"daemonSetGeneration,omitempty"`
	RevisionHash        string    `json:"revisionHash,omitempty"`
	// DaemonSetAbsent: looked, and not there.
	DaemonSetAbsent bool `json:"daemonSetAbsent,omitempty"`

	Node string `json:"node,omitempty"`
	// NodeBootID changes with each boot of the node.
	NodeBootID string `json:"nodeBootID,omitempty"`
	// NodeAbsent: looked, and not there.
	NodeAbsent bool `json:"nodeAbsent,omitempty"`

	// The daemon Pod on the canary's node; its restarts are known where its UID
	// is.
	DaemonPodUID      types.UID `json:"daemonPodUID,omitempty"`
	DaemonRestarts    int32     `json:"daemonRestarts,omitempty"`
	DaemonContainerID string    `json:"daemonContainerID,omitempty"`
	// DaemonConfWritten: that container's log shows that its CNI conf is written.
	// It is no part of the comparison.
	DaemonConfWritten bool `json:"daemonConfWritten,omitempty"`
	// DaemonAbsent: looked, and no daemon Pod on that node.
	DaemonAbsent bool `json:"daemonAbsent,omitempty"`

	// Networks are the NetworkAttachmentDefinitions the canary asks for, by
	// namespace/name.
	Networks map[string]NetworkPrint `json:"networks,omitempty"`
	// ConfigMaps are those the canary mounts or reads, name to resourceVersion.
	ConfigMaps map[string]string `json:"configMaps,omitempty"`
}

// NetworkPrint identifies one state of a NetworkAttachmentDefinition.
type NetworkPrint struct {
	UID             types.UID `json:"uid,omitempty"`
	Generation      int64     `json:"generation,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// ResourceName is the device pool its annotation names; annotations do not
	// count in the generation.
	ResourceName string `json:"resourceName,omitempty"`
	// Absent: looked, and not there.
	Absent bool `json:"absent,omitempty"`
}

// absentVersion stands for a ConfigMap that was looked for and is not there.
const absentVersion = "absent"

// FingerprintOf reads the fingerprint of the canary's present configuration.
func FingerprintOf(e Evidence) Fingerprint {
	var f Fingerprint
	if ds := e.MultusDaemonSet(); ds != nil {
		f.DaemonSetUID, f.DaemonSetGeneration = ds.UID, ds.Generation
	} else {
		f.DaemonSetAbsent = e.Looked(DaemonSets)
	}
	f.RevisionHash = RevisionHash(e.LatestRevision())
	pod := e.CanaryPod()
	if pod == nil {
		return f
	}
	f.Node = pod.Spec.NodeName
	f.addNode(&e)
	f.addNetworks(&e, pod)
	f.addConfigMaps(&e, pod)
	return f
}

func (f *Fingerprint) addNode(e *Evidence) {
	if f.Node == "" {
		return
	}
	if node := e.Node(f.Node); node != nil {
		f.NodeBootID = node.Status.NodeInfo.BootID
	} else {
		f.NodeAbsent = e.Looked(Nodes)
	}
	daemon := e.DaemonPod(f.Node)
	if daemon == nil {
		f.DaemonAbsent = e.Looked(Pods)
		return
	}
	f.DaemonPodUID = daemon.UID
	if cs := DaemonStatus(daemon); cs != nil {
		f.DaemonRestarts, f.DaemonContainerID = cs.RestartCount, cs.ContainerID
		_, f.DaemonConfWritten = e.ConfWritten(daemon, cs.Name)
	}
}

// ConfWritten reports whether a daemon's log says that its CNI conf was written,
// and at what time by the log's clock, in whole seconds; zero where the line
// carries none.
func (e *Evidence) ConfWritten(daemon *corev1.Pod, container string) (at time.Time, written bool) {
	for _, l := range e.PodLogs {
		if l.Pod.UID == daemon.UID && l.Container == container && !l.Previous {
			if state := multus.AttachReady(l.Log); state.Ready() {
				return state.ReadyAt, true
			}
		}
	}
	return time.Time{}, false
}

// DaemonStatus gives the status of the container of a daemon Pod that runs Multus
// (multus.DaemonContainer). Nil where the kubelet has not reported it.
func DaemonStatus(daemon *corev1.Pod) *corev1.ContainerStatus {
	container := multus.DaemonContainer(&daemon.Spec)
	for i := range daemon.Status.ContainerStatuses {
		cs := &daemon.Status.ContainerStatuses[i]
		if container == nil || cs.Name == container.Name {
			return cs
		}
	}
	return nil
}

// PodReady reads a Pod's Ready condition.
func PodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *Fingerprint) addNetworks(e *Evidence, pod *corev1.Pod) {
	selections, err := multus.RequestedNetworks(pod)
	if err != nil {
		return // an annotation that cannot be read names no network to compare
	}
	f.Networks = map[string]NetworkPrint{}
	for _, sel := range selections {
		nad := e.Network(sel.Namespace, sel.Name)
		switch {
		case nad != nil:
			f.Networks[sel.Network()] = NetworkPrint{
				UID: nad.UID, Generation: nad.Generation, ResourceVersion: nad.ResourceVersion,
				ResourceName: nad.Annotations[multus.ResourceNameAnnot],
			}
		case e.Looked(Networks):
			f.Networks[sel.Network()] = NetworkPrint{Absent: true}
		}
	}
}

func (f *Fingerprint) addConfigMaps(e *Evidence, pod *corev1.Pod) {
	f.ConfigMaps = map[string]string{}
	for _, name := range ConfigMapsOf(&pod.Spec) {
		if e.Looked(ConfigMaps) {
			f.ConfigMaps[name] = absentVersion
		}
		for i := range e.ConfigMaps {
			if cm := &e.ConfigMaps[i]; cm.Namespace == pod.Namespace && cm.Name == name {
				f.ConfigMaps[name] = cm.ResourceVersion
			}
		}
	}
}

// ConfigMapsOf names, sorted, the ConfigMaps a Pod mounts or takes variables
// from.
func ConfigMapsOf(spec *corev1.PodSpec) []string {
	names := map[string]bool{}
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			names[v.ConfigMap.Name] = true
		}
		if v.Projected != nil {
			for _, src := range v.Projected.Sources {
				if src.ConfigMap != nil {
					names[src.ConfigMap.Name] = true
				}
			}
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef != nil {
				names[from.ConfigMapRef.Name] = true
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
				names[env.ValueFrom.ConfigMapKeyRef.Name] = true
			}
		}
	}
	// Every Pod mounts the cluster's CA certificate; its rotation is no change
	// of the guard.
	delete(names, "kube-root-ca.crt")
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Unseen names what is known in f and could not be looked at for newer, so that
// whether it changed is not known.
func (f Fingerprint) Unseen(newer Fingerprint) []string {
	var unseen []string
	for _, name := range slices.Sorted(maps.Keys(f.Networks)) {
		if _, ok := newer.Networks[name]; !ok {
			unseen = append(unseen, "NetworkAttachmentDefinition "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.ConfigMaps)) {
		if _, ok := newer.ConfigMaps[name]; !ok {
			unseen = append(unseen, "ConfigMap "+name)
		}
	}
	return unseen
}

// Diff tells in plain sentences what changed from f to newer; empty where
// nothing is known to have changed.
func (f Fingerprint) Diff(newer Fingerprint) []string {
	var d []string
	switch {
	case f.DaemonSetUID != "" && newer.DaemonSetAbsent:
		d = append(d, "the DaemonSet was deleted")
	case f.DaemonSetAbsent && newer.DaemonSetUID != "":
		d = append(d, "the DaemonSet was created")
	case changed(f.DaemonSetUID, newer.DaemonSetUID):
		d = append(d, "the DaemonSet was deleted and created again")
	case changed(f.DaemonSetGeneration, newer.DaemonSetGeneration):
		d = append(d, fmt.Sprintf("the DaemonSet changed (generation %d -> %d)", f.DaemonSetGeneration, newer.DaemonSetGeneration))
	}
	if changed(f.RevisionHash, newer.RevisionHash) {
		d = append(d, fmt.Sprintf("the DaemonSet has a new revision (%s -> %s)", f.RevisionHash, newer.RevisionHash))
	}
	if changed(f.Node, newer.Node) {
		d = append(d, fmt.Sprintf("the canary is on another node (%s -> %s)", f.Node, newer.Node))
	} else {
		d = append(d, f.diffNode(newer)...)
	}
	d = append(d, f.diffNetworks(newer)...)
	return append(d, f.diffConfigMaps(newer)...)
}

func (f Fingerprint) diffNode(newer Fingerprint) []string {
	var d []string
	switch {
	case f.NodeBootID != "" && newer.NodeAbsent:
		d = append(d, fmt.Sprintf("node %s is gone", f.Node))
	case changed(f.NodeBootID, newer.NodeBootID):
		d = append(d, fmt.Sprintf("node %s was rebooted", f.Node))
	}
	switch {
	case f.DaemonPodUID != "" && newer.DaemonAbsent:
		d = append(d, "daemon pod is gone")
	case f.DaemonAbsent && newer.DaemonPodUID != "":
		d = append(d, "daemon pod appeared")
	case changed(f.DaemonPodUID, newer.DaemonPodUID):
		d = append(d, fmt.Sprintf("daemon pod was replaced (UID %s -> %s)", f.DaemonPodUID, newer.DaemonPodUID))
	case f.DaemonPodUID != "" && newer.DaemonPodUID != "" && f.DaemonRestarts != newer.DaemonRestarts:
		d = append(d, fmt.Sprintf("daemon pod restarted (restarts %d -> %d)", f.DaemonRestarts, newer.DaemonRestarts))
	case changed(f.DaemonContainerID, newer.DaemonContainerID):
		d = append(d, "daemon pod restarted (new container)")
	}
	return d
}

func (f Fingerprint) diffNetworks(newer Fingerprint) []string {
	var d []string
	for _, name := range slices.Sorted(maps.Keys(f.Networks)) {
		was := f.Networks[name]
		is, known := newer.Networks[name]
		if !known {
			continue
		}
		if text := was.diff(is); text != "" {
			d = append(d, "NetworkAttachmentDefinition "+name+" "+text)
		}
	}
	return d
}

func (p NetworkPrint) diff(newer NetworkPrint) string {
	switch {
	case newer.Absent && !p.Absent:
		return "was deleted"
	case p.Absent && !newer.Absent:
		return "was created"
	case changed(p.UID, newer.UID):
		return "was deleted and created again"
	case changed(p.Generation, newer.Generation):
		return fmt.Sprintf("changed (generation %d -> %d)", p.Generation, newer.Generation)
	case p.ResourceName != newer.ResourceName:
		return fmt.Sprintf("asks for another device pool (%q -> %q)", p.ResourceName, newer.ResourceName)
	case (p.Generation == 0 || newer.Generation == 0) && changed(p.ResourceVersion, newer.ResourceVersion):
		// Without a generation a changed label cannot be told from a changed
		// spec, so that any change counts.
		return fmt.Sprintf("changed (resourceVersion %s -> %s)", p.ResourceVersion, newer.ResourceVersion)
	}
	return ""
}

func (f Fingerprint) diffConfigMaps(newer Fingerprint) []string {
	var d []string
	for _, name := range slices.Sorted(maps.Keys(f.ConfigMaps)) {
		was, is := f.ConfigMaps[name], newer.ConfigMaps[name]
		switch {
		case !changed(was, is):
		case is == absentVersion:
			d = append(d, "ConfigMap "+name+" was deleted")
		case was == absentVersion:
			d = append(d, "ConfigMap "+name+" was created")
		default:
			d = append(d, fmt.Sprintf("ConfigMap %s changed (resourceVersion %s -> %s)", name, was, is))
		}
	}
	return d
}

// changed compares two values of which the zero value is unknown.
func changed[T comparable](was, is T) bool {
	var unknown T
	return was != unknown && is != unknown && was != is
}
