package rollback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
)

// applications reads Argo CD's Applications of all namespaces. Without Argo CD
// there are none. Where they may not be read and an object of the plan carries
// Argo CD's own mark, the guard cannot hold.
func (c *collector) applications(ctx context.Context) error {
	err := each(ctx, c.Clients.Dynamic.Resource(argocd.Resource()).List, func(list *unstructured.UnstructuredList) error {
		for i := range list.Items {
			app, err := readApplication(&list.Items[i])
			if err != nil {
				return err
			}
			c.state.Apps = append(c.state.Apps, app)
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		c.state.AppsHide = c.unreadApps()
		return nil
	}
	return err
}

func readApplication(object *unstructured.Unstructured) (app argocd.Application, err error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return app, err
	}
	if err := json.Unmarshal(data, &app); err != nil {
		return app, fmt.Errorf("the Application %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return app, nil
}

// unreadApps is the reason why the guard does not hold without the right to
// read Applications; empty where no object carries Argo CD's own mark.
func (c *collector) unreadApps() string {
	planned := c.state.planned()
	i := slices.IndexFunc(planned, func(o Object) bool {
		return argocd.ClaimOf(argocd.Object{Group: o.Kind.Group, Kind: o.Kind.Name, Namespace: o.Namespace, Name: o.Name}, objectMeta(o)).Certain
	})
	if i < 0 {
		c.state.Notes = append(c.state.Notes, "Argo CD's Applications may not be read by this user; no object of this plan carries its mark")
		return ""
	}
	return fmt.Sprintf("%s is owned by an Argo CD Application, and whether its automated sync is on may not be read by this user (list applications.argoproj.io in all namespaces)", planned[i])
}
