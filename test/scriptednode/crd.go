package scriptednode

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// crdName is the CustomResourceDefinition of the networks.
const crdName = "network-attachment-definitions.k8s.cni.cncf.io"

// networkCRD is the definition of the Multus manifest.
func networkCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "k8s.cni.cncf.io",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "network-attachment-definitions", Singular: "network-attachment-definition",
				Kind: "NetworkAttachmentDefinition", ShortNames: []string{"nad", "net-attach-def"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"config": {Type: "string"}}},
					},
				}},
			}},
		},
	}
}

// InstallCRD installs the NetworkAttachmentDefinition's definition and returns
// when it is served. Installing it twice, or twice at once, is fine.
func InstallCRD(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("installing %s: %w", crdName, err)
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, networkCRD(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("installing %s: %w", crdName, err)
	}
	lw := cache.NewListWatchFromClient(client.ApiextensionsV1().RESTClient(), "customresourcedefinitions", "",
		fields.OneTermEqualSelector("metadata.name", crdName))
	_, err = watchtools.UntilWithSync(ctx, cache.ToListWatcherWithWatchListSemantics(lw, client), &apiextensionsv1.CustomResourceDefinition{}, nil, established)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", crdName, err)
	}
	return nil
}

func established(e watch.Event) (bool, error) {
	crd, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return false, nil
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true, nil
		}
	}
	return false, nil
}
