package canary

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   string // empty where the Pod is a canary
	}{
		{"a canary", func(*corev1.Pod) {}, ""},
		{"networks in the short form", networksAnnotation("vlan50@net7"), ""},
		{"owned by a ReplicaSet", func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}
		}, "it is owned by ReplicaSet web, which would recreate it unasked: a canary must be a bare Pod"},
		{"a generated name", func(pod *corev1.Pod) { pod.Name, pod.GenerateName = "", "vlan50-" }, "it has no metadata.name: a canary needs a fixed name (generateName will not do)"},
		{"restarted on failure", func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, `its restartPolicy is "OnFailure": a canary needs Never, so that the first failure stays visible`},
		{"no restartPolicy", func(pod *corev1.Pod) { pod.Spec.RestartPolicy = "" }, `its restartPolicy is "Always": a canary needs Never, so that the first failure stays visible`},
		{"a guard that is restarted", containerPolicy(corev1.ContainerRestartPolicyOnFailure), "its container guard has a restart policy of its own: a canary needs Never, so that the first failure stays visible"},
		{"a sidecar beside the guard", containerPolicy(corev1.ContainerRestartPolicyAlways), ""},
		{"a main container that is restarted", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}, "its container canary has a restart policy of its own"},
		{"on the node's network", func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }, "it uses the node's network (hostNetwork): Multus attaches no such Pod"},
		{"no networks annotation", func(pod *corev1.Pod) { pod.Annotations = nil }, "it has no annotation k8s.v1.cni.cncf.io/networks: it asks for no network to be tested"},
		{"an empty networks annotation", networksAnnotation("  "), "it has no annotation k8s.v1.cni.cncf.io/networks: it asks for no network to be tested"},
		{"a networks annotation that does not parse", networksAnnotation(`[{"name":`), "its networks cannot be read: "},
		{"a forged network-status", func(pod *corev1.Pod) { pod.Annotations[nadv1.NetworkStatusAnnot] = "[]" }, "it carries the annotation k8s.v1.cni.cncf.io/network-status, which only Multus may write: remove it"},
		{"a forged network-status of the old key", func(pod *corev1.Pod) { pod.Annotations[multus.LegacyStatusAnnot] = "" }, "it carries the annotation k8s.v1.cni.cncf.io/networks-status, which only Multus may write: remove it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := canaryManifest()
			test.change(pod)
			err := Check(pod)
			if got := errorText(err); test.want == "" && err != nil || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func containerPolicy(policy corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "guard", RestartPolicy: &policy}}
	}
}

func networksAnnotation(text string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[nadv1.NetworkAttachmentAnnot] = text }
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What a server, a scheduler, Multus and this tool have added to a live Pod is
// taken off; what users and their tools wrote stays.
func TestFromLive(t *testing.T) {
	live := canaryManifest()
	live.Labels = map[string]string{"app.kubernetes.io/instance": "argo-app"}
	live.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	live.Annotations["argocd.argoproj.io/tracking-id"] = "argo-app:/Pod:downloads/vlan50-canary"
	want := live.DeepCopy()

	live.UID, live.ResourceVersion, live.Generation = "uid", "7", 2
	live.CreationTimestamp, live.DeletionTimestamp = metav1.Now(), new(metav1.Now())
	live.DeletionGracePeriodSeconds = ptr.To[int64](30)
	live.Finalizers = []string{"example.com/held"}
	live.ManagedFields = managedBy("kubectl-client-side-apply")
	live.Annotations[nadv1.NetworkStatusAnnot] = `[{"name":"downloads/vlan50"}]`
	live.Annotations[multus.LegacyStatusAnnot] = "[]"
	for _, ours := range []string{AttemptAnnot, VerdictAnnot, CauseAnnot, MessageAnnot, DecidedAtAnnot, ConfigurationAnnot, JudgedAnnot} {
		live.Annotations[ours] = "x"
	}
	live.Spec.NodeName = "node-a"
	live.Spec.Priority, live.Spec.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
	live.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
	live.Spec.Volumes = []corev1.Volume{{Name: "guard"}, {Name: "kube-api-access-x7k2p"}}
	token := corev1.VolumeMount{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}
	live.Spec.InitContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "guard", MountPath: "/guard"}, token}
	live.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{token}
	live.Status = corev1.PodStatus{Phase: corev1.PodFailed, PodIP: "10.42.0.4"}

	want.Spec.Volumes = []corev1.Volume{{Name: "guard"}}
	want.Spec.InitContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "guard", MountPath: "/guard"}}
	want.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{}

	untouched := live.DeepCopy()
	got := FromLive(live)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(untouched, live); diff != "" {
		t.Errorf("the live Pod was changed (-was +is):\n%s", diff)
	}
	if err := Check(got); err != nil {
		t.Errorf("what is made of a live canary is none: %v", err)
	}
}

