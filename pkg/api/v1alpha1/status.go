package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// State is whether the network is proven now, in one word.
type State string

// The states. Only StateFreshPass says that the network is proven.
const (
	// StateFreshPass: every canary passed, and nothing it rests on has changed.
	StateFreshPass State = "fresh-pass"
	// StateFreshFail: a canary failed, and nothing has changed since.
	StateFreshFail State = "fresh-fail"
	// StateInconclusive: the last attempt told nothing about the network.
	StateInconclusive State = "inconclusive"
	// StateStale: what was proven was another configuration.
	StateStale State = "stale"
	// StateUnknown: whether a verdict still holds cannot be told.
	StateUnknown State = "unknown"
	// StateConflict: two Pods claim an address of a canary at once.
	StateConflict State = "conflict"
	// StateNoCanary: there is nothing that could prove anything.
	StateNoCanary State = "no-canary"
)

// Freshness is whether a verdict still speaks for the present configuration.
type Freshness string

// The degrees of freshness; none where there is no canary.
const (
	Fresh            Freshness = "FRESH"
	Stale            Freshness = "STALE"
	FreshnessUnknown Freshness = "UNKNOWN"
)

// Mark is how one statement of the status is to be taken.
type Mark string

// The marks.
const (
	MarkOK      Mark = "ok"
	MarkWarn    Mark = "warn"
	MarkBad     Mark = "bad"
	MarkUnknown Mark = "unknown"
	MarkNone    Mark = "none"
)

// SiteStatus is everything that can be said about a Multus network and its
// canaries now.
type SiteStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status SiteStatusStatus `json:"status"`
}

// SiteStatusStatus holds the sections in the order in which they are shown.
type SiteStatusStatus struct {
	CollectedAt metav1.MicroTime `json:"collectedAt"`
	State       State            `json:"state"`
	// Ready: a Pod made now on the canary's node would be attached.
	Ready   bool   `json:"ready"`
	Message string `json:"message"`

	Multus    MultusStatus    `json:"multus"`
	Network   NetworkStatus   `json:"network"`
	Canaries  []CanaryStatus  `json:"canaries"`
	Addresses AddressesStatus `json:"addresses"`
	ArgoCD    ArgoCDStatus    `json:"argoCD"`
	Next      NextStep        `json:"next"`

	// Unreadable is what could not be read, and which right is missing.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
}

// Section names a part of the status.
type Section string

// The sections, in the order in which they are shown.
const (
	SectionMultus    Section = "multus"
	SectionNetwork   Section = "network"
	SectionCanary    Section = "canary"
	SectionFreshness Section = "freshness"
	SectionAddresses Section = "addresses"
	SectionArgoCD    Section = "argoCD"
)

// Unreadable is one thing that could not be read; the rest stands.
type Unreadable struct {
	Section Section `json:"section"`
	Text    string  `json:"text"`
}

