package status

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

const (
	// argoPage is small: one Application lists all the objects it owns.
	argoPage = 50
	// argoNamespace is where Argo CD is, unless told otherwise.
	argoNamespace = "argocd"
)

// applications finds the Applications that own the objects in question: by the
// marks on these objects, or, where one has none, by looking at all.
func (r *reader) applications() error {
	claims := r.claims()
	names := map[string]bool{}
	for _, claim := range claims {
		names[claim.Application] = true
	}
	r.data.Argo.Claims = claims
	if len(names) == 0 || names[""] {
		return r.eachApplication("")
	}
	for name := range names {
		if err := r.eachApplication(fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()); err != nil || !r.data.Argo.Installed {
			return err
		}
	}
	return nil
}

// claims are the objects whose owner is looked for, with the marks they carry.
func (r *reader) claims() []argocd.Claim {
	var claims []argocd.Claim
	add := func(group, kind string, meta metav1.Object) {
		object := argocd.Object{Group: group, Kind: kind, Namespace: meta.GetNamespace(), Name: meta.GetName()}
		claims = append(claims, argocd.ClaimOf(object, meta))
	}
	for i := range r.data.Shared.DaemonSets {
		add("apps", "DaemonSet", &r.data.Shared.DaemonSets[i])
	}
	for _, n := range r.data.Networks {
		if n.Definition != nil {
			add("k8s.cni.cncf.io", "NetworkAttachmentDefinition", n.Definition)
		}
	}
	for i := range r.data.Canaries {
		e := &r.data.Canaries[i].Evidence
		for j := range e.ConfigMaps {
			add("", "ConfigMap", &e.ConfigMaps[j])
		}
		if pod := e.CanaryPod(); pod != nil {
			add("", "Pod", pod)
		} else if !r.data.Canaries[i].Unreadable {
			// A canary that is missing may be owned all the same.
			add("", "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Canary.Namespace, Name: e.Canary.Name}})
		}
	}
	return claims
}

// eachApplication keeps the Applications that own something in question.
func (r *reader) eachApplication(selector string) error {
	namespace := metav1.NamespaceAll
	right := cluster.Right{Verb: "list", Group: argocd.Resource().Group, Resource: argocd.Resource().Resource}
	token := ""
	for {
		list, err := r.applicationPage(namespace, selector, token)
		if apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll {
			namespace = argoNamespace
			if list, err = r.applicationPage(namespace, selector, token); err == nil {
				r.gap(v1alpha1.SectionArgoCD, fmt.Sprintf("Argo CD's Applications outside namespace %s cannot be read (right missing: %s)", argoNamespace, right))
			}
		}
		if apierrors.IsNotFound(err) {
			r.data.Argo.Known = true
			return nil
		}
		if ok, err := r.got(want{v1alpha1.SectionArgoCD, "Argo CD's Applications", right}, err); !ok {
			return err
		}
		r.data.Argo.Known, r.data.Argo.Installed = true, true
		for _, application := range list.Items {
			if slices.ContainsFunc(r.data.Argo.Claims, application.Owns) {
				r.data.Argo.Applications = append(r.data.Argo.Applications, application)
			}
		}
		if token = list.Metadata.Continue; token == "" {
			return nil
		}
	}
}

// applicationPage reads one page, of the known path alone.
func (r *reader) applicationPage(namespace, selector, token string) (argocd.List, error) {
	resource := argocd.Resource()
	path := []string{"/apis", resource.Group, resource.Version}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	request := r.Clients.Core.RESTClient().Get().AbsPath(append(path, resource.Resource)...).
		SetHeader("Accept", "application/json").Param("limit", fmt.Sprint(argoPage))
	return decodePage(setAll(request, map[string]string{"fieldSelector": selector, "continue": token}).Do(r.ctx).Raw())
}

func setAll(request *rest.Request, params map[string]string) *rest.Request {
	for name, value := range params {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	return request
}

func decodePage(raw []byte, err error) (argocd.List, error) {
	var list argocd.List
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		// Not the form of Argo CD's own kind: an answer nonetheless.
		return list, apierrors.NewInternalError(fmt.Errorf("reading Applications: %w", err))
	}
	return list, nil
}
