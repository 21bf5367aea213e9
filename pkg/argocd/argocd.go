// Package argocd reads what Argo CD says about objects it owns, and tells what
// its words are worth. It is pure.
package argocd

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the path of Applications in the API; it is known, so that nobody
// has to ask the server for discovery.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
}

// How Argo CD marks what it owns: the annotation is the way of v3 and newer,
// the labels of the older ones (docs/user-guide/resource_tracking.md).
const (
	trackingAnnot = "argocd.argoproj.io/tracking-id"
	trackingLabel = "app.kubernetes.io/instance"
	instanceLabel = "argocd.argoproj.io/instance"
)

// Application is the part of an Application that matters here.
type Application struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		SyncPolicy *struct {
			Automated *Automated `json:"automated"`
		} `json:"syncPolicy"`
	} `json:"spec"`
	Status struct {
		Sync struct {
			Status string `json:"status"`
		} `json:"sync"`
		Health struct {
			Status string `json:"status"`
		} `json:"health"`
		Resources []Object `json:"resources"`
	} `json:"status"`
}

// Automated is the automated sync policy.
type Automated struct {
	// Enabled is absent in versions before 3.1, and then on.
	Enabled  *bool `json:"enabled"`
	Prune    bool  `json:"prune"`
	SelfHeal bool  `json:"selfHeal"`
}

// List is one page of Applications.
type List struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []Application `json:"items"`
}

// Object names one object that an Application may own.
type Object struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is the form in which messages name an object.
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Claim is an object, with the Application its own marks name.
type Claim struct {
	Object
	// Application is the name in the object's marks; empty where it has none.
	Application string
	// Namespace the Application must be in; empty where the marks do not tell.
	In string
	// Certain: the mark is Argo CD's own. The label is used by others as well.
	Certain bool
}

// ClaimOf reads the marks of an object. A tracking annotation that names
// another object was copied, and is no mark of this one.
func ClaimOf(object Object, meta metav1.Object) Claim {
	claim := Claim{Object: object}
	if id := meta.GetAnnotations()[trackingAnnot]; id != "" {
		app, rest, _ := strings.Cut(id, ":")
		want := object.Group + "/" + object.Kind + ":" + object.Namespace + "/" + object.Name
		if rest == want {
			claim.Application, claim.Certain = app, true
			// Applications in any namespace are tracked as namespace_name.
			if namespace, name, ok := strings.Cut(app, "_"); ok {
				claim.In, claim.Application = namespace, name
			}
			return claim
		}
	}
	for _, label := range []string{instanceLabel, trackingLabel} {
		if app := meta.GetLabels()[label]; app != "" {
			claim.Application, claim.Certain = app, label == instanceLabel
			return claim
		}
	}
	return claim
}

// Owns reports whether the Application owns the object: it lists it, or, where
// it lists nothing, the object's marks name it.
func (a *Application) Owns(claim Claim) bool {
	if slices.Contains(a.Status.Resources, claim.Object) {
		return true
	}
	named := claim.Application == a.Metadata.Name && (claim.In == "" || claim.In == a.Metadata.Namespace)
	return named && (claim.Certain || len(a.Status.Resources) == 0)
}

// Policy is the automated sync policy; off where there is none.
func (a *Application) Policy() (automated, selfHeal, prune bool) {
	if a.Spec.SyncPolicy == nil || a.Spec.SyncPolicy.Automated == nil {
		return false, false, false
	}
	policy := a.Spec.SyncPolicy.Automated
	if policy.Enabled != nil && !*policy.Enabled {
		return false, false, false
	}
	return true, policy.SelfHeal, policy.Prune
}

// Worth says in words what the Application's state does and does not prove
// about a canary among the objects it owns.
func (a *Application) Worth(ownsCanary bool) []string {
	words := []string{a.syncWorth(), a.healthWorth(ownsCanary)}
	automated, selfHeal, _ := a.Policy()
	switch {
	case automated && selfHeal && ownsCanary:
		words = append(words, "automated sync with self-heal is on: a canary that is deleted by hand comes back at once, before Multus is ready; use retest, which notices that")
	case automated && ownsCanary:
		words = append(words, "automated sync is on: the next commit may recreate a missing canary while nobody watches")
	case automated && selfHeal:
		words = append(words, "automated sync with self-heal is on: what is changed or removed by hand comes back")
	case automated:
		words = append(words, "automated sync is on: every commit is applied by itself")
	}
	return words
}

func (a *Application) syncWorth() string {
	switch a.Status.Sync.Status {
	case "Synced":
		return "Synced proves that the manifests in Git were applied, and nothing about the network: a Failed canary stays Synced"
	case "OutOfSync":
		return "OutOfSync proves that something differs from Git, and nothing about the network"
	case "":
		return "no sync status is reported"
	}
	return fmt.Sprintf("sync status %q proves nothing about the network", a.Status.Sync.Status)
}

// healthWorth follows Argo CD's rules for a Pod that is not restarted (gitops
// engine, pkg/health/health_pod.go): Succeeded is Healthy, Failed is Degraded.
func (a *Application) healthWorth(ownsCanary bool) string {
	health := a.Status.Health.Status
	switch {
	case health == "":
		return "no health is reported"
	case !ownsCanary:
		return fmt.Sprintf("%s speaks of the objects it owns; the canary is not among them", health)
	case health == "Healthy":
		return "Healthy holds for a canary that passed once, however long ago and whatever has changed since"
	case health == "Degraded":
		return "Degraded may be the Failed canary, which stays Failed until it is recreated"
	}
	return fmt.Sprintf("%s may be the canary or any other object", health)
}
