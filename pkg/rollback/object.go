// Package rollback takes Multus away from a cluster without ever leaving a node
// on which no Pod can start, and puts a node's conf back. What is done next is
// decided by what is there now, never by what an earlier run remembers: this machine
// only knows which image has run on a node, and whether a mark is its own.
package rollback

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of object that a rollback may delete. The set is closed: no
// server is asked which kinds it knows.
type Kind struct {
	Group, Version, Name, Resource string
	// ClusterWide kinds have no namespace.
	ClusterWide bool
	// Workload kinds own Pods, and are gone only when those are.
	Workload bool
	// fixed kinds are deleted by the plan alone, never as a consumer.
	fixed bool
}

// Kinds are all of them.
func Kinds() []Kind {
	const rbac, apps, batch, net = rbacGroup, "apps", "batch", "networking.k8s.io"
	return []Kind{
		{Version: "v1", Name: "Pod", Resource: "pods"},
		{Version: "v1", Name: "Service", Resource: "services"},
		{Version: "v1", Name: "ConfigMap", Resource: "configmaps"},
		{Version: "v1", Name: "ServiceAccount", Resource: "serviceaccounts"},
		{Version: "v1", Name: "ReplicationController", Resource: "replicationcontrollers", Workload: true},
		{Group: apps, Version: "v1", Name: "Deployment", Resource: "deployments", Workload: true},
		{Group: apps, Version: "v1", Name: "StatefulSet", Resource: "statefulsets", Workload: true},
		{Group: apps, Version: "v1", Name: "DaemonSet", Resource: "daemonsets", Workload: true},
		{Group: apps, Version: "v1", Name: "ReplicaSet", Resource: "replicasets", Workload: true},
		{Group: batch, Version: "v1", Name: "Job", Resource: "jobs", Workload: true},
		{Group: batch, Version: "v1", Name: "CronJob", Resource: "cronjobs", Workload: true},
		{Group: "autoscaling", Version: "v2", Name: "HorizontalPodAutoscaler", Resource: "horizontalpodautoscalers"},
		{Group: "policy", Version: "v1", Name: "PodDisruptionBudget", Resource: "poddisruptionbudgets"},
		{Group: net, Version: "v1", Name: "Ingress", Resource: "ingresses"},
		{Group: net, Version: "v1", Name: "NetworkPolicy", Resource: "networkpolicies"},
		{Group: rbac, Version: "v1", Name: "Role", Resource: "roles"},
		{Group: rbac, Version: "v1", Name: "RoleBinding", Resource: "rolebindings"},
		{Group: rbac, Version: "v1", Name: "ClusterRole", Resource: "clusterroles", ClusterWide: true},
		{Group: rbac, Version: "v1", Name: "ClusterRoleBinding", Resource: "clusterrolebindings", ClusterWide: true},
		{Group: networkGroup, Version: "v1", Name: networkKind, Resource: networkResource},
		{Group: "apiextensions.k8s.io", Version: "v1", Name: "CustomResourceDefinition", Resource: "customresourcedefinitions", ClusterWide: true, fixed: true},
	}
}

const (
	rbacGroup       = "rbac.authorization.k8s.io"
	networkGroup    = "k8s.cni.cncf.io"
	networkKind     = "NetworkAttachmentDefinition"
	networkResource = "network-attachment-definitions"
	// networkCRD is the definition that Multus installs. Deleting it deletes
	// every network everywhere.
	networkCRD = networkResource + "." + networkGroup
)

// MarkAnnot notes on an object, before the first deletion, for whose rollback
// it goes: a run that is killed deletes first what told the next one where to
// look. It is an annotation so that any machine can go on.
const MarkAnnot = "vlan50.dev/rollback-of"

// These note beside it, on what stood beside the DaemonSet, what only that told
// of: the folders on the nodes, and the image that node Pods run in.
const (
	ConfDirAnnot   = "vlan50.dev/rollback-conf-dir"
	BinDirAnnot    = "vlan50.dev/rollback-bin-dir"
	NodeImageAnnot = "vlan50.dev/rollback-node-image"
)

// GVR is the kind's path in the API.
func (k Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// APIVersion is the kind's apiVersion.
func (k Kind) APIVersion() string {
	return schema.GroupVersion{Group: k.Group, Version: k.Version}.String()
}

// kindNamed gives a kind by its exact name.
func kindNamed(name string) Kind {
	for _, kind := range Kinds() {
		if kind.Name == name {
			return kind
		}
	}
	return Kind{}
}

// ParseKind reads a kind as people type it: Pod, pod or pods.
func ParseKind(text string) (Kind, error) {
	var names []string
	for _, kind := range Kinds() {
		if kind.fixed {
			continue
		}
		if strings.EqualFold(text, kind.Name) || strings.EqualFold(text, kind.Resource) {
			return kind, nil
		}
		names = append(names, kind.Name)
	}
	return Kind{}, fmt.Errorf("rollback does not delete objects of kind %q; it can delete: %s", text, strings.Join(names, ", "))
}

// ParseObject reads KIND/NAMESPACE/NAME, or KIND/NAME for kinds that have no
// namespace.
func ParseObject(text string) (Object, error) {
	parts := strings.Split(text, "/")
	kind, err := ParseKind(parts[0])
	if err != nil {
		return Object{}, err
	}
	want := "KIND/NAMESPACE/NAME"
	if kind.ClusterWide {
		want = "KIND/NAME"
		parts = append([]string{parts[0], ""}, parts[1:]...)
	}
	if len(parts) != 3 || parts[2] == "" || parts[1] == "" && !kind.ClusterWide {
		return Object{}, fmt.Errorf("%q is not of the form %s", text, want)
	}
	return Object{Kind: kind, Namespace: parts[1], Name: parts[2]}, nil
}

// Object is one object of the API: a name alone, or what was found under it.
type Object struct {
	Kind            Kind
	Namespace, Name string

	// UID is empty where the object was not found.
	UID types.UID
	// Finalizers hold it when it is deleted; Deleting says that it is.
	Finalizers []string
	Deleting   bool
	// Owner is the controller that would bring it back.
	Owner *metav1.OwnerReference
	// Labels and Annotations tell who manages it.
	Labels, Annotations map[string]string
}

// String names an object as messages do.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind.Name + " " + o.Name
	}
	return o.Kind.Name + " " + o.Namespace + "/" + o.Name
}

// same reports whether both are one object, by name.
func (o Object) same(other Object) bool {
	return o.Kind.Group == other.Kind.Group && o.Kind.Name == other.Kind.Name &&
		o.Namespace == other.Namespace && o.Name == other.Name
}

// found makes an Object of what the API gave.
func found(kind Kind, meta metav1.Object) Object {
	return Object{
		Kind: kind, Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(),
		Finalizers: meta.GetFinalizers(), Deleting: meta.GetDeletionTimestamp() != nil,
		Owner: metav1.GetControllerOf(meta), Labels: meta.GetLabels(), Annotations: meta.GetAnnotations(),
	}
}
