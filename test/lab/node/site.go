//go:build linux

// Package node is the inside of the lab: Kubernetes nodes, each in namespaces of
// its own with a root file system in memory, and a switch at the other end of
// their cables.
package node

// The reference site. All addresses are of the ranges reserved for
// documentation.
const (
	// Name is the name in the cluster of the node that is always there. It has
	// the control plane and the VLAN.
	Name = "node-1"
	// Second is the name of the node that may join it.
	Second = "node-2"
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
	// Network holds all addresses of the nodes and services.
	Network = "192.0.2.0/24"

	address           = "192.0.2.10"
	secondAddress     = "192.0.2.74"
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
)

// CgroupName is the folder of the lab below each cgroup hierarchy.
const CgroupName = "vlan50-lab"

// CgroupFolder is where, below each hierarchy, the kubelet of a node works: in
// a folder of its own, so that it never sees the pods of another kubelet.
func CgroupFolder(name string) string { return "/" + CgroupName + "/" + name }

// Names of the files in the state folder.
const (
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

// ControlSocket takes commands for the services of a node.
func ControlSocket(name string) string { return name + ".sock" }

// LockFile is locked by the first process of a node as long as it lives; the
// kernel tells by whom.
func LockFile(name string) string { return name + ".lock" }

// networkScript is fed to `ip -batch`: the first node's cables, and the switch
// that they end in. A veth takes the place of the 8021q interface, which not every
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

// secondScript, with the process of the second node, lays its cables from the
// switch. No more than its first one leads anywhere: the VLAN ends at the switch.
const secondScript = `link add uplink-2 type veth peer name enp1s0 netns %[1]d
addr add 192.0.2.65/26 dev uplink-2
link set uplink-2 up
link add ` + SwitchPort + `-2 type veth peer name ` + VLANInterface + ` netns %[1]d
link set ` + SwitchPort + `-2 up
route replace ` + kubernetesService + `/32 via ` + address + `
`

// joinScript is the second node's own end.
const joinScript = `link set lo up
addr add ` + secondAddress + `/26 dev enp1s0
link set enp1s0 up
link set ` + VLANInterface + ` up
route add default via 192.0.2.65
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

// FlannelEnv is the file that the flannel daemon would have left for its plugin.
const FlannelEnv = "/run/flannel/subnet.env"

// flannelEnv is its content.
func flannelEnv(subnet string) string {
	return `FLANNEL_NETWORK=203.0.113.0/24
FLANNEL_SUBNET=` + subnet + `
FLANNEL_MTU=1500
FLANNEL_IPMASQ=true
`
}
