//go:build integration

package integration

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// A user whom the server does not know, or who cannot even show a credential,
// gets one line and no verdict.
func TestCredentialsThatDoNotWork(t *testing.T) {
	t.Parallel()
	s := newSite(t, "auth", scriptednode.Options{})
	good := s.kubeconfig
	for name, auth := range map[string]*clientcmdapi.AuthInfo{
		"a helper that is not installed": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "no-such-credential-helper", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
		"an auth plugin that is gone":        {AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "gcp"}},
		"a token that is not valid any more": {Token: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := clientcmd.LoadFromFile(good)
			check(t, err)
			for user := range config.AuthInfos {
				config.AuthInfos[user] = auth
			}
			s.kubeconfig = s.file("kubeconfig", "")
			check(t, clientcmd.WriteToFile(*config, s.kubeconfig))
			s.run("canary", "judge", "-o", "json").expectError(t, 1, "kube-auth-failed")
			s.retest("-f", s.manifest).expectError(t, 1, "kube-auth-failed")
		})
	}
}