// StatusLine is one statement with its reason. It holds no ages, so that it
// changes only when what it says does.
type StatusLine struct {
	Mark    Mark   `json:"mark"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// NextStep is the one command to run now.
type NextStep struct {
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// MultusStatus is the DaemonSet and its Pods.
type MultusStatus struct {
	Lines []StatusLine `json:"lines"`

	DaemonSet string    `json:"daemonSet"`
	UID       types.UID `json:"uid,omitempty"`
	Strategy  string    `json:"strategy,omitempty"`
	Desired   int32     `json:"desired"`
	Updated   int32     `json:"updated"`
	Ready     int32     `json:"ready"`
	Available int32     `json:"available"`
	// Revision is the hash of the newest ControllerRevision.
	Revision string   `json:"revision,omitempty"`
	Image    string   `json:"image,omitempty"`
	Digests  []string `json:"digests,omitempty"`

	Nodes []MultusNode `json:"nodes,omitempty"`
}

// MultusNode is the daemon on one node.
type MultusNode struct {
	Mark   Mark   `json:"mark"`
	Reason string `json:"reason"`

	Node string `json:"node"`
	// Canary: a canary runs on this node.
	Canary      bool         `json:"canary,omitempty"`
	Pod         string       `json:"pod"`
	UID         types.UID    `json:"uid"`
	CreatedAt   metav1.Time  `json:"createdAt"`
	Revision    string       `json:"revision,omitempty"`
	Ready       bool         `json:"ready"`
	Restarts    int32        `json:"restarts"`
	LastRestart *LastRestart `json:"lastRestart,omitempty"`

	AttachReady bool `json:"attachReady"`
	// AttachReadyBy is "log", "age" or "settle".
	AttachReadyBy    string       `json:"attachReadyBy,omitempty"`
	AttachReadySince *metav1.Time `json:"attachReadySince,omitempty"`
}

// LastRestart is how the daemon's container ended last.
type LastRestart struct {
	Reason   string       `json:"reason"`
	ExitCode int32        `json:"exitCode"`
	At       *metav1.Time `json:"at,omitempty"`
	Message  string       `json:"message,omitempty"`
}

// NetworkStatus is the NetworkAttachmentDefinitions in question and their kind.
type NetworkStatus struct {
	Lines []StatusLine `json:"lines"`

	Definitions []NetworkDefinition `json:"definitions,omitempty"`
	// CRDHealthy is absent where it cannot be told.
	CRDHealthy *bool `json:"crdHealthy,omitempty"`
}

// NetworkDefinition is one NetworkAttachmentDefinition.
type NetworkDefinition struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Generation int64     `json:"generation,omitempty"`
	// Found is absent where it cannot be told.
	Found      *bool  `json:"found,omitempty"`
	CNIVersion string `json:"cniVersion,omitempty"`
	Type       string `json:"type,omitempty"`
	Master     string `json:"master,omitempty"`
	Mode       string `json:"mode,omitempty"`
	IPAM       string `json:"ipam,omitempty"`
	// Lacks is what the configuration should have and has not.
	Lacks []string `json:"lacks,omitempty"`
}

// CanaryStatus is one canary, its verdict, and whether that still holds.
type CanaryStatus struct {
	Lines []StatusLine `json:"lines"`

	Namespace  string       `json:"namespace"`
	Name       string       `json:"name"`
	UID        types.UID    `json:"uid,omitempty"`
	CreatedAt  *metav1.Time `json:"createdAt,omitempty"`
	DeletingAt *metav1.Time `json:"deletingAt,omitempty"`
	Phase      string       `json:"phase,omitempty"`
	Node       string       `json:"node,omitempty"`

	// Verdict and Cause are the judge's; empty where there is nothing to judge.
	Verdict string `json:"verdict,omitempty"`
	Cause   string `json:"cause,omitempty"`
	Message string `json:"message"`
	// Advice is what the catalogue says to do about the cause.
	Advice    string       `json:"advice,omitempty"`
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`
	// RecordedVerdict is what the last retest noted on this very Pod.
	RecordedVerdict string `json:"recordedVerdict,omitempty"`
	RecordedCause   string `json:"recordedCause,omitempty"`

	Network   string   `json:"network,omitempty"`
	Interface string   `json:"interface,omitempty"`
	Addresses []string `json:"addresses,omitempty"`

	Freshness Freshness `json:"freshness,omitempty"`
	// Changes is each thing that changed since, or why that cannot be told.
	Changes []string       `json:"changes,omitempty"`
	Mark    Mark           `json:"mark"`
	State   State          `json:"state"`
	Proof   []EvidenceLine `json:"evidence,omitempty"`
}

// AddressesStatus is every Pod on the canaries' networks.
type AddressesStatus struct {
	Lines []StatusLine `json:"lines"`
	// Namespace is the one that was searched; empty means all.
	Namespace string `json:"namespace,omitempty"`
	// Searched counts the Pods that were looked through.
	Searched int            `json:"searched"`
	Pods     []AddressClaim `json:"pods,omitempty"`
}

// AddressClaim is one Pod on a network: what it asks for and what it holds.
type AddressClaim struct {
	Mark   Mark   `json:"mark"`
	Reason string `json:"reason,omitempty"`

	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	Canary    bool      `json:"canary,omitempty"`
	Node      string    `json:"node,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Network   string    `json:"network"`
	Interface string    `json:"interface,omitempty"`
	Asked     []string  `json:"asked,omitempty"`
	Held      []string  `json:"held,omitempty"`
}

// ArgoCDStatus is what Argo CD says, and what that is worth.
type ArgoCDStatus struct {
	Lines []StatusLine `json:"lines"`
	// Installed is absent where it cannot be told.
	Installed    *bool             `json:"installed,omitempty"`
	Applications []ArgoApplication `json:"applications,omitempty"`
}

// ArgoApplication is an Application that owns some of the objects above.
type ArgoApplication struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Sync      string   `json:"sync"`
	Health    string   `json:"health"`
	Automated bool     `json:"automated"`
	SelfHeal  bool     `json:"selfHeal"`
	Prune     bool     `json:"prune"`
	Owns      []string `json:"owns"`
	// Worth is what its state does and does not prove.
	Worth []string `json:"worth"`
}

// DeepCopyObject implements runtime.Object. Documents are built once and only
// printed, so sharing what lies behind the pointers is safe.
func (in *SiteStatus) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// Mark is how a state is marked on the screen.
func (state State) Mark() Mark {
	switch state {
	case StateFreshPass:
		return MarkOK
	case StateFreshFail, StateNoCanary, StateConflict:
		return MarkBad
	case StateUnknown:
		return MarkUnknown
	case StateInconclusive, StateStale:
	}
	return MarkWarn
}
