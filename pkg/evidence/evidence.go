// Package evidence holds everything one judgement may look at, as plain data.
//
// A live run and a saved file give the same type, so that one pure function
// (verdict.Decide) judges both.
package evidence

import (
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is the plural name of a kind that was looked at, as in the API path.
type Resource string

// The resources an Evidence can hold.
const (
	Pods                Resource = "pods"
	Events              Resource = "events"
	DaemonSets          Resource = "daemonsets"
	ControllerRevisions Resource = "controllerrevisions"
	Nodes               Resource = "nodes"
	Networks            Resource = "network-attachment-definitions"
	ConfigMaps          Resource = "configmaps"
	CRDs                Resource = "customresourcedefinitions"
	Applications        Resource = "applications"
)

// Ref names one object. UID is empty where only the name is known.
type Ref struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// String gives namespace/name, the form users type.
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// PodLog is the log of one container, cut to what matters.
type PodLog struct {
	// Pod is the Pod the log was read from; its UID was the same before and
	// after reading.
	Pod       Ref
	Container string
	// Previous marks the log of the container's last terminated instance.
	Previous bool
	Log      string
}

// HostFile is one file of a node's CNI conf directory. Content may be empty
// where the report had only names and sizes.
type HostFile struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Content string `json:"content,omitempty"`
}

// HostFiles is a listing of a CNI conf directory on a node.
type HostFiles struct {
	Node string `json:"node"`
	// Dir is the directory that was listed.
	Dir string `json:"dir"`
	// RuntimeConfDir is where the container runtime reads its confs from;
	// where it differs from Dir, a conf in Dir is never seen.
	RuntimeConfDir string     `json:"runtimeConfDir,omitempty"`
	Files          []HostFile `json:"files"`
}

// Evidence is all that one judgement sees. Slices are in no particular order
// and a verdict must not depend on it.
type Evidence struct {
	CollectedAt time.Time
	// Canary names the Pod being judged. Its UID is the only one whose objects
	// and events may speak; empty means "the Pod of that name that is there".
	Canary Ref
	// DaemonSet names the Multus DaemonSet.
	DaemonSet Ref
	// Collected says which resources were looked at: one that is listed and has
	// no object means "looked, none there"; one not listed means "not looked".
	Collected map[Resource]bool
	// Before is the configuration just before the canary was created, where the
	// run that created it collected the evidence; nil elsewhere. A result counts
	// only if nothing of it changed during the attempt.
	Before *Fingerprint

	Pods                []corev1.Pod
	Events              []corev1.Event // events.k8s.io/v1 ones are converted on load
	DaemonSets          []appsv1.DaemonSet
	ControllerRevisions []appsv1.ControllerRevision
	Nodes               []corev1.Node
	Networks            []nadv1.NetworkAttachmentDefinition
	// ConfigMaps are metadata only: contents are never evidence.
	ConfigMaps []metav1.PartialObjectMetadata
	CRDs       []unstructured.Unstructured
	// Applications are Argo CD's, where it is installed.
	Applications []unstructured.Unstructured
	PodLogs      []PodLog
	HostFiles    []HostFiles
}

// Looked reports whether a resource was looked at, so that the absence of an
// object in it means something.
func (e *Evidence) Looked(r Resource) bool { return e.Collected[r] }
