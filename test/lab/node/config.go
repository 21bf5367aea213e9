//go:build linux

package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Config is what the host side hands to the node.
type Config struct {
	// Tools are the programs that run the node, by the name they get in it.
	Tools map[string]string
	// Plugins are those of the tools that k3s ships as CNI plugins.
	Plugins []string
	// SandboxImage is the reference of the pause image.
	SandboxImage string
}

func readConfig(dir string) (Config, error) {
	var config Config
	data, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("reading %s: %w", ConfigFile, err)
	}
	return config, nil
}

// containerdConfig is k3s's layout. No AppArmor profile is loaded, since that
// would outlive the lab; restrict_oom_score_adj lets runc work without
// CAP_SYS_RESOURCE.
func containerdConfig(sandboxImage string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/rancher/k3s/agent/containerd"
state = "/run/k3s/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = %q
      SystemdCgroup = false
`, containerd, sandboxImage, BinDir, ConfDir, ToolDir+"/runc")
}

// kubeletConfig lets the kubelet run on any host: cgroup v1 or v2, swap or
// not, a full disk or not.
func kubeletConfig(cgroup string) string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: true}
  webhook: {enabled: false}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
clusterDNS: [192.0.2.202]
cgroupRoot: ` + cgroup + `
containerRuntimeEndpoint: unix://` + containerd + `
evictionHard: {imagefs.available: "0%", imagefs.inodesFree: "0%", memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%"}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
nodeStatusUpdateFrequency: 5s
resolvConf: /etc/resolv.conf
volumePluginDir: /var/lib/kubelet/volume-plugins
`
}

// kubeconfigFor gives a kubeconfig of the cluster administrator. The server's
// certificate names localhost, whatever address it is reached by.
func kubeconfigFor(server, ca, token string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: vlan50-lab
contexts:
- name: vlan50-lab
  context: {cluster: vlan50-lab, user: vlan50-lab}
clusters:
- name: vlan50-lab
  cluster:
    server: %s
    tls-server-name: localhost
    certificate-authority-data: %s
users:
- name: vlan50-lab
  user: {token: %s}
`, server, ca, token)
}

// The services of the lab.
const (
	Containerd        = "containerd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Services are those of the first node in the order of their start.
func Services() []string { return first.services }

// command is how a service of the machine is started. All but the first two need
// those running.
func (m machine) command(service string) []string {
	switch service {
	case Containerd:
		return []string{ToolDir + "/containerd", "--config=/etc/containerd.toml"}
	case APIServer:
		return []string{
			ToolDir + "/controlplane", "--dir=" + controlDir, "--bind-address=0.0.0.0", "--secure-port=443", "--",
			"--advertise-address=" + address, "--service-cluster-ip-range=" + serviceRange, "--allow-privileged=true",
			"--audit-log-path=" + stateDir + "/" + AuditLog, "--event-ttl=1h",
		}
	case ControllerManager:
		return []string{
			ToolDir + "/nodeparts", "kube-controller-manager", "--kubeconfig=" + InnerKubeconfig, "--leader-elect=false",
			"--root-ca-file=" + controlDir + "/certs/apiserver.crt",
			"--service-account-private-key-file=" + controlDir + "/service-account.key",
		}
	case Scheduler:
		return []string{ToolDir + "/nodeparts", "kube-scheduler", "--kubeconfig=" + InnerKubeconfig, "--leader-elect=false"}
	case Kubelet:
		return []string{
			ToolDir + "/nodeparts", "kubelet", "--kubeconfig=" + InnerKubeconfig, "--config=/etc/kubelet.yaml",
			"--hostname-override=" + m.name, "--node-ip=" + m.address,
		}
	}
	return nil
}
