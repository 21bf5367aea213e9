package cmd

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// readObjects names the objects of manifests, in their order. They are read as
// they stand, without asking the server what kinds it knows. Namespaces are
// left out: what else is in one is not looked at.
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
		if manifest.GetAPIVersion() == "v1" && manifest.GetKind() == "Namespace" {
			notes = append(notes, "Namespace "+manifest.GetName()+" stays: a rollback deletes no namespace")
			continue
		}
		if manifest.GetKind() == "CustomResourceDefinition" {
			notes = append(notes, "CustomResourceDefinition "+manifest.GetName()+" is no consumer: a rollback deletes that of the networks alone, last, where its own rules say so")
			continue
		}
		object, err := objectOf(manifest, fallback)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", info.Source, err)
		}
		objects = append(objects, object)
	}
	return objects, notes, nil
}

func objectOf(manifest *unstructured.Unstructured, namespace string) (rollback.Object, error) {
	kind, err := rollback.ParseKind(manifest.GetKind())
	if err != nil {
		return rollback.Object{}, err
	}
	if group := manifest.GroupVersionKind().Group; group != kind.Group {
		return rollback.Object{}, fmt.Errorf("%s %s is of group %q: rollback deletes that kind of group %q alone", kind.Name, manifest.GetName(), group, kind.Group)
	}
	if manifest.GetName() == "" {
		return rollback.Object{}, errors.New(kind.Name + " without metadata.name")
	}
	object := rollback.Object{Kind: kind, Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	switch {
	case kind.ClusterWide:
		object.Namespace = ""
	case object.Namespace == "":
		object.Namespace = namespace
	}
	return object, nil
}
