package rollback

import (
	"cmp"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// NodeAccess is how the nodes' files are reached.
type NodeAccess string

// The ways to a node's files.
const (
	// AccessPod is a short-lived Pod on the node.
	AccessPod NodeAccess = "pod"
	// AccessManual is the operator's own shell there.
	AccessManual NodeAccess = "manual"
)

// State is all that a plan is made from: what is there now.
type State struct {
	Canary, DaemonSet evidence.Ref
	Access            NodeAccess
	RemoveBinaries    bool

	// ConfDir and BinDir are the folders that the DaemonSet tells of, or the mark
	// of a run that has deleted it; empty where neither does.
	ConfDir, BinDir string
	// LockNamespace is where the lock lies: beside the canary, or beside the
	// DaemonSet where the canary's namespace is gone or going.
	LockNamespace string
	// Consumers are what the user named, in that order; those without UID are
	// gone already.
	Consumers []Object
	// CanaryPod and DaemonSetObject are nil where they are gone.
	CanaryPod, DaemonSetObject *Object
	// DaemonPods are the daemon Pods that are there, also without a DaemonSet.
	DaemonPods []Object
	// Networks are the canary's, Guards its guard scripts, Support what stands
	// beside the DaemonSet, in the order of its deletion.
	Networks, Guards, Support []Object
	// CRD is the definition of networks, nil where it is gone.
	CRD *Object
	// ForeignNetworks are all that are not the canary's.
	ForeignNetworks []Object
	// Keep says of objects of the plan why they stay.
	Keep map[string]string

	Users   []User
	Daemons []evidence.Ref // DaemonSets that run Multus besides the one
	// CutShort are marks of the rollback of another DaemonSet, which is gone.
	CutShort []string
	Apps     []argocd.Application
	AppsHide string // why Applications cannot be read, where an object is marked as owned by one

	Nodes []NodeState
	// Unseen are nodes without a daemon Pod that are not looked at.
	Unseen []string
	// LeftOut are nodes with a daemon Pod that the user's choice leaves out.
	LeftOut []string
	Ground  Ground
	// Admission is why the server would not take a node Pod.
	Admission string
	// Rights are those that the user lacks.
	Rights string
	// Notes are for the reader of the plan.
	Notes []string
}

// NodeState is one node, as far as it was looked at.
type NodeState struct {
	Name string
	// Daemon: a daemon Pod is on it; Serving: it is Ready.
	Daemon, Serving bool
	Ready           bool
	// Runtime is containerRuntimeVersion.
	Runtime string
	// ConfDir is where its confs are; BinDir its plugins. Empty while unknown.
	ConfDir, BinDir string
	// KnownDirs are looked into while ConfDir is unknown.
	KnownDirs []string
	// Image is what a node Pod there runs.
	Image string
	// Looked: Dir is what the conf dir holds now.
	Looked bool
	Dir    ConfDir
	// Err is why it could not be looked at.
	Err string
}

// Finding judges the node's conf dir.
func (n NodeState) Finding() Finding { return Find(n.Dir) }

// stops is why nothing may be removed from the node; empty where it may, or where
// there is nothing.
func (n NodeState) stops() string {
	finding := n.Finding()
	if finding.Foreign || !finding.Clean() || n.Daemon {
		return cmp.Or(finding.Problem, n.Dir.Locked)
	}
	return ""
}

// crio reports whether the runtime calls Multus again when it takes a Pod down
// that was started under it: cri-o keeps the conf of each Pod, containerd takes
// the present one.
func (n NodeState) crio() bool { return !strings.HasPrefix(n.Runtime, "containerd") }
