//go:build linux

package lab

import (
	"context"
	"errors"
	"net/http"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// Join starts the second node, or does nothing where it is up, and waits until
// the cluster has it. Multus runs there only when its DaemonSet says so.
func (l *Lab) Join(ctx context.Context) (Node, error) {
	if err := l.makeCgroup(node.Second); err != nil {
		return Node{}, err
	}
	if _, err := l.control(ctx, http.MethodPost, "/second/start"); err != nil {
		return Node{}, err
	}
	second, err := findNode(l.dir, node.Second)
	if err != nil {
		return Node{}, err
	}
	return second, eventually(ctx, func() error {
		_, err := l.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=10s", "node/"+node.Second)
		return err
	})
}

// Part pulls the second node's plug and lets the cluster forget it: nobody is left
// who could end its Pods in good order.
func (l *Lab) Part(ctx context.Context) error {
	if _, err := l.control(ctx, http.MethodPost, "/second/stop"); err != nil {
		return err
	}
	_, nodeErr := l.Kubectl(ctx, "delete", "node", node.Second, "--ignore-not-found")
	_, podErr := l.Kubectl(ctx, "delete", "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+node.Second, "--force", "--grace-period=0")
	return errors.Join(nodeErr, podErr, removeCgroups(node.CgroupFolder(node.Second)))
}
