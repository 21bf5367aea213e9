//go:build linux

// Package node is the inside of the lab: one Kubernetes node in namespaces of
// its own, with a root file system in memory and a switch at the other end of
// its cables.
package node

// The reference site. All addresses are of the ranges reserved for
// documentation.
const (
	// Name is the node's name in the cluster.
	Name = "node-1"
	// ConfDir is where containerd reads its CNI confs from, as k3s lays it out.
	ConfDir = "/var/lib/rancher/k3s/agent/etc/cni/net.d"
	// BinDir is where containerd looks for CNI plugins. It holds symlinks into
	// DataDir alone, so whoever mounts only BinDir sees dangling ones.
	BinDir = "/var/lib/rancher/k3s/data/cni"
	// DataDir is where k3s unpacks its own programs; the hash is any.
	DataDir = "/var/lib/rancher/k3s/data/5a7c0f3e9d1b4826/bin"
	// MultusConf is the file that puts Multus in front of flannel.
	MultusConf = ConfDir + "/00-multus.conf"
	// PrimaryConf is flannel's conf, which k3s writes at each start.
	PrimaryConf = ConfDir + "/10-flannel.conflist"

	// VLANInterface is the parent of the canary's macvlan interface.
	VLANInterface = "enp1s0.50"
	// Switch is the network namespace at the other end of the cables, and
	// SwitchPort the end of the VLAN's cable in it.
	Switch     = "switch"
	SwitchPort = "vlan50"
	// CanaryAddress is the one static address of the canary.
	CanaryAddress = "198.51.100.100"

	address           = "192.0.2.10"
	kubernetesService = "192.0.2.193"
	serviceRange      = "192.0.2.192/26"
)

// Where the lab's own files lie inside the node.
const (
	// stateDir is the lab's state folder on the host: logs, sockets, images.
	stateDir = "/lab/state"
	// ToolDir holds the programs that run the node.
	ToolDir    = "/lab/bin"
	controlDir = "/var/lib/controlplane"
	// InnerKubeconfig is the cluster administrator's inside the node.
	InnerKubeconfig = "/etc/kubeconfig"
	containerd      = "/run/k3s/containerd/containerd.sock"
	cgroupFolder    = "/" + CgroupName
)

// CgroupName is the folder of the lab below each cgroup hierarchy. The kubelet
// works below it alone, so that it never sees the pods of another kubelet.
const CgroupName = "vlan50-lab"

// Names of the files in the state folder.
const (
	// ControlSocket takes commands for the node's services.
	ControlSocket = "control.sock"
	// Kubeconfig is the cluster administrator's, usable on the host.
	Kubeconfig = "kubeconfig"
	// ConfigFile holds the Config of the node.
	ConfigFile = "node.json"
	// ImageArchive is an OCI archive of all images: there is no registry.
	ImageArchive = "images.tar"
	// AuditLog has one line for each request to the API server.
	AuditLog = "audit.log"
	// LogDir holds one log for each service.
	LogDir = "log"
)

// networkScript is fed to `ip -batch`: the node's cables, and the switch that
// they end in. A veth takes the place of the 8021q interface, which not every
// kernel has; macvlan does not mind. The kubernetes service's address is the
// node's own, so that no kube-proxy is needed.
const networkScript = `link set lo up
addr add ` + kubernetesService + `/32 dev lo
netns add ` + Switch + `
link add enp1s0 type veth peer name uplink netns ` + Switch + `
addr add ` + address + `/26 dev enp1s0
link set enp1s0 up
link add ` + VLANInterface + ` type veth peer name ` + SwitchPort + ` netns ` + Switch + `
link set ` + VLANInterface + ` up
`

const switchScript = `link set lo up
addr add 192.0.2.1/26 dev uplink
link set uplink up
addr add 198.51.100.1/24 dev ` + SwitchPort + `
link set ` + SwitchPort + ` up
`

// FlannelConf is what k3s writes, in a version that the oldest flannel plugin
// understands.
const FlannelConf = `{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {"type": "flannel", "delegate": {"forceAddress": true, "hairpinMode": true, "isDefaultGateway": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}},
    {"type": "bandwidth", "capabilities": {"bandwidth": true}}
  ]
}
`

// flannelEnv is what the flannel daemon would have left for its plugin.
const flannelEnv = `FLANNEL_NETWORK=203.0.113.0/24
FLANNEL_SUBNET=203.0.113.1/24
FLANNEL_MTU=1500
FLANNEL_IPMASQ=true
`
