package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
	var begun []evidence.Ref
	var strange []string
	byDefault := false
	for _, kind := range []string{"ServiceAccount", "ConfigMap"} {
		marked, err := c.marked(ctx, kindNamed(kind))
		if err != nil {
			return err
		}
		for _, object := range marked {
			switch ref := markedDaemonSet(object); {
			case object.Namespace != ref.Namespace, c.stands(ref):
				// No run of ours marks so, or none has deleted it.
			case ref == c.DaemonSet:
				byDefault = true
			case ref.Namespace == c.DaemonSet.Namespace, c.Store.GoesOn(ref):
				begun = append(begun, ref)
			default:
				strange = append(strange, fmt.Sprintf("%s is marked to go with DaemonSet %s, which is gone", object, ref))
			}
		}
	}
	switch {
	case byDefault:
	case len(begun) > 0:
		c.state.DaemonSet = begun[0]
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("going on with the rollback of DaemonSet %s, which an earlier run has deleted", begun[0]))
	default:
		c.state.CutShort = strange
		return nil
	}
	if len(strange) > 0 {
		c.state.Notes = append(c.state.Notes, andMore(strange)+": where an earlier rollback of that was cut short, --daemonset goes on with it")
	}
	return nil
}

// stands reports whether a DaemonSet was there when all were read.
func (c *collector) stands(ref evidence.Ref) bool {
	set := Object{Kind: kindNamed("DaemonSet"), Namespace: ref.Namespace, Name: ref.Name}
	return slices.ContainsFunc(c.templates, func(t template) bool { return t.object.same(set) })
}

// andMore names the first and counts the rest: anybody may have made many.
func andMore(texts []string) string {
	if n := len(texts) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more)", texts[0], n)
	}
	return texts[0]
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
