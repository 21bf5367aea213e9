//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// resetWithin is far above what the slowest way back takes.
const resetWithin = 3 * time.Minute

// Reset undoes whatever a test did: all services run, the site is as its
// manifests have it, Multus serves with a fresh conf, nobody else holds the
// canary's address and there is no canary.
func (l *Lab) Reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resetWithin)
	defer cancel()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"starting what had ended", l.startAll},
		{"mending the switch", l.MendSwitch},
		{"restoring the CNI confs", l.restoreConfs},
		{"restoring the site", l.restoreSite},
		{"waiting for Multus", l.waitMultus},
		{"deleting the canary", l.DeleteCanary},
		{"opening the canary's lock", l.unlock},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("resetting the lab: %s: %w", step.what, err)
		}
	}
	return nil
}

func (l *Lab) startAll(ctx context.Context) error {
	for _, name := range node.Services() {
		if err := l.StartService(ctx, name); err != nil {
			return err
		}
	}
	return eventually(ctx, func() error {
		_, err := l.Kubectl(ctx, "get", "--raw", "/readyz")
		return err
	})
}

// restoreConfs leaves flannel's conf and, where Multus wrote one, its own.
func (l *Lab) restoreConfs(ctx context.Context) error {
	reference := []string{filepath.Base(node.PrimaryConf), filepath.Base(node.MultusConf)}
	script := fmt.Sprintf(`cd %s && find . -type f ! -name %s ! -name %s -exec rm -f {} +
rm -rf /etc/cni/net.d /opt/cni/bin/*`, node.ConfDir, reference[0], reference[1])
	if err := l.InNode(ctx, "sh", "-c", script); err != nil {
		return err
	}
	if content, err := l.ReadNode(node.PrimaryConf); err == nil && content == node.FlannelConf {
		return nil
	}
	return l.WriteNode(node.PrimaryConf, node.FlannelConf)
}

func (l *Lab) restoreSite(ctx context.Context) error {
	site, err := l.Reference()
	if err != nil {
		return err
	}
	return eventually(ctx, func() error { return l.Apply(ctx, site) })
}

// waitMultus waits until Multus serves, and restarts it where its conf is not
// the one that its running daemon has written.
func (l *Lab) waitMultus(ctx context.Context) error {
	if _, err := l.Kubectl(ctx, "rollout", "status", "--namespace", SystemNamespace, "daemonset/"+DaemonSetName); err != nil {
		return err
	}
	if l.multusServes(ctx) {
		return nil
	}
	return l.RestartMultus(ctx)
}

// multusServes reports whether conf, plugins and daemon are all there.
func (l *Lab) multusServes(ctx context.Context) bool {
	conf, err := l.ReadNode(node.MultusConf)
	if err != nil || !strings.Contains(conf, `"multus-shim"`) {
		return false
	}
	return l.InNode(ctx, "sh", "-c", fmt.Sprintf(
		"test -s %[1]s/macvlan && test -s %[1]s/static && test -s %[1]s/multus-shim && test -S /run/multus/multus.sock", node.BinDir)) == nil
}

// RestartMultus rolls the DaemonSet and waits until its new daemon has written
// its conf.
func (l *Lab) RestartMultus(ctx context.Context) error {
	for _, args := range [][]string{
		{"rollout", "restart", "--namespace", SystemNamespace, "daemonset/" + DaemonSetName},
		{"rollout", "status", "--namespace", SystemNamespace, "daemonset/" + DaemonSetName},
	} {
		if _, err := l.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return l.WaitConf(ctx)
}

// DeleteCanary deletes the canary gracefully and waits until it is gone.
func (l *Lab) DeleteCanary(ctx context.Context) error {
	_, err := l.Kubectl(ctx, "delete", "pod", "--namespace", Namespace, CanaryName, "--ignore-not-found", "--wait")
	return err
}

// unlock removes the Lease of a retest that was killed.
func (l *Lab) unlock(ctx context.Context) error {
	_, err := l.Kubectl(ctx, "delete", "lease", "--namespace", Namespace, CanaryName, "--ignore-not-found")
	return err
}

// Restore resets the lab and makes the canary again, as Up leaves it.
func (l *Lab) Restore(ctx context.Context) error {
	if err := l.Reset(ctx); err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "apply", "-f", l.CanaryManifest()); err != nil {
		return err
	}
	_, err := l.CanaryEnd(ctx)
	return err
}

// CanaryEnd waits until the canary has ended and gives its phase.
func (l *Lab) CanaryEnd(ctx context.Context) (corev1.PodPhase, error) {
	clients, err := l.Clients()
	if err != nil {
		return "", err
	}
	var phase corev1.PodPhase
	err = eventually(ctx, func() error {
		pod, err := clients.Kube.CoreV1().Pods(Namespace).Get(ctx, CanaryName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if phase = pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			return nil
		}
		return fmt.Errorf("the canary is %s", phase)
	})
	return phase, err
}

// eventually tries until it works or ctx ends; then the last error tells why.
func eventually(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
