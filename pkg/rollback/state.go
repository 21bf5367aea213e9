package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// collector reads the state of the API. What cannot be read is an error: a
// guard that is not known to hold does not hold.
type collector struct {
	*Rollback
	state     State
	templates []template
	above     owners
	users     []User
	daemons   []appsv1.DaemonSet // all that run Multus
	set       *appsv1.DaemonSet  // the one to be rolled back
	canaryPod *corev1.Pod        // nil where it is gone
	scripts   []Object           // the ConfigMaps beside the canary
	paths     multus.HostPaths   // of the set
	// markedImage is what node Pods ran in while the set was there.
	markedImage string
}

// collect reads what is there now.
func (r *Rollback) collect(ctx context.Context) (State, error) {
	c := &collector{Rollback: r, above: owners{}, state: State{
		Canary: r.Canary, DaemonSet: r.DaemonSet, Access: r.Access, RemoveBinaries: r.RemoveBinaries,
		Keep: map[string]string{},
	}}
	for _, read := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"what the user named", c.consumers},
		{"the templates of all namespaces", c.workloads},
		{"the Pods of all namespaces", c.pods},
		{"the Multus DaemonSet", c.daemonSet},
		{"the canary", c.canary},
		{"the networks", c.networks},
		{"the guard scripts", c.guardScripts},
		{"what was saved of the canary", c.hint},
		{"what stands beside the DaemonSet", c.support},
		{"the definition of networks", c.crd},
		{"the nodes", c.nodes},
		{"Argo CD's Applications", c.applications},
	} {
		if err := read.do(ctx); err != nil {
			return c.state, fmt.Errorf("reading %s: %w", read.what, err)
		}
	}
	c.state.Users = strangers(c.users, c.state.planned(), c.above)
	return c.state, nil
}

// get reads one object by name; its UID is empty where it is not there.
func (c *collector) get(ctx context.Context, o Object) (Object, error) {
	live, err := c.Clients.objects(o).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, nil
	case err != nil:
		return o, err
	}
	return found(o.Kind, live), nil
}

// consumers keeps the order of the user. What the plan deletes in a place of
// its own keeps that place.
func (c *collector) consumers(ctx context.Context) error {
	for _, named := range c.Also {
		object, err := c.get(ctx, named)
		if err != nil {
			return fmt.Errorf("%s: %w", named, err)
		}
		if object.UID == "" {
			c.state.Notes = append(c.state.Notes, object.String()+" is not there (any more)")
		}
		c.state.Consumers = append(c.state.Consumers, object)
	}
	return nil
}

// fixed takes an object out of the consumers: it has its own place.
func (c *collector) fixed(o Object) {
	c.state.Consumers = slices.DeleteFunc(c.state.Consumers, o.same)
}

// canary reads the Pod: its networks and guard scripts are found by it.
func (c *collector) canary(ctx context.Context) error {
	pod, err := c.Clients.Core.Pods(c.Canary.Namespace).Get(ctx, c.Canary.Name, metav1.GetOptions{})
	if err == nil {
		object := found(kindNamed("Pod"), pod)
		c.fixed(object)
		c.state.CanaryPod, c.canaryPod = &object, pod
		return nil
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		// The right to read it goes with its namespace.
		_, gone := c.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, c.Canary.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(gone) {
			return nil
		}
	}
	return err
}

// hint tells how to name what a canary that is gone has left behind, where a
// manifest that was saved on this machine knows it. It decides nothing: on
// another machine the plan must be the same.
func (c *collector) hint(context.Context) error {
	if c.canaryPod != nil {
		return nil
	}
	saved, path, err := c.Store.LoadManifest(c.Canary)
	if err != nil || saved == nil {
		return nil //nolint:nilerr // it is a hint
	}
	selections, err := multus.RequestedNetworks(saved)
	if err != nil {
		return nil //nolint:nilerr // it is a hint
	}
	var left, flags []string
	for _, network := range c.state.ForeignNetworks {
		if slices.ContainsFunc(selections, func(s multus.Selection) bool {
			return s.Network() == network.Namespace+"/"+network.Name
		}) {
			left, flags = append(left, network.String()), append(flags, "--network "+network.Namespace+"/"+network.Name)
		}
	}
	named := slices.Concat(c.state.Guards, c.state.Consumers)
	for _, script := range c.scripts {
		if initConfigMaps(&saved.Spec)[script.Name] && !slices.ContainsFunc(named, script.same) {
			left, flags = append(left, script.String()), append(flags, "--also ConfigMap/"+script.Namespace+"/"+script.Name)
		}
	}
	if len(left) > 0 {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("Pod %s is gone, and nothing in the cluster tells what was its own: by its manifest in %s %s stay; to take them along add %s",
			c.Canary, path, join(left), strings.Join(flags, " ")))
	}
	return nil
}

