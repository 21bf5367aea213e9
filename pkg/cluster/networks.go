package cluster

import (
	"context"
	"sync"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Networks reads each NetworkAttachmentDefinition at most once. It may be used
// from several goroutines.
type Networks struct {
	ctx     context.Context //nolint:containedctx // lives as long as the one scan it is made for
	clients *Clients

	mu    sync.Mutex
	known map[types.NamespacedName]networkAnswer
}

type networkAnswer struct {
	nad *nadv1.NetworkAttachmentDefinition
	err error
}

// NewNetworks begins with nothing read.
func (c *Clients) NewNetworks(ctx context.Context) *Networks {
	return &Networks{ctx: ctx, clients: c, known: map[types.NamespacedName]networkAnswer{}}
}

// Get is the NetworkAttachmentDefinition, or why it cannot be had.
func (n *Networks) Get(namespace, name string) (*nadv1.NetworkAttachmentDefinition, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	answer, ok := n.known[key]
	if !ok {
		answer.nad, answer.err = n.clients.Networks.NetworkAttachmentDefinitions(namespace).Get(n.ctx, name, metav1.GetOptions{})
		if answer.err != nil {
			answer.nad = nil // the client gives an empty one
		}
		n.known[key] = answer
	}
	return answer.nad, answer.err
}

// Conf is an address.Lookup. One that cannot be had for a lasting reason, or
// does not parse, names no wire of its own: that is for the judge to say.
func (n *Networks) Conf(namespace, name string) (multus.NetConf, error) {
	nad, err := n.Get(namespace, name)
	switch {
	case Unreadable(err):
		return multus.NetConf{}, nil
	case err != nil:
		return multus.NetConf{}, err
	}
	conf, _ := multus.ParseNetConf(nad.Spec.Config)
	return conf, nil
}
