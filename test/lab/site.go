//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// restartedAt is what `kubectl rollout restart` leaves in a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Site is the reference site's objects that a test may change.
type Site struct {
	DaemonSet    *appsv1.DaemonSet
	DaemonConfig *corev1.ConfigMap
	Network      *nadv1.NetworkAttachmentDefinition
	Guard        *corev1.ConfigMap
}

// Reference gives the site as the manifests have it.
func (l *Lab) Reference() (Site, error) {
	site := Site{
		DaemonSet: new(appsv1.DaemonSet), DaemonConfig: new(corev1.ConfigMap),
		Network: new(nadv1.NetworkAttachmentDefinition), Guard: new(corev1.ConfigMap),
	}
	return site, errors.Join(
		l.readManifest(manifestDaemonSet, site.DaemonConfig, site.DaemonSet),
		l.readManifest(manifestNetwork, new(corev1.Namespace), site.Network),
		l.readManifest(manifestGuard, site.Guard),
	)
}

// readManifest reads the documents of a manifest, in order.
func (l *Lab) readManifest(name string, objects ...any) error {
	data, err := os.ReadFile(l.Manifest(name))
	if err != nil {
		return err
	}
	documents := bytes.Split(data, []byte("\n---\n"))
	if len(documents) != len(objects) {
		return fmt.Errorf("%s has %d documents, not %d", name, len(documents), len(objects))
	}
	for i, object := range objects {
		if err := yaml.UnmarshalStrict(documents[i], object); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

// Apply makes the cluster's site what is given. A DaemonSet whose template does
// not change is left alone, so that nothing rolls without need.
func (l *Lab) Apply(ctx context.Context, site Site) error {
	clients, err := l.Clients()
	if err != nil {
		return err
	}
	return errors.Join(
		clients.applyConfigMap(ctx, site.DaemonConfig),
		clients.applyConfigMap(ctx, site.Guard),
		clients.applyNetwork(ctx, site.Network),
		clients.applyDaemonSet(ctx, site.DaemonSet),
	)
}

func (c Clients) applyConfigMap(ctx context.Context, wanted *corev1.ConfigMap) error {
	maps := c.Kube.CoreV1().ConfigMaps(wanted.Namespace)
	live, err := maps.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, wanted, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(live.Data, wanted.Data):
		live.Data = wanted.Data
		_, err = maps.Update(ctx, live, metav1.UpdateOptions{})
	}
	return err
}

func (c Clients) applyNetwork(ctx context.Context, wanted *nadv1.NetworkAttachmentDefinition) error {
	networks := c.Networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions(wanted.Namespace)
	live, err := networks.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = networks.Create(ctx, wanted, metav1.CreateOptions{})
	case err == nil && live.Spec != wanted.Spec:
		live.Spec = wanted.Spec
		_, err = networks.Update(ctx, live, metav1.UpdateOptions{})
	}
	return err
}

func (c Clients) applyDaemonSet(ctx context.Context, wanted *appsv1.DaemonSet) error {
	sets := c.Kube.AppsV1().DaemonSets(wanted.Namespace)
	live, err := sets.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = sets.Create(ctx, wanted, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	changed := live.DeepCopy()
	changed.Spec = wanted.Spec
	// The server's defaults are asked for, not repeated here.
	would, err := sets.Update(ctx, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	was := live.Spec.DeepCopy()
	delete(was.Template.Annotations, restartedAt)
	if len(was.Template.Annotations) == 0 {
		was.Template.Annotations = nil
	}
	if equality.Semantic.DeepEqual(*was, would.Spec) {
		return nil
	}
	_, err = sets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}
