// Package status takes one look at a Multus network and its canaries, and tells
// in one document whether the network is proven now and what to do next.
//
// Collector does the reading; Summarize decides from what was read and is pure.
package status

import (
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

// CanaryLabel marks canaries besides the one that is named.
const (
	CanaryLabel      = "vlan50.dev/canary"
	CanaryLabelValue = "true"
)

// Gap is something that could not be read, and why.
type Gap = v1alpha1.Unreadable

// Data is what one look at the cluster gave.
type Data struct {
	// DefaultAbsent: there is no Pod of the default name, and the canaries are those
	// that are labelled.
	DefaultAbsent bool
	At            time.Time
	// Subject is the canary that is named, by the user where Named is set.
	Subject evidence.Ref
	Named   bool

	DaemonSet evidence.Ref
	// DaemonSetNote says that another DaemonSet than the default was taken, or
	// why none could be.
	DaemonSetNote string
	// Shared is the side of Multus: DaemonSet, revisions, daemon Pods, nodes.
	Shared evidence.Evidence
	// Logs are the daemons' logs, by Pod UID, where they can tell something.
	Logs map[types.UID]rollout.DaemonLog

	// Canaries begin with the named one.
	Canaries []Canary
	Networks []NetworkRead
	// OtherNetworks are the configurations of networks that other Pods ask for.
	OtherNetworks map[types.NamespacedName]multus.NetConf
	CRD           CRDRead
	Pods          []corev1.Pod
	Search        Search
	Argo          ArgoRead
	Gaps          []Gap
	// now is when the data are judged, which may be long after they were read.
	now time.Time
	// Replaced: a canary was made anew while this was read.
	Replaced bool
}

// Canary is the evidence about one canary. Its Pod may be missing.
type Canary struct {
	Evidence evidence.Evidence
	// Unreadable: whether there is such a Pod is not known.
	Unreadable bool
}

// NetworkRead is one NetworkAttachmentDefinition: there, not there, or unread.
type NetworkRead struct {
	Namespace, Name string
	Definition      *nadv1.NetworkAttachmentDefinition
	Absent          bool
}

// CRDRead is the NetworkAttachmentDefinitions' own definition.
type CRDRead struct {
	Object *unstructured.Unstructured
	Absent bool
}

// Search is how far the scan for Pods went.
type Search struct {
	// Namespace is empty where all were searched.
	Namespace string
	Pods      int
	// Blind: a network could not be read that some Pod is on.
	Blind bool
	// Failed: not even that namespace could be searched.
	Failed bool
}

// ArgoRead is what was read of Argo CD.
type ArgoRead struct {
	// Known: whether it is installed is known.
	Known, Installed bool
	Applications     []argocd.Application
	Claims           []argocd.Claim
}

// Settings are what Summarize cannot read from the cluster.
type Settings struct {
	// Settle is how long after Ready a daemon whose log cannot tell is taken
	// for ready.
	Settle time.Duration
	// Flags are the flags that the user's next command needs as well.
	Flags []string
	// ClusterFlags are those of them that kubectl knows.
	ClusterFlags []string
}
