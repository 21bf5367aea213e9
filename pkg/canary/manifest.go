// Package canary takes a canary Pod through one attempt: its manifest, the
// lock, the deletion and creation, what is watched and what is recorded.
package canary

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Annotations and labels of our own.
const (
	// Prefix marks every annotation the tool writes.
	Prefix = "vlan50.dev/"
	// AttemptAnnot names the attempt that created a Pod, so that a create whose
	// answer was lost is recognised.
	AttemptAnnot = Prefix + "attempt"
	// JudgedAnnot, VerdictAnnot, CauseAnnot, MessageAnnot, DecidedAtAnnot and
	// ConfigurationAnnot record a verdict on the Pod it judged, whose UID the
	// first one names: annotations are easily copied to another Pod.
	JudgedAnnot        = Prefix + "judged-uid"
	VerdictAnnot       = Prefix + "verdict"
	CauseAnnot         = Prefix + "cause"
	MessageAnnot       = Prefix + "message"
	DecidedAtAnnot     = Prefix + "decided-at"
	ConfigurationAnnot = Prefix + "configuration"
)

// tokenVolume is the name the API server gives to the service account volume
// it adds to every Pod (k8s.io/kubernetes plugin/pkg/admission/serviceaccount).
const tokenVolume = "kube-api-access-"

// Check refuses a Pod that is no canary. Its rules, in order:
//
//   - it is controlled by nothing: a controller would recreate it while nobody
//     watches;
//   - it has a fixed name;
//   - its restartPolicy is Never, that of each container as well: a restarted
//     guard would hide its failure;
//   - it does not use the node's network, where the kubelet asks no CNI plugin;
//   - it asks for a secondary network, in an annotation that parses;
//   - it carries no network-status: that would forge the proof of an attachment.
func Check(pod *corev1.Pod) error {
	switch {
	case len(pod.OwnerReferences) > 0:
		owner := pod.OwnerReferences[0]
		return fmt.Errorf("it is owned by %s %s, which would recreate it unasked: a canary must be a bare Pod", owner.Kind, owner.Name)
	case pod.Name == "":
		return errors.New("it has no metadata.name: a canary needs a fixed name (generateName will not do)")
	case pod.Spec.RestartPolicy != corev1.RestartPolicyNever:
		return fmt.Errorf("its restartPolicy is %q: a canary needs Never, so that the first failure stays visible", restartPolicy(pod))
	case pod.Spec.HostNetwork:
		return errors.New("it uses the node's network (hostNetwork): Multus attaches no such Pod")
	}
	if name := restarted(pod); name != "" {
		return fmt.Errorf("its container %s has a restart policy of its own: a canary needs Never, so that the first failure stays visible", name)
	}
	if _, err := multus.RequestedNetworks(pod); errors.Is(err, multus.ErrNoNetworks) {
		return fmt.Errorf("it has no annotation %s: it asks for no network to be tested", nadv1.NetworkAttachmentAnnot)
	} else if err != nil {
		return fmt.Errorf("its networks cannot be read: %w", err)
	}
	for _, key := range []string{nadv1.NetworkStatusAnnot, multus.LegacyStatusAnnot} {
		if _, forged := pod.Annotations[key]; forged {
			return fmt.Errorf("it carries the annotation %s, which only Multus may write: remove it", key)
		}
	}
	return nil
}

// restarted names a container that would be started again after it has failed.
// A sidecar is no guard, and may be.
func restarted(pod *corev1.Pod) string {
	own := func(c corev1.Container) bool {
		return len(c.RestartPolicyRules) > 0 || c.RestartPolicy != nil && *c.RestartPolicy != corev1.ContainerRestartPolicyNever
	}
	for _, c := range pod.Spec.InitContainers {
		if own(c) && !evidence.IsSidecar(c) {
			return c.Name
		}
	}
	for _, c := range pod.Spec.Containers {
		if own(c) {
			return c.Name
		}
	}
	return ""
}

func restartPolicy(pod *corev1.Pod) corev1.RestartPolicy {
	if pod.Spec.RestartPolicy == "" {
		return corev1.RestartPolicyAlways
	}
	return pod.Spec.RestartPolicy
}

// FromLive is the manifest that recreates a live Pod: what the server, the
// scheduler, Multus and this tool have added is taken off; what users and their
// tools wrote (tracking labels, last-applied) stays.
func FromLive(live *corev1.Pod) *corev1.Pod {
	pod := live.DeepCopy()
	pinned := ownsNodeName(live)
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: live.Name, Namespace: live.Namespace,
		Labels: pod.Labels, Annotations: ownAnnotations(pod.Annotations),
		OwnerReferences: pod.OwnerReferences,
		// No finalizers: whoever put one on the old Pod puts it on the new one, if
		// it is still wanted.
	}
	pod.Status = corev1.PodStatus{}
	if !pinned {
		pod.Spec.NodeName = ""
	}
	// Admission works these out again, and refuses values that differ.
	pod.Spec.Priority, pod.Spec.PreemptionPolicy, pod.Spec.Overhead = nil, nil, nil
	pod.Spec.EphemeralContainers = nil
	dropTokenVolume(&pod.Spec)
	return pod
}

// ownAnnotations drops what the last attempt left on the Pod. Copied over, an
// old network-status would forge a pass.
func ownAnnotations(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return key == nadv1.NetworkStatusAnnot || key == multus.LegacyStatusAnnot || strings.HasPrefix(key, Prefix)
	})
	return kept
}

// ownsNodeName reports whether a user placed the Pod on its node. The
// scheduler's binding leaves no trace in managedFields, a manifest does.
func ownsNodeName(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:nodeName"`)
	})
}

func dropTokenVolume(spec *corev1.PodSpec) {
	isToken := func(name string) bool { return strings.HasPrefix(name, tokenVolume) }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return isToken(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts,
				func(m corev1.VolumeMount) bool { return isToken(m.Name) })
		}
	}
}
