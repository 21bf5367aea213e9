//go:build linux

package node

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startWithin is far above what any step of the start takes on a busy machine.
const startWithin = 3 * time.Minute

// Files that the process inherits, after the three standard ones.
const (
	listenerFD = 3 + iota
	leashFD
	progressFD
)

// run brings the node up and then serves until it is killed. What it says on
// progress, line by line, is meant for the person who started the lab.
func run(state string, progress io.Writer) error {
	config, err := readConfig(state)
	if err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := enterRoot(state, config.Tools); err != nil {
		return err
	}
	// ip and the services are looked up inside the node.
	if err := os.Setenv("PATH", strings.TrimPrefix(Environment()[0], "PATH=")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := cable(ctx); err != nil {
		return err
	}
	if err := layOut(config); err != nil {
		return err
	}
	services := newSupervisor()
	if err := serveControl(ctx, services); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("taking over the listener: %w", err)
	}
	if err := startAll(ctx, services, listener.Addr().String(), progress); err != nil {
		return err
	}
	go forward(context.WithoutCancel(ctx), listener)
	fmt.Fprintln(progress, Ready)
	select {}
}

// Ready is the last line of the progress of a node that is up.
const Ready = "ready"

// cable connects the node to its switch.
func cable(ctx context.Context) error {
	if err := ip(ctx, networkScript); err != nil {
		return err
	}
	if err := ip(ctx, switchScript, "-netns", Switch); err != nil {
		return err
	}
	if err := ip(ctx, "route add default via 192.0.2.1\n"); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
}

func ip(ctx context.Context, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, "ip", append(args, "-batch", "-")...)
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("setting up the network: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// layOut makes k3s's folders, flannel's conf and the services' own.
func layOut(config Config) error {
	for _, dir := range []string{ConfDir, BinDir, DataDir, controlDir, "/run/flannel", filepath.Dir(containerd)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, name := range config.Plugins {
		if err := os.Symlink(filepath.Join(DataDir, name), filepath.Join(BinDir, name)); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(ToolDir, name), filepath.Join(DataDir, name), 0o755); err != nil {
			return err
		}
	}
	for path, content := range map[string]string{
		PrimaryConf:               FlannelConf,
		"/run/flannel/subnet.env": flannelEnv,
		"/etc/containerd.toml":    containerdConfig(config.SandboxImage),
		"/etc/kubelet.yaml":       kubeletConfig,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts what the kubelet needs, then the rest.
func startAll(ctx context.Context, services *supervisor, door string, progress io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, name := range []string{Containerd, APIServer} {
		if err := services.start(name); err != nil {
			return err
		}
		go func(exited <-chan struct{}) {
			<-exited
			cancel(fmt.Errorf("%s has ended: see its log", name))
		}(services.services[name].exited)
	}
	fmt.Fprintln(progress, "importing images, starting etcd and kube-apiserver")
	imported := make(chan error, 1)
	go func() { imported <- importImages(ctx) }()
	if err := errors.Join(waitAPI(ctx, door), <-imported); err != nil {
		return err
	}
	fmt.Fprintln(progress, "starting kubelet, kube-scheduler and kube-controller-manager")
	for _, name := range []string{ControllerManager, Scheduler, Kubelet} {
		if err := services.start(name); err != nil {
			return err
		}
	}
	return nil
}

// importImages waits for containerd and gives it the images.
func importImages(ctx context.Context) error {
	return until(ctx, "containerd to take the images", func() error {
		cmd := exec.CommandContext(ctx, ToolDir+"/ctr", "--address", containerd, "--namespace", "k8s.io",
			"images", "import", filepath.Join(stateDir, ImageArchive))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	})
}

// waitAPI waits for the API server and writes the kubeconfigs: the node's and
// the host's, which comes in by the door.
func waitAPI(ctx context.Context, door string) error {
	var token, ca string
	if err := until(ctx, "kube-apiserver to be ready", func() (err error) {
		if token, ca, err = credentials(); err != nil {
			return err
		}
		return ready(ctx, token)
	}); err != nil {
		return err
	}
	inside := kubeconfigFor("https://"+address, ca, token)
	if err := os.WriteFile(InnerKubeconfig, []byte(inside), 0o600); err != nil {
		return err
	}
	outside := kubeconfigFor("https://"+door, ca, token)
	return os.WriteFile(filepath.Join(stateDir, Kubeconfig), []byte(outside), 0o600)
}

func credentials() (token, ca string, err error) {
	tokens, err := os.ReadFile(controlDir + "/tokens.csv")
	if err != nil {
		return "", "", err
	}
	cert, err := os.ReadFile(controlDir + "/certs/apiserver.crt")
	if err != nil {
		return "", "", err
	}
	token, _, _ = strings.Cut(string(tokens), ",")
	return token, base64.StdEncoding.EncodeToString(cert), nil
}

func ready(ctx context.Context, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only asks whether it is up
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// until tries again and again; the error of the last try tells why not.
func until(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w)", what, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
