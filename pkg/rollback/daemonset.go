package rollback

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// daemonSet finds the one to be rolled back. The default one may have another
// name; a name that the user gave is taken at its word.
func (c *collector) daemonSet(ctx context.Context) error {
	var others []appsv1.DaemonSet
	for _, ds := range c.daemons {
		if ds.Namespace == c.DaemonSet.Namespace && ds.Name == c.DaemonSet.Name {
			c.set = &ds
		} else {
			others = append(others, ds)
		}
	}
	if c.set == nil && !c.DaemonSetNamed && len(others) == 1 {
		c.set = &others[0]
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("there is no DaemonSet %s; taking %s/%s, which runs Multus", c.DaemonSet, c.set.Namespace, c.set.Name))
		c.state.DaemonSet = evidence.Ref{Namespace: c.set.Namespace, Name: c.set.Name}
		others = nil
	}
	for _, ds := range others {
		c.state.Daemons = append(c.state.Daemons, evidence.Ref{Namespace: ds.Namespace, Name: ds.Name})
	}
	if c.set == nil {
		return c.adopt(ctx)
	}
	object := found(kindNamed("DaemonSet"), c.set)
	c.fixed(object)
	c.state.DaemonSetObject = &object
	c.helmNote(object)
	return nil
}

// adopt goes on with the DaemonSet of a run that was killed: the default one is
// not there, and objects are marked that went with another.
func (c *collector) adopt(ctx context.Context) error {
	if c.DaemonSetNamed {
		return nil
	}
	for _, kind := range []string{"ServiceAccount", "ConfigMap"} {
		ref, err := c.marked(ctx, kindNamed(kind))
		if err != nil {
			return err
		}
		if ref.Name != "" && ref != c.DaemonSet {
			// A mark is only a word: a DaemonSet that is there was not deleted.
			_, err := c.Clients.Metadata.Resource(kindNamed("DaemonSet").GVR()).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err == nil {
				continue
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
			c.state.DaemonSet = ref
			c.state.Notes = append(c.state.Notes, fmt.Sprintf("going on with the rollback of DaemonSet %s, which an earlier run has deleted", ref))
			return nil
		}
	}
	return nil
}

// marked is the DaemonSet that the mark on an object of a kind names.
func (c *collector) marked(ctx context.Context, kind Kind) (ref evidence.Ref, err error) {
	err = each(ctx, c.Clients.Metadata.Resource(kind.GVR()).List, func(list *metav1.PartialObjectMetadataList) error {
		for i := range list.Items {
			name, ok := strings.CutPrefix(list.Items[i].Annotations[MarkAnnot], "daemonset ")
			if namespace, name, both := strings.Cut(name, "/"); ok && both && ref.Name == "" {
				ref = evidence.Ref{Namespace: namespace, Name: name}
			}
		}
		return nil
	})
	return ref, err
}

// helmNote tells of a release that would still be listed as installed.
func (c *collector) helmNote(o Object) {
	if release := o.Annotations["meta.helm.sh/release-name"]; release != "" {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("%s was installed by the Helm release %s/%s: uninstall it afterwards, or its next upgrade brings Multus back",
			o, o.Annotations["meta.helm.sh/release-namespace"], release))
	}
}
