//go:build linux

package lab

import (
	"fmt"

	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Names of the reference site.
const (
	SystemNamespace = "kube-system"
	DaemonSetName   = "kube-multus-ds"
	DaemonConfig    = "multus-daemon-config"
	Namespace       = "downloads"
	CanaryName      = "vlan50-canary"
	NetworkName     = "vlan50"
	GuardName       = "vlan50-guard"
)

// Clients reach the lab's API server as the cluster administrator, without
// client-side limits.
type Clients struct {
	Kube     kubernetes.Interface
	Networks nadclient.Interface
}

// Clients gives clients of the lab's cluster.
func (l *Lab) Clients() (Clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return Clients{}, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	networks, err := nadclient.NewForConfig(config)
	return Clients{Kube: kube, Networks: networks}, err
}
