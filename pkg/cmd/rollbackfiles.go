package cmd

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// readObjects names the objects of manifests, in their order. They are read as
// they stand, without asking the server what kinds it knows. Those of a kind that
// a rollback does not delete, such as namespaces and what holds data, are left out
// and named.
func readObjects(getter genericclioptions.RESTClientGetter, files resource.FilenameOptions) (objects []rollback.Object, notes []string, err error) {
	fallback, _, err := getter.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	infos, err := resource.NewBuilder(getter).Unstructured().Local().
		FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the manifests: %w", err)
	}
	for _, info := range infos {
		manifest, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, nil, fmt.Errorf("%s holds %s, which is no single object", info.Source, describe(info))
		}
		if manifest.GetKind() == "CustomResourceDefinition" {
			notes = append(notes, "CustomResourceDefinition "+manifest.GetName()+" is no consumer: a rollback deletes that of the networks alone, last, where its own rules say so")
			continue
		}
		if manifest.GetKind() == "" || manifest.GetName() == "" {
			return nil, nil, fmt.Errorf("%s: an object without kind or metadata.name", info.Source)
		}
		kind, err := rollback.ParseKind(manifest.GetKind())
		if err != nil || kind.Group != manifest.GroupVersionKind().Group {
			notes = append(notes, fmt.Sprintf("%s %s stays: a rollback deletes no object of its kind", manifest.GetKind(), manifest.GetName()))
			continue
		}
		objects = append(objects, objectOf(kind, manifest, fallback))
	}
	return objects, notes, nil
}

func objectOf(kind rollback.Kind, manifest *unstructured.Unstructured, namespace string) rollback.Object {
	object := rollback.Object{Kind: kind, Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	switch {
	case kind.ClusterWide:
		object.Namespace = ""
	case object.Namespace == "":
		object.Namespace = namespace
	}
	return object
}
