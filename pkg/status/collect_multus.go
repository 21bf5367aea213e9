package status

import (
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// multus reads the DaemonSet, its Pods and its revisions.
func (r *reader) multus() error {
	d := r.data
	ref, note, err := target.FindDaemonSet(r.ctx, r.Clients.Apps, r.DaemonSet)
	d.DaemonSet, d.DaemonSetNote = ref, note
	right := cluster.Right{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: ref.Namespace}
	if errors.Is(err, target.ErrLookUp) {
		right.Verb, right.Namespace = "list", metav1.NamespaceAll
	}
	w := want{v1alpha1.SectionMultus, "DaemonSet " + ref.String(), right}
	if err != nil && !isAnswer(err) {
		// None, or several to choose from: that is what there is to say.
		d.DaemonSetNote = err.Error()
		d.Shared.Collected[evidence.DaemonSets] = errors.Is(err, target.ErrNoDaemonSet)
		return nil
	}
	if ok, err := r.got(w, err); !ok {
		return err
	}
	ds, err := r.Clients.Apps.DaemonSets(ref.Namespace).Get(r.ctx, ref.Name, metav1.GetOptions{})
	if ok, err := r.got(w, err); !ok {
		return err
	}
	d.Shared.Collected[evidence.DaemonSets] = true
	d.Shared.DaemonSets = append(d.Shared.DaemonSets, *ds)
	options := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)}
	return together([]func() error{
		func() error { return r.daemons(ref, options) },
		func() error { return r.revisions(ref, options) },
	})
}

// isAnswer reports whether an error came from the server or the way to it, as
// against from looking at what it said.
func isAnswer(err error) bool {
	return answered(err) || apierrors.IsUnauthorized(err) || errors.As(err, new(*url.Error))
}

func (r *reader) daemons(ref evidence.Ref, options metav1.ListOptions) error {
	list, err := r.Clients.Core.Pods(ref.Namespace).List(r.ctx, options)
	right := cluster.Right{Verb: "list", Resource: "pods", Namespace: ref.Namespace}
	ok, err := r.got(want{v1alpha1.SectionMultus, "the Pods of DaemonSet " + ref.String(), right}, err)
	if ok {
		r.note(func(e *evidence.Evidence) {
			e.Pods, e.Collected[evidence.Pods] = list.Items, true
		})
	}
	return err
}

func (r *reader) revisions(ref evidence.Ref, options metav1.ListOptions) error {
	list, err := r.Clients.Apps.ControllerRevisions(ref.Namespace).List(r.ctx, options)
	right := cluster.Right{Verb: "list", Group: "apps", Resource: "controllerrevisions", Namespace: ref.Namespace}
	ok, err := r.got(want{v1alpha1.SectionMultus, "the revisions of DaemonSet " + ref.String(), right}, err)
	if ok {
		r.note(func(e *evidence.Evidence) {
			e.ControllerRevisions, e.Collected[evidence.ControllerRevisions] = list.Items, true
		})
	}
	return err
}

// note changes the shared evidence; two reads of one stage may do so at once.
func (r *reader) note(change func(*evidence.Evidence)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.data.Shared)
}

// manyNodes bounds how many nodes besides the canaries' are read.
const manyNodes = 20

// nodes reads the canaries' nodes, and those whose daemon is not Ready: the
// node may be why.
func (r *reader) nodes() error {
	names := r.canaryNodes()
	others := 0
	for i := range r.data.Shared.Pods {
		pod := &r.data.Shared.Pods[i]
		if !evidence.PodReady(pod) && others < manyNodes && pod.Spec.NodeName != "" && !names[pod.Spec.NodeName] {
			names[pod.Spec.NodeName] = true
			others++
		}
	}
	r.data.Shared.Collected[evidence.Nodes] = len(names) > 0
	for name := range names {
		node, readErr := r.Clients.Core.Nodes().Get(r.ctx, name, metav1.GetOptions{})
		ok, err := r.got(want{v1alpha1.SectionFreshness, "node " + name, cluster.Right{Verb: "get", Resource: "nodes"}}, readErr)
		if err != nil {
			return err
		}
		switch {
		case ok:
			r.data.Shared.Nodes = append(r.data.Shared.Nodes, *node)
		case !apierrors.IsNotFound(readErr):
			r.data.Shared.Collected[evidence.Nodes] = false
		}
	}
	return nil
}

// canaryNodes are the nodes that the canaries run on.
func (r *reader) canaryNodes() map[string]bool {
	names := map[string]bool{}
	for i := range r.data.Canaries {
		if pod := r.data.Canaries[i].Evidence.CanaryPod(); pod != nil && pod.Spec.NodeName != "" {
			names[pod.Spec.NodeName] = true
		}
	}
	return names
}

// crdName is the definition of NetworkAttachmentDefinitions.
const crdName = "network-attachment-definitions.k8s.cni.cncf.io"

// crd reads the networks' definition, to tell a missing or dying one.
func (r *reader) crd() error {
	raw, err := r.Clients.Core.RESTClient().Get().
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crdName).
		SetHeader("Accept", "application/json").Do(r.ctx).Raw()
	right := cluster.Right{Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	ok, fatal := r.got(want{v1alpha1.SectionNetwork, "CustomResourceDefinition " + crdName, right}, err)
	if !ok {
		r.data.CRD.Absent = apierrors.IsNotFound(err)
		return fatal
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		r.gap(v1alpha1.SectionNetwork, "CustomResourceDefinition "+crdName+" cannot be read: "+err.Error())
		return nil
	}
	r.data.CRD.Object = object
	return nil
}
