package evidence

import (
	"regexp"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// redacted stands in for what must not leave the cluster.
const redacted = "REDACTED"

// Redact gives a copy of the evidence without secrets: service-account token
// volumes and their mounts, variables and arguments that look like one, tokens
// in texts, the copies of whole manifests that annotations and revisions hold.
// A verdict does not change by it.
func Redact(e Evidence) Evidence {
	e.Pods = mapped(e.Pods, redactPod)
	e.DaemonSets = mapped(e.DaemonSets, redactDaemonSet)
	e.ControllerRevisions = mapped(e.ControllerRevisions, redactRevision)
	e.Nodes = mapped(e.Nodes, redactNode)
	e.Networks = mapped(e.Networks, redactNetwork)
	e.ConfigMaps = mapped(e.ConfigMaps, redactConfigMap)
	e.Events = mapped(e.Events, redactEvent)
	e.CRDs = mapped(e.CRDs, redactCRD)
	e.Applications = mapped(e.Applications, redactApplication)
	e.PodLogs = mapped(e.PodLogs, redactPodLog)
	e.HostFiles = mapped(e.HostFiles, redactHostFiles)
	return e
}

func redactPod(p corev1.Pod) corev1.Pod {
	p = *p.DeepCopy()
	redactMeta(&p.ObjectMeta)
	redactPodSpec(&p.Spec)
	redactStatuses(&p.Status)
	return p
}

func redactDaemonSet(ds appsv1.DaemonSet) appsv1.DaemonSet {
	ds = *ds.DeepCopy()
	redactMeta(&ds.ObjectMeta)
	redactMeta(&ds.Spec.Template.ObjectMeta)
	redactPodSpec(&ds.Spec.Template.Spec)
	return ds
}

func redactRevision(r appsv1.ControllerRevision) appsv1.ControllerRevision {
	r = *r.DeepCopy()
	redactMeta(&r.ObjectMeta)
	r.Data = runtime.RawExtension{} // a whole Pod template
	return r
}

func redactNode(n corev1.Node) corev1.Node {
	n = *n.DeepCopy()
	n.ManagedFields, n.Annotations = nil, nil // k3s keeps its arguments there
	n.Status.Images = nil
	return n
}

func redactNetwork(n nadv1.NetworkAttachmentDefinition) nadv1.NetworkAttachmentDefinition {
	n = *n.DeepCopy()
	redactMeta(&n.ObjectMeta)
	n.Spec.Config = redactText(n.Spec.Config)
	return n
}

func redactConfigMap(c metav1.PartialObjectMetadata) metav1.PartialObjectMetadata {
	c = *c.DeepCopy()
	c.ManagedFields, c.Annotations = nil, nil // the last applied one holds the content
	return c
}

func redactEvent(ev corev1.Event) corev1.Event {
	ev = *ev.DeepCopy()
	redactMeta(&ev.ObjectMeta)
	ev.Message = redactText(ev.Message)
	return ev
}

func redactPodLog(l PodLog) PodLog {
	l.Log = redactText(l.Log)
	return l
}

func mapped[T any](list []T, change func(T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, 0, len(list))
	for _, v := range list {
		out = append(out, change(v))
	}
	return out
}

func redactMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	for key, value := range m.Annotations {
		if isManifestCopy(key) {
			delete(m.Annotations, key)
			continue
		}
		m.Annotations[key] = redactText(value)
	}
	if len(m.Annotations) == 0 {
		m.Annotations = nil
	}
}

// isManifestCopy names annotations that hold a whole manifest.
func isManifestCopy(key string) bool {
	return key == corev1.LastAppliedConfigAnnotation || strings.Contains(key, "last-applied")
}

func redactPodSpec(spec *corev1.PodSpec) {
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		dropped[v.Name] = isTokenVolume(v)
		return dropped[v.Name]
	})
	for _, v := range spec.Volumes {
		// What stands beside a token in a volume of the user's own may be the guard.
		if v.Projected != nil {
			v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, hasToken)
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
			for j := range c.Env {
				if c.Env[j].Value != "" && smellsSecret(c.Env[j].Name) {
					c.Env[j].Value = redacted
				}
				c.Env[j].Value = redactText(c.Env[j].Value)
			}
			c.Command, c.Args = redactArgs(c.Command), redactArgs(c.Args)
			if len(c.VolumeMounts) == 0 {
				c.VolumeMounts = nil
			}
		}
	}
	spec.EphemeralContainers = nil
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
}

