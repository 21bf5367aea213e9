package cmd

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/json"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// readManifest reads exactly one canary Pod from the given files. It is read as
// it stands, without asking the server what kinds it knows.
func readManifest(getter genericclioptions.RESTClientGetter, files resource.FilenameOptions) (*canary.Manifest, error) {
	infos, err := resource.NewBuilder(getter).Unstructured().Local().
		FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the canary's manifest: %w", err)
	}
	if len(infos) == 0 {
		return nil, errors.New("the canary's manifest is empty")
	}
	if len(infos) > 1 {
		return nil, fmt.Errorf("the manifest holds %d objects (%s and others): give the one canary Pod alone", len(infos), describe(infos[0]))
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok || object.GetKind() != "Pod" || object.GetAPIVersion() != "v1" {
		return nil, fmt.Errorf("%s holds %s: a canary must be a bare Pod (apiVersion v1, kind Pod), created by no controller", infos[0].Source, describe(infos[0]))
	}
	pod, err := strictPod(object)
	if err != nil {
		return nil, fmt.Errorf("%s is no valid Pod: %w", infos[0].Source, err)
	}
	if err := canary.Check(pod); err != nil {
		return nil, fmt.Errorf("the Pod %s in %s will not do: %w", pod.Name, infos[0].Source, err)
	}
	return &canary.Manifest{Pod: pod, Source: infos[0].Source}, nil
}

// strictPod takes an object for a Pod. A field that Pods do not have, and one of
// another type, is an error that names it.
func strictPod(object *unstructured.Unstructured) (*corev1.Pod, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	strict, err := json.UnmarshalStrict(data, pod)
	return pod, errors.Join(append(strict, err)...)
}

func describe(info *resource.Info) string {
	kind := "an object without kind"
	if object, ok := info.Object.(*unstructured.Unstructured); ok && object.GetKind() != "" {
		kind = object.GetKind()
	}
	if info.Name != "" {
		return kind + " " + info.Name
	}
	return kind
}
