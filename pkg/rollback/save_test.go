package rollback

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestManifestOf(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"name": "proxy", "namespace": "downloads", "uid": "1", "resourceVersion": "7", "generation": int64(2), "creationTimestamp": "2026-03-14T12:00:00Z",
			"labels":        map[string]any{"app": "proxy"},
			"annotations":   map[string]any{MarkAnnot: "canary downloads/vlan50-canary", "example.com/note": "kept"},
			"managedFields": []any{}, "finalizers": []any{"example.com/hold"}, "ownerReferences": []any{},
		},
		"spec":   map[string]any{"clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "ports": []any{}},
		"status": map[string]any{},
	}}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"name": "proxy", "namespace": "downloads",
			"labels": map[string]string{"app": "proxy"}, "annotations": map[string]string{"example.com/note": "kept"},
		},
		"spec": map[string]any{"ports": []any{}},
	}
	if diff := cmp.Diff(want, manifestOf(live)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if live.GetUID() != "1" {
		t.Error("the live object was changed")
	}
}

func TestRankIsTheOrderOfApply(t *testing.T) {
	t.Parallel()
	proxy, service := object("Deployment", "downloads", "proxy"), object("Service", "downloads", "proxy")
	consumers := []Object{proxy, service}
	order := []Object{
		object("CustomResourceDefinition", "", networkCRD), object("ServiceAccount", "kube-system", "multus"), object("ClusterRole", "", "multus"),
		object("ClusterRoleBinding", "", "multus"), object("DaemonSet", "kube-system", "kube-multus-ds"), object(networkKind, "downloads", "vlan50"),
		service, proxy, // deleted the other way round
	}
	for i := range order[1:] {
		if a, b := rank(order[i], consumers), rank(order[i+1], consumers); a >= b {
			t.Errorf("%s (%d) must come before %s (%d)", order[i], a, order[i+1], b)
		}
	}
}
