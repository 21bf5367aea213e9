package cmd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// noCluster is the host that cli-runtime falls back to where nothing is
// configured.
const noCluster = "http://localhost:8080"

// restConfig is the way to the cluster that flags and kubeconfig name.
func restConfig(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), err == nil && config.Host == noCluster && !configured(flags):
		return nil, errors.New("no cluster is configured: set KUBECONFIG or pass --kubeconfig FILE")
	case err != nil:
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return config, nil
}

// configured reports whether the user named a server in any way.
func configured(flags *genericclioptions.ConfigFlags) bool {
	if *flags.APIServer != "" {
		return true
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	return err != nil || len(raw.Clusters) > 0
}

// reachError says what to do where the API server did not answer or did not
// take the user's credentials. Nothing was judged then, and nothing guessed.
func reachError(err error) error {
	var network net.Error
	var address *url.Error
	switch text := err.Error(); {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("kube-auth-failed: the API server does not take this user's credentials: log in again, or use another user (%w)", err)
	case strings.Contains(text, "getting credentials: "), strings.Contains(text, "no Auth Provider found"), strings.Contains(text, "auth plugin has been removed"):
		// client-go adds a paragraph on how to install the helper.
		first, _, _ := strings.Cut(text, "\n")
		return fmt.Errorf("kube-auth-failed: %s: install the credential helper that the kubeconfig names, or use another user", strings.TrimRight(first, ". "))
	case errors.As(err, &address) && (errors.As(err, &network) || errors.As(err, new(*net.OpError))):
		return fmt.Errorf("%w; is the API server up, and does the kubeconfig name the right one?", err)
	}
	return err
}
