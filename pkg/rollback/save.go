package rollback

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// save keeps on this machine what recreates an object, before it is deleted.
// The canary goes where a retest looks for it.
func (r *Rollback) save(live *unstructured.Unstructured, object Object) error {
	if object.Kind.Name == "Pod" {
		if object.Owner != nil {
			return nil // its controller makes it
		}
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, pod); err != nil {
			return err
		}
		pod = canary.FromLive(pod)
		if object.Namespace == r.Canary.Namespace && object.Name == r.Canary.Name {
			_, err := r.Store.SaveManifest(pod)
			return err
		}
		return r.saveManifest(object, pod)
	}
	return r.saveManifest(object, manifestOf(live))
}

func (r *Rollback) saveManifest(object Object, manifest any) error {
	data, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%02d-%s.%s.%s.yaml", rank(object, r.state.Consumers), strings.ToLower(object.Kind.Name), object.Namespace, object.Name)
	r.result.Saved, err = r.Store.SaveObject(r.state.DaemonSet, name, data)
	return err
}

// rank orders files as they must be applied: the reverse of the deletion, with
// the consumers last.
func rank(object Object, consumers []Object) int {
	for i, consumer := range consumers {
		if consumer.same(object) {
			return max(50, 99-i)
		}
	}
	for i, name := range []string{
		"CustomResourceDefinition", "ConfigMap", "ServiceAccount", "ClusterRole", "Role",
		"ClusterRoleBinding", "RoleBinding", "DaemonSet", networkKind,
	} {
		if name == object.Kind.Name {
			return 10 + i
		}
	}
	return 49
}

// manifestOf takes off what the server, the controllers and this tool added.
func manifestOf(live *unstructured.Unstructured) map[string]any {
	object := live.DeepCopy().Object
	delete(object, "status")
	annotations := maps.Clone(live.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, canary.Prefix) || key == "deprecated.daemonset.template.generation" || key == "deployment.kubernetes.io/revision"
	})
	meta := map[string]any{"name": live.GetName()}
	if live.GetNamespace() != "" {
		meta["namespace"] = live.GetNamespace()
	}
	if len(live.GetLabels()) > 0 {
		meta["labels"] = live.GetLabels()
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	object["metadata"] = meta
	if spec, ok := object["spec"].(map[string]any); ok {
		dropAssigned(live.GetKind(), spec)
	}
	return object
}

// dropAssigned takes values off that the server gives out anew.
func dropAssigned(kind string, spec map[string]any) {
	switch kind {
	case "Service":
		if spec["clusterIP"] != "None" {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
	case "Job":
		delete(spec, "selector")
		unstructured.RemoveNestedField(spec, "template", "metadata", "labels", "controller-uid")
		unstructured.RemoveNestedField(spec, "template", "metadata", "labels", "batch.kubernetes.io/controller-uid")
	}
}
