package cluster

import (
	"errors"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadfake "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestNetworksConf(t *testing.T) {
	notFound := apierrors.NewNotFound(nadv1.Resource("network-attachment-definitions"), "lan")
	tests := map[string]struct {
		config string
		err    error
		master string
		fails  bool
	}{
		"a macvlan":                     {config: `{"type": "macvlan", "master": "enp1s0.50"}`, master: "enp1s0.50"},
		"one that does not parse":       {config: `{"type":`},
		"one that is not there":         {err: notFound},
		"one that may not be read":      {err: errForbidden},
		"one that cannot be read today": {err: errAway, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := nadfake.NewSimpleClientset()
			reads := 0
			client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				reads++
				return true, &nadv1.NetworkAttachmentDefinition{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lan"},
					Spec:       nadv1.NetworkAttachmentDefinitionSpec{Config: test.config},
				}, test.err
			})
			networks := (&Clients{Networks: client.K8sCniCncfIoV1()}).NewNetworks(t.Context())
			for range 3 {
				conf, err := networks.Conf("ns", "lan")
				if conf.Master != test.master || (err != nil) != test.fails || test.fails && !errors.Is(err, errAway) {
					t.Errorf("conf %+v, error %v", conf, err)
				}
			}
			if nad, err := networks.Get("ns", "lan"); (nad == nil) != (err != nil) {
				t.Errorf("got %v, %v", nad, err)
			}
			if reads != 1 {
				t.Errorf("read %d times", reads)
			}
		})
	}
}
