//go:build linux

package lab

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// The manifests of the reference site, in the order they are applied.
const (
	manifestCRD       = "10-crd.yaml"
	manifestRBAC      = "20-rbac.yaml"
	manifestDaemonSet = "30-daemonset.yaml"
	manifestNetwork   = "40-network.yaml"
	manifestGuard     = "50-guard.yaml"
	manifestCanary    = "60-canary.yaml"
)

// Manifest is the path of a manifest with the digests of this lab's images.
func (l *Lab) Manifest(name string) string { return filepath.Join(l.dir, "manifests", name) }

// CanaryManifest is the path of the canary's manifest.
func (l *Lab) CanaryManifest() string { return l.Manifest(manifestCanary) }

func (l *Lab) writeManifests(references map[string]string) error {
	entries, err := manifests.ReadDir("manifests")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.Manifest(""), 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		data, err := manifests.ReadFile("manifests/" + entry.Name())
		if err != nil {
			return err
		}
		if data, err = pin(data, references); err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if err := os.WriteFile(l.Manifest(entry.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install applies the manifests in order. The canary waits until Multus has
// written its conf: made any earlier it would come up on flannel alone.
func (l *Lab) install(ctx context.Context, progress io.Writer) error {
	fmt.Fprintln(progress, "applying the manifests of the reference site")
	if err := l.ApplyFiles(ctx, l.Manifest(manifestCRD), l.Manifest(manifestRBAC), l.Manifest(manifestDaemonSet)); err != nil {
		return err
	}
	if err := l.ApplyFiles(ctx, l.Manifest(manifestNetwork), l.Manifest(manifestGuard)); err != nil {
		return err
	}
	fmt.Fprintln(progress, "waiting for Multus")
	if err := l.firstConf(ctx); err != nil {
		return err
	}
	_, err := l.Kubectl(ctx, "apply", "-f", l.CanaryManifest())
	return err
}

// ApplyFiles applies files or folders of manifests, again while a kind of theirs is not
// served yet: the API server takes a moment for that after it has its definition.
func (l *Lab) ApplyFiles(ctx context.Context, paths ...string) error {
	args := []string{"apply"}
	for _, path := range paths {
		args = append(args, "--filename", path)
	}
	for {
		_, err := l.Kubectl(ctx, args...)
		if err == nil || !strings.Contains(err.Error(), "no matches for kind") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// firstConf waits for the conf of Multus, or for the node or a service to end
// without which none comes.
func (l *Lab) firstConf(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if gone, zombie := state(l.pid); gone || zombie {
				cancel(errors.New("the node has ended: see lab.log"))
			}
			services, err := l.Services(ctx)
			for _, service := range services {
				if err == nil && !service.Running {
					cancel(fmt.Errorf("%s has ended: see %s.log", service.Name, service.Name))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return l.WaitConf(ctx)
}

// kubectlCache keeps what kubectl remembers of a server out of the user's home.
func (l *Lab) kubectlCache() string { return "KUBECACHEDIR=" + l.path("/kubectl-cache") }

// Kubectl runs the lab's kubectl against it and gives its standard output.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.kubectl(), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), l.kubectlCache())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