// networks are the canary's, those that the user named, and those that an
// earlier run has marked; all others are of others.
func (c *collector) networks(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, ref := range c.Networks {
		wanted[ref.String()] = true
	}
	if c.canaryPod != nil {
		selections, err := multus.RequestedNetworks(c.canaryPod)
		if err != nil && !errors.Is(err, multus.ErrNoNetworks) {
			c.state.Notes = append(c.state.Notes, fmt.Sprintf("the networks of Pod %s cannot be read (%v), so that none is known as its own: to take it along add --network NAMESPACE/NAME", c.Canary, err))
		}
		for _, selection := range selections {
			wanted[selection.Network()] = true
		}
	}
	all, err := c.allNetworks(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		object := found(kindNamed(networkKind), &all[i])
		consumer := slices.ContainsFunc(c.state.Consumers, object.same)
		switch {
		case wanted[object.Namespace+"/"+object.Name], object.Annotations[MarkAnnot] == c.canaryMark():
			c.fixed(object)
			c.state.Networks = append(c.state.Networks, object)
		case !consumer:
			c.state.ForeignNetworks = append(c.state.ForeignNetworks, object)
		}
	}
	return nil
}

// allNetworks are none where their kind is gone.
func (c *collector) allNetworks(ctx context.Context) ([]nadv1.NetworkAttachmentDefinition, error) {
	var all []nadv1.NetworkAttachmentDefinition
	err := each(ctx, c.Clients.Networks.NetworkAttachmentDefinitions(metav1.NamespaceAll).List,
		func(list *nadv1.NetworkAttachmentDefinitionList) error {
			all = append(all, list.Items...)
			return nil
		})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return all, err
}

func (c *collector) canaryMark() string { return "canary " + c.Canary.String() }
func (c *collector) daemonMark() string { return "daemonset " + c.state.DaemonSet.String() }

// guardScripts are the ConfigMaps that the canary's init containers mount. One
// that others use as well stays.
func (c *collector) guardScripts(ctx context.Context) error {
	names := map[string]bool{}
	if c.canaryPod != nil {
		names = initConfigMaps(&c.canaryPod.Spec)
	}
	var err error
	if c.scripts, err = c.configMaps(ctx, c.Canary.Namespace); err != nil {
		return err
	}
	for _, object := range c.scripts {
		if !names[object.Name] && object.Annotations[MarkAnnot] != c.canaryMark() {
			continue
		}
		c.fixed(object)
		c.state.Guards = append(c.state.Guards, object)
		user, err := c.mountedBy(ctx, object)
		if err != nil {
			return err
		}
		c.keepUsed(object, user)
	}
	return nil
}

// configMaps are those of a namespace, without their contents.
func (c *collector) configMaps(ctx context.Context, namespace string) ([]Object, error) {
	return c.metaOf(ctx, kindNamed("ConfigMap"), namespace)
}

// metaOf are the objects of a kind in a namespace, as metadata.
func (c *collector) metaOf(ctx context.Context, kind Kind, namespace string) ([]Object, error) {
	var objects []Object
	err := each(ctx, c.Clients.Metadata.Resource(kind.GVR()).Namespace(namespace).List,
		func(list *metav1.PartialObjectMetadataList) error {
			for i := range list.Items {
				objects = append(objects, found(kind, &list.Items[i]))
			}
			return nil
		})
	return objects, err
}

// initConfigMaps names what init containers mount.
func initConfigMaps(spec *corev1.PodSpec) map[string]bool {
	mounted := map[string]bool{}
	for _, container := range spec.InitContainers {
		for _, mount := range container.VolumeMounts {
			mounted[mount.Name] = true
		}
	}
	names := map[string]bool{}
	for _, volume := range spec.Volumes {
		if volume.ConfigMap != nil && mounted[volume.Name] {
			names[volume.ConfigMap.Name] = true
		}
	}
	return names
}

// crd is kept while others have networks of its kind.
func (c *collector) crd(ctx context.Context) error {
	object, err := c.get(ctx, Object{Kind: kindNamed("CustomResourceDefinition"), Name: networkCRD})
	if err != nil || object.UID == "" {
		return err
	}
	c.state.CRD = &object
	if names := objectNames(c.state.ForeignNetworks); len(names) > 0 {
		c.state.Keep[object.String()] = "it stays: its deletion would delete " + join(names)
	}
	return nil
}
