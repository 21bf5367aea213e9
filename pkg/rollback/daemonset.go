package rollback

import (
	"context"
	"fmt"
	"slices"
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
// not there, and objects are marked that went with another. A mark is only a word,
// and who may write in some namespace may write one: those beside the default
// DaemonSet are believed, and those of a rollback that this machine has begun; others
// stop the run, which would be half of one.
func (c *collector) adopt(ctx context.Context) error {
	if c.DaemonSetNamed {
		return nil
	}
	for _, kind := range []string{"ServiceAccount", "ConfigMap"} {
		marked, err := c.marked(ctx, kindNamed(kind))
		if err != nil {
			return err
		}
		for _, object := range marked {
			adopted, err := c.adoptFrom(ctx, object)
			if adopted || err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collector) adoptFrom(ctx context.Context, object Object) (adopted bool, err error) {
	ref := markedDaemonSet(object)
	switch {
	case ref == c.DaemonSet:
		return false, nil
	case object.Namespace != ref.Namespace:
		return false, nil // no run of ours marks so
	}
	// A DaemonSet that is there was not deleted.
	_, err = c.Clients.Metadata.Resource(kindNamed("DaemonSet").GVR()).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return false, err
	}
	if ref.Namespace != c.DaemonSet.Namespace && !c.Store.GoesOn(ref) {
		c.state.CutShort = append(c.state.CutShort, fmt.Sprintf("%s is marked to go with DaemonSet %s, which is gone", object, ref))
		return false, nil
	}
	c.state.DaemonSet = ref
	c.state.Notes = append(c.state.Notes, fmt.Sprintf("going on with the rollback of DaemonSet %s, which an earlier run has deleted", ref))
	return true, nil
}

// marked are the objects of a kind that are marked to go with a DaemonSet.
func (c *collector) marked(ctx context.Context, kind Kind) ([]Object, error) {
	all, err := c.metaOf(ctx, kind, metav1.NamespaceAll)
	return slices.DeleteFunc(all, func(o Object) bool { return markedDaemonSet(o).Name == "" }), err
}

// markedDaemonSet is the DaemonSet that an object's mark names.
func markedDaemonSet(o Object) evidence.Ref {
	name, ok := strings.CutPrefix(o.Annotations[MarkAnnot], "daemonset ")
	namespace, name, both := strings.Cut(name, "/")
	if !ok || !both {
		return evidence.Ref{}
	}
	return evidence.Ref{Namespace: namespace, Name: name}
}

// helmNote tells of a release that would still be listed as installed.
func (c *collector) helmNote(o Object) {
	if release := o.Annotations["meta.helm.sh/release-name"]; release != "" {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("%s was installed by the Helm release %s/%s: uninstall it afterwards, or its next upgrade brings Multus back",
			o, o.Annotations["meta.helm.sh/release-namespace"], release))
	}
}
