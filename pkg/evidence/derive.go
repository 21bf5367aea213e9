package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrNoCanary says that nothing names the canary and that it cannot be told
// from the Pods.
var ErrNoCanary = errors.New("which Pod is the canary is not told")

// finish puts header, options and what the objects tell together.
func (l *loader) finish(o Options) (Evidence, error) {
	e := &l.e
	e.Collected = map[Resource]bool{}
	head := l.head
	if head == nil {
		head = &header{}
	}
	e.Canary, e.DaemonSet, e.CollectedAt = head.Canary, head.DaemonSet, head.CollectedAt
	e.Before = head.Before
	e.Canary.override(o.Canary)
	e.DaemonSet.override(o.DaemonSet)
	for _, r := range slices.Concat(head.Collected, o.Collected) {
		e.Collected[r] = true
	}
	if head.Collected == nil {
		for r := range l.seen {
			e.Collected[r] = true
		}
	}
	if e.Canary.Name == "" {
		ref, err := e.findCanary()
		if err != nil {
			return Evidence{}, err
		}
		e.Canary.override(ref)
	}
	if e.DaemonSet.Name == "" {
		e.DaemonSet.override(e.findDaemonSet())
	}
	if e.CollectedAt.IsZero() {
		e.CollectedAt = e.newestTime()
	}
	return *e, nil
}

// override takes the fields that are set in other. Another name takes the UID
// with it.
func (r *Ref) override(other Ref) {
	if other.Name != "" && other.Name != r.Name || other.Namespace != "" && other.Namespace != r.Namespace {
		r.UID = ""
	}
	r.Namespace = cmp.Or(other.Namespace, r.Namespace)
	r.Name = cmp.Or(other.Name, r.Name)
	r.UID = cmp.Or(other.UID, r.UID)
}

// findCanary takes the one bare Pod that asks for a secondary network.
func (e *Evidence) findCanary() (Ref, error) {
	var found []Ref
	for i := range e.Pods {
		p := &e.Pods[i]
		if p.Annotations[nadv1.NetworkAttachmentAnnot] == "" || metav1.GetControllerOf(p) != nil {
			continue
		}
		ref := Ref{Namespace: p.Namespace, Name: p.Name}
		if e.Canary.Namespace == "" || e.Canary.Namespace == p.Namespace {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return Ref{}, fmt.Errorf("%w: no bare Pod has a networks annotation", ErrNoCanary)
	case 1:
		return found[0], nil
	}
	names := make([]string, 0, len(found))
	for _, r := range found {
		names = append(names, r.String())
	}
	slices.Sort(names)
	return Ref{}, fmt.Errorf("%w: there are %s", ErrNoCanary, strings.Join(names, ", "))
}

// findDaemonSet takes the one DaemonSet that looks like Multus; none and
// several both give an empty name, which no rule then relies on.
func (e *Evidence) findDaemonSet() Ref {
	var found []Ref
	for i := range e.DaemonSets {
		if ds := &e.DaemonSets[i]; IsMultus(ds) {
			found = append(found, Ref{Namespace: ds.Namespace, Name: ds.Name})
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return Ref{}
}

// IsMultus tells Multus' DaemonSet by the upstream labels or by its image.
func IsMultus(ds *appsv1.DaemonSet) bool {
	for _, labels := range []map[string]string{ds.Labels, ds.Spec.Template.Labels} {
		if labels["app"] == "multus" || labels["name"] == "multus" {
			return true
		}
	}
	return RunsMultus(&ds.Spec.Template.Spec)
}

// RunsMultus tells a Pod that runs Multus by the names of its images.
func RunsMultus(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		image, _, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], "@")
		name, _, _ := strings.Cut(image, ":")
		// Rebuilds keep the name ("hardened-multus-cni"); the controllers beside
		// Multus are called otherwise ("multus-dynamic-networks-controller").
		return name == "multus" || strings.Contains(name, "multus-cni")
	})
}

// newestTime is the newest time in the evidence, for a dump that does not say
// when it was made.
func (e *Evidence) newestTime() time.Time {
	var newest time.Time
	see := func(t time.Time) {
		if t.After(newest) {
			newest = t
		}
	}
	for i := range e.Events {
		see(EventTime(&e.Events[i]))
	}
	for i := range e.Pods {
		p := &e.Pods[i]
		see(p.CreationTimestamp.Time)
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if r := c.State.Running; r != nil {
				see(r.StartedAt.Time)
			}
			if t := c.State.Terminated; t != nil {
				see(t.FinishedAt.Time)
			}
		}
	}
	return newest
}

// IsSidecar tells an init container that runs beside the others from one that they
// wait for.
func IsSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// HasGuard reports whether a canary has an init container that the others wait for,
// which is where the network is tested from inside.
func HasGuard(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return !IsSidecar(c) })
}
