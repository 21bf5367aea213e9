package rollback

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	batchv1client "k8s.io/client-go/kubernetes/typed/batch/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// Clients are those of every command, and the few that only a rollback needs.
type Clients struct {
	*cluster.Clients
	Batch batchv1client.BatchV1Interface
	RBAC  rbacv1client.RbacV1Interface
	// Dynamic deletes objects of all kinds by their known paths.
	Dynamic dynamic.Interface
}

// NewClients makes the clients of one cluster.
func NewClients(config *rest.Config) (*Clients, error) {
	shared, err := cluster.New(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 100 // as for the others: see pkg/cluster
	}
	c := &Clients{Clients: shared}
	if c.Batch, err = batchv1client.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.RBAC, err = rbacv1client.NewForConfig(config); err != nil {
		return nil, err
	}
	c.Dynamic, err = dynamic.NewForConfig(config)
	return c, err
}

// objects is the API of an object's kind and namespace.
func (c *Clients) objects(o Object) dynamic.ResourceInterface {
	if o.Kind.ClusterWide {
		return c.Dynamic.Resource(o.Kind.GVR())
	}
	return c.Dynamic.Resource(o.Kind.GVR()).Namespace(o.Namespace)
}

// page bounds one answer of a list over all namespaces.
const page = 500

// each visits all items of a list, a page at a time.
func each[L interface{ GetContinue() string }](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), visit func(L) error) error {
	options := metav1.ListOptions{Limit: page}
	for {
		items, err := list(ctx, options)
		if err != nil {
			return err
		}
		if err := visit(items); err != nil {
			return err
		}
		if options.Continue = items.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
