package scriptednode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
)

// templateHash names a template. It is not the controller's own hash, which
// nobody may rely on, but like it depends on the template alone.
func templateHash(template *corev1.PodTemplateSpec) (string, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("hashing the template: %w", err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(data)
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32())), nil
}

// ensureRevision makes the ControllerRevision of the present template the
// newest one, and gives its hash.
func ensureRevision(ctx context.Context, client kubernetes.Interface, ds *appsv1.DaemonSet) (string, error) {
	hash, err := templateHash(&ds.Spec.Template)
	if err != nil {
		return "", err
	}
	revisions := client.AppsV1().ControllerRevisions(ds.Namespace)
	list, err := revisions.List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(ds.Spec.Selector.MatchLabels)})
	if err != nil {
		return "", err
	}
	var newest int64
	var same *appsv1.ControllerRevision
	for i := range list.Items {
		revision := &list.Items[i]
		if !metav1.IsControlledBy(revision, ds) {
			continue
		}
		newest = max(newest, revision.Revision)
		if revision.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash {
			same = revision
		}
	}
	switch {
	case same == nil:
		revision, err := newRevision(ds, hash, newest+1)
		if err != nil {
			return "", err
		}
		_, err = revisions.Create(ctx, revision, metav1.CreateOptions{})
		return hash, err
	case same.Revision < newest: // a roll back to an earlier template
		same.Revision = newest + 1
		_, err := revisions.Update(ctx, same, metav1.UpdateOptions{})
		return hash, err
	default:
		return hash, nil
	}
}

func newRevision(ds *appsv1.DaemonSet, hash string, number int64) (*appsv1.ControllerRevision, error) {
	template, err := json.Marshal(ds.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("writing the revision: %w", err)
	}
	// As the controller stores it: a patch that replaces the template.
	patch := bytes.Join([][]byte{[]byte(`{"spec":{"template":{"$patch":"replace",`), template[1:], []byte(`}}`)}, nil)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: ds.Name + "-" + hash, Namespace: ds.Namespace,
			Labels:          withHash(ds.Spec.Template.Labels, hash),
			OwnerReferences: []metav1.OwnerReference{ownerOf(ds)},
		},
		Revision: number,
	}
	revision.Data = runtime.RawExtension{Raw: patch}
	return revision, nil
}

func ownerOf(ds *appsv1.DaemonSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
}

func withHash(from map[string]string, hash string) map[string]string {
	out := map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: hash}
	maps.Copy(out, from)
	return out
}
