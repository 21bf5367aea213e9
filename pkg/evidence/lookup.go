package evidence

import (
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CanaryPod gives the Pod being judged, nil where it is not there. Where
// Canary.UID is set no other UID is ever returned.
func (e *Evidence) CanaryPod() *corev1.Pod {
	for i := range e.Pods {
		p := &e.Pods[i]
		if p.Namespace == e.Canary.Namespace && p.Name == e.Canary.Name &&
			(e.Canary.UID == "" || p.UID == e.Canary.UID) {
			return p
		}
	}
	return nil
}

// Namesake gives the Pod that has the canary's name and another UID, nil where
// there is none.
func (e *Evidence) Namesake() *corev1.Pod {
	if e.Canary.UID == "" {
		return nil
	}
	for i := range e.Pods {
		p := &e.Pods[i]
		if p.Namespace == e.Canary.Namespace && p.Name == e.Canary.Name && p.UID != e.Canary.UID {
			return p
		}
	}
	return nil
}

// MultusDaemonSet gives the DaemonSet named by the evidence, nil where it is
// not there.
func (e *Evidence) MultusDaemonSet() *appsv1.DaemonSet {
	for i := range e.DaemonSets {
		ds := &e.DaemonSets[i]
		if ds.Namespace == e.DaemonSet.Namespace && ds.Name == e.DaemonSet.Name &&
			(e.DaemonSet.UID == "" || ds.UID == e.DaemonSet.UID) {
			return ds
		}
	}
	return nil
}

// DaemonPods gives the Multus DaemonSet's Pods on a node, on all nodes where
// node is empty.
func (e *Evidence) DaemonPods(node string) []*corev1.Pod {
	uid := e.DaemonSet.UID
	if ds := e.MultusDaemonSet(); ds != nil {
		uid = ds.UID
	}
	var pods []*corev1.Pod
	for i := range e.Pods {
		p := &e.Pods[i]
		if p.Namespace == e.DaemonSet.Namespace && (node == "" || p.Spec.NodeName == node) &&
			ownedBy(p.OwnerReferences, e.DaemonSet.Name, uid) {
			pods = append(pods, p)
		}
	}
	return pods
}

// DaemonPod gives the newest of the DaemonSet's Pods on a node, one that is not
// going before one that is; nil where there is none.
func (e *Evidence) DaemonPod(node string) *corev1.Pod {
	var best *corev1.Pod
	for _, p := range e.DaemonPods(node) {
		if best == nil || daemonPodBefore(p, best) {
			best = p
		}
	}
	return best
}

// daemonPodBefore orders by "not terminating", then age, then UID, so that the
// order of the documents never matters.
func daemonPodBefore(a, b *corev1.Pod) bool {
	if aGoing, bGoing := a.DeletionTimestamp != nil, b.DeletionTimestamp != nil; aGoing != bGoing {
		return bGoing
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.UID > b.UID
}

// LatestRevision gives the DaemonSet's newest ControllerRevision, nil where
// none is known. A rolled back DaemonSet's old revision gets a new, highest
// number, so that the highest is always the present one.
func (e *Evidence) LatestRevision() *appsv1.ControllerRevision {
	uid := e.DaemonSet.UID
	if ds := e.MultusDaemonSet(); ds != nil {
		uid = ds.UID
	}
	var latest *appsv1.ControllerRevision
	for i := range e.ControllerRevisions {
		r := &e.ControllerRevisions[i]
		if r.Namespace != e.DaemonSet.Namespace || !ownedBy(r.OwnerReferences, e.DaemonSet.Name, uid) {
			continue
		}
		if latest == nil || r.Revision > latest.Revision ||
			r.Revision == latest.Revision && r.Name > latest.Name {
			latest = r
		}
	}
	return latest
}

// RevisionHash gives the hash a Pod of this revision carries in its
// controller-revision-hash label.
func RevisionHash(r *appsv1.ControllerRevision) string {
	if r == nil {
		return ""
	}
	return r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
}

// Node gives a node by name, nil where it is not there.
func (e *Evidence) Node(name string) *corev1.Node {
	for i := range e.Nodes {
		if e.Nodes[i].Name == name {
			return &e.Nodes[i]
		}
	}
	return nil
}

// Network gives a NetworkAttachmentDefinition, nil where it is not there.
func (e *Evidence) Network(namespace, name string) *nadv1.NetworkAttachmentDefinition {
	for i := range e.Networks {
		n := &e.Networks[i]
		if n.Namespace == namespace && n.Name == name {
			return n
		}
	}
	return nil
}

func ownedBy(refs []metav1.OwnerReference, name string, uid types.UID) bool {
	for _, r := range refs {
		if r.Kind != "DaemonSet" {
			continue
		}
		if uid != "" && r.UID != "" {
			if r.UID == uid {
				return true
			}
			continue
		}
		if r.Name == name {
			return true
		}
	}
	return false
}
