// Package cluster is the I/O towards the API server: clients, watches, rights.
// It decides nothing.
package cluster

import (
	"strings"

	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/typed/k8s.cni.cncf.io/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Clients are the few typed clients the tool needs. Every path is known to
// them, so none ever asks the server for discovery.
type Clients struct {
	Core          corev1client.CoreV1Interface
	Apps          appsv1client.AppsV1Interface
	Coordination  coordinationv1client.CoordinationV1Interface
	Authorization authorizationv1client.AuthorizationV1Interface
	Networks      nadclient.K8sCniCncfIoV1Interface
	// Metadata lists objects without their specs and statuses.
	Metadata metadata.Interface
	// Clock is the server's, as its answers tell it.
	Clock *Clock
}

// client-go's own limits (5 requests a second, bursts of 10) would delay a
// retest by seconds; these allow all that one command ever asks at once.
const (
	qps   = 50
	burst = 100
)

// New makes the clients of one cluster.
func New(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = qps, burst
	}
	if config.UserAgent == "" {
		// The shared transport is made before client-go would fill this in.
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	c := &Clients{Clock: newClock()}
	config.Wrap(c.Clock.wrap)
	// One transport for all, so that one connection serves them all.
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// Of Kubernetes' own kinds the answers are shorter in protobuf, and cost less
	// to read. What is sent stays JSON.
	own := rest.CopyConfig(config)
	own.AcceptContentTypes = strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
	for _, client := range []func() error{
		func() (err error) { c.Core, err = corev1client.NewForConfigAndClient(own, httpClient); return },
		func() (err error) { c.Apps, err = appsv1client.NewForConfigAndClient(own, httpClient); return },
		func() (err error) {
			c.Coordination, err = coordinationv1client.NewForConfigAndClient(own, httpClient)
			return
		},
		func() (err error) {
			c.Authorization, err = authorizationv1client.NewForConfigAndClient(own, httpClient)
			return
		},
		// This generated client is older; it finds the same transport in client-go's cache.
		func() (err error) { c.Networks, err = nadclient.NewForConfig(config); return },
		func() (err error) { c.Metadata, err = metadata.NewForConfigAndClient(config, httpClient); return },
	} {
		if err := client(); err != nil {
			return nil, err
		}
	}
	return c, nil
}
