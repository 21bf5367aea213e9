//go:build linux

package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// machine is what differs from node to node.
type machine struct {
	name, address string
	// subnet is that of its pods.
	subnet string
	// services in the order of their start.
	services []string
}

var (
	first = machine{
		name: Name, address: address, subnet: "203.0.113.1/25",
		services: []string{Containerd, APIServer, ControllerManager, Scheduler, Kubelet},
	}
	second = machine{
		name: Second, address: secondAddress, subnet: "203.0.113.129/25",
		services: []string{Containerd, Kubelet},
	}
)

// log is the log file of a service, below the state folder.
func (m machine) log(service string) string {
	if m.name != Name {
		service = m.name + "-" + service
	}
	return filepath.Join(LogDir, service+".log")
}

// enter gives the process a root of its own; what it starts is looked up there.
func (m machine) enter(state string, tools map[string]string) error {
	if err := syscall.Sethostname([]byte(m.name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := m.enterRoot(state, tools); err != nil {
		return err
	}
	return os.Setenv("PATH", strings.TrimPrefix(Environment()[0], "PATH="))
}

// layOut makes k3s's folders, flannel's conf and the services' own.
func (m machine) layOut(config Config) error {
	for _, dir := range []string{ConfDir, BinDir, DataDir, controlDir, filepath.Dir(FlannelEnv), filepath.Dir(containerd)} {
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
	files := map[string]string{
		PrimaryConf:            FlannelConf,
		FlannelEnv:             flannelEnv(m.subnet),
		"/etc/containerd.toml": containerdConfig(config.SandboxImage),
		"/etc/kubelet.yaml":    kubeletConfig(CgroupFolder(m.name)),
	}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// runSecond brings up the node that joins the first. Its process begins in a
// copy of the first node's mounts, so the lab's files are where they are there.
func runSecond(ctx context.Context) error {
	config, err := readConfig(stateDir)
	if err != nil {
		return err
	}
	kubeconfig, err := os.ReadFile(InnerKubeconfig)
	if err != nil {
		return err
	}
	tools := maps.Clone(config.Tools)
	for name := range tools {
		tools[name] = filepath.Join(ToolDir, name)
	}
	if err := second.enter(stateDir, tools); err != nil {
		return err
	}
	if err := ip(ctx, joinScript); err != nil {
		return err
	}
	if err := second.layOut(config); err != nil {
		return err
	}
	if err := os.WriteFile(InnerKubeconfig, kubeconfig, 0o600); err != nil {
		return err
	}
	services := newSupervisor(second)
	if err := serveControl(ctx, services); err != nil {
		return err
	}
	if err := services.start(Containerd); err != nil {
		return err
	}
	if err := importImages(ctx); err != nil {
		return err
	}
	return services.start(Kubelet)
}