func TestFromLiveKeepsANodeNameThatAUserWrote(t *testing.T) {
	fields := func(subresource, raw string) []metav1.ManagedFieldsEntry {
		entry := metav1.ManagedFieldsEntry{Manager: "kubectl", Subresource: subresource, FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawString(raw)
		return []metav1.ManagedFieldsEntry{entry}
	}
	tests := map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"in the manifest":                       {fields("", `{"f:spec":{"f:nodeName":{}}}`), "node-a"},
		"by the scheduler's binding":            {fields("", `{"f:spec":{"f:nodeSelector":{}}}`), ""},
		"in a status that names the node":       {fields("status", `{"f:status":{"f:nodeName":{}}}`), ""},
		"nothing is known of who wrote":         {nil, ""},
		"an entry without fields (old servers)": {[]metav1.ManagedFieldsEntry{{Manager: "kubectl"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := canaryManifest()
			live.Spec.NodeName, live.ManagedFields = "node-a", test.fields
			if got := FromLive(live).Spec.NodeName; got != test.want {
				t.Errorf("nodeName %q, want %q", got, test.want)
			}
		})
	}
}

func TestRecorded(t *testing.T) {
	noted := map[string]string{
		JudgedAnnot: "uid-1", VerdictAnnot: "pass", CauseAnnot: "ok",
		DecidedAtAnnot: "2026-01-15T12:00:00Z", ConfigurationAnnot: `{"daemonSetUID":"ds"}`,
	}
	tests := []struct {
		name, key, value string
		want             string // part of the error
	}{
		{"as a retest noted it", VerdictAnnot, "pass", ""},
		{"a word that is no verdict", VerdictAnnot, "maybe", `annotation vlan50.dev/verdict: "maybe" is no verdict`},
		{"copied from another Pod", JudgedAnnot, "uid-2", `the verdict noted on this Pod was reached on another one (UID "uid-2")`},
		{"without the UID it was reached on", JudgedAnnot, "", `the verdict noted on this Pod was reached on another one (UID "")`},
		{"without a time", DecidedAtAnnot, "", "annotation vlan50.dev/decided-at is no time"},
		{"without a configuration", ConfigurationAnnot, "", "annotation vlan50.dev/configuration"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-1", Annotations: map[string]string{}}}
			maps.Copy(pod.Annotations, noted)
			pod.Annotations[test.key] = test.value
			record, err := Recorded(pod)
			if test.want == "" {
				check(t, err)
				if record.Outcome != "pass" || record.Configuration.DaemonSetUID != "ds" {
					t.Errorf("record: %+v", record)
				}
				return
			}
			if record != nil || !strings.Contains(errorText(err), test.want) {
				t.Errorf("record %+v, error %v, want %q", record, err, test.want)
			}
		})
	}
	if record, err := Recorded(&corev1.Pod{}); record != nil || err != nil {
		t.Errorf("a Pod without a record: %+v, %v", record, err)
	}
}