func hasToken(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }

// isTokenVolume: the projected token that the API server adds to every Pod (with
// the cluster's CA and the namespace), or the Secret of older clusters.
func isTokenVolume(v corev1.Volume) bool {
	if v.Projected != nil {
		own := func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && s.ConfigMap.Name != "kube-root-ca.crt" || s.Secret != nil
		}
		return slices.ContainsFunc(v.Projected.Sources, hasToken) && !slices.ContainsFunc(v.Projected.Sources, own)
	}
	return v.Secret != nil && strings.Contains(v.Secret.SecretName, "-token-")
}

func smellsSecret(name string) bool {
	low := strings.ToLower(name)
	for _, word := range []string{"password", "passwd", "secret", "token", "credential", "apikey", "api_key", "access_key", "private", "auth"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// redactArgs masks --token=x and --token x.
func redactArgs(args []string) []string {
	for i, arg := range args {
		args[i] = redactText(arg)
		if !strings.HasPrefix(arg, "-") || !smellsSecret(arg) {
			continue
		}
		if name, _, ok := strings.Cut(arg, "="); ok {
			args[i] = name + "=" + redacted
		} else if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			args[i+1] = redacted
		}
	}
	return args
}

func redactStatuses(st *corev1.PodStatus) {
	st.Message = redactText(st.Message)
	for _, list := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses} {
		for i := range list {
			// The kubelet lists the token's mount here as well.
			list[i].VolumeMounts = nil
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if state.Terminated != nil {
					state.Terminated.Message = redactText(state.Terminated.Message)
				}
				if state.Waiting != nil {
					state.Waiting.Message = redactText(state.Waiting.Message)
				}
			}
		}
	}
}

// tokens matches JSON web tokens, bearer headers and the values of fields that
// hold a credential. What stands before the value is kept, so that JSON stays
// JSON.
var tokens = regexp.MustCompile(`eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|((?i:bearer\s+))[\w.~+/-]{16,}=*|((?i:client-key-data|client-certificate-data|token|password)["']?\s*[:=]\s*["']?)[\w.~+/-]{16,}=*`)

// redactText masks tokens in any text. It leaves the text alone where there is
// none, so that an event's words stay what they were.
func redactText(text string) string {
	if !tokens.MatchString(text) {
		return text
	}
	return tokens.ReplaceAllString(text, "${1}${2}"+redacted)
}

func redactHostFiles(hf HostFiles) HostFiles {
	hf.Files = mapped(hf.Files, func(f HostFile) HostFile {
		f.Content = redactText(f.Content)
		return f
	})
	return hf
}

// redactCRD keeps the metadata and the conditions: no rule reads the schema.
func redactCRD(crd unstructured.Unstructured) unstructured.Unstructured {
	return keepFields(crd, []string{"status", "conditions"})
}

// redactApplication keeps what tells of sync and health: sources can hold
// credentials in addresses and parameters.
func redactApplication(app unstructured.Unstructured) unstructured.Unstructured {
	return keepFields(app, []string{"spec", "syncPolicy"}, []string{"spec", "destination"},
		[]string{"status", "sync", "status"}, []string{"status", "health"}, []string{"status", "resources"})
}

func keepFields(obj unstructured.Unstructured, paths ...[]string) unstructured.Unstructured {
	from := obj.DeepCopy()
	kept := unstructured.Unstructured{Object: map[string]any{}}
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		if v, ok := from.Object[field]; ok {
			kept.Object[field] = v
		}
	}
	unstructured.RemoveNestedField(kept.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(kept.Object, "metadata", "annotations")
	for _, path := range paths {
		if v, ok, err := unstructured.NestedFieldNoCopy(from.Object, path...); ok && err == nil {
			// The error means a parent of another form, which was made here.
			_ = unstructured.SetNestedField(kept.Object, v, path...)
		}
	}
	return kept
}

func contents(objs []unstructured.Unstructured) []map[string]any {
	out := make([]map[string]any, 0, len(objs))
	for _, o := range objs {
		out = append(out, o.Object)
	}
	return out
}
