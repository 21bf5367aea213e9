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
	"time"
)

// startWithin is far above what any step of the start takes on a busy machine.
const startWithin = 3 * time.Minute

// Files that the process of the first node inherits, after the three standard
// ones, and those of the second.
const (
	leashFD = 3 + iota
	progressFD
	listenerFD

	cabledFD = leashFD
)

// run brings the first node up and then serves until it is killed. What it says
// on progress, line by line, is meant for the person who started the lab.
func run(state string, progress io.Writer) error {
	config, err := readConfig(state)
	if err != nil {
		return err
	}
	if err := first.enter(state, config.Tools); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := cable(ctx); err != nil {
		return err
	}
	if err := first.layOut(config); err != nil {
		return err
	}
	services := newSupervisor(first)
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
