package status

import (
	"context"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

type starts = map[string]func(context.Context) func() error

func byName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// follow watches everything that the data name.
func (w *watcher) follow(d *Data) {
	wanted := starts{}
	w.multus(d, wanted)
	w.canaries(d, wanted)
	for _, n := range d.Networks {
		wanted["network "+n.Namespace+"/"+n.Name] = func(ctx context.Context) func() error {
			return mirrorErr(cluster.Follow[nadv1.NetworkAttachmentDefinition](ctx, &w.wg, w.Clients.Networks.NetworkAttachmentDefinitions(n.Namespace), byName(n.Name), w.wake))
		}
	}
	for i := range d.Shared.Nodes {
		name := d.Shared.Nodes[i].Name
		wanted["node "+name] = func(ctx context.Context) func() error {
			return mirrorErr(cluster.Follow[corev1.Node](ctx, &w.wg, w.Clients.Core.Nodes(), byName(name), w.wake))
		}
	}
	for i := range d.Argo.Applications {
		app := &d.Argo.Applications[i].Metadata
		w.metadata(wanted, argocd.Resource(), app.Namespace, app.Name)
	}
	w.keep(wanted)
}

// metadata watches one object of which only a change matters.
func (w *watcher) metadata(wanted starts, resource schema.GroupVersionResource, namespace, name string) {
	wanted[resource.Resource+" "+namespace+"/"+name] = func(ctx context.Context) func() error {
		client := w.Clients.Metadata.Resource(resource).Namespace(namespace)
		return mirrorErr(cluster.Follow[metav1.PartialObjectMetadata](ctx, &w.wg, client, byName(name), w.wake))
	}
}

func (w *watcher) multus(d *Data, wanted starts) {
	if d.DaemonSet.Name == "" {
		return
	}
	namespace := d.DaemonSet.Namespace
	wanted["daemonset "+d.DaemonSet.String()] = func(ctx context.Context) func() error {
		return mirrorErr(cluster.Follow[appsv1.DaemonSet](ctx, &w.wg, w.Clients.Apps.DaemonSets(namespace), byName(d.DaemonSet.Name), w.wake))
	}
	ds := d.Shared.MultusDaemonSet()
	if ds == nil {
		return
	}
	options := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)}
	wanted["daemons "+options.LabelSelector] = func(ctx context.Context) func() error {
		return mirrorErr(cluster.Follow[corev1.Pod](ctx, &w.wg, w.Clients.Core.Pods(namespace), options, w.wake))
	}
	wanted["revisions "+options.LabelSelector] = func(ctx context.Context) func() error {
		return mirrorErr(cluster.Follow[appsv1.ControllerRevision](ctx, &w.wg, w.Clients.Apps.ControllerRevisions(namespace), options, w.wake))
	}
	for i := range d.Shared.Pods {
		w.log(d, &d.Shared.Pods[i], wanted)
	}
}

// log follows the log of a daemon that is not ready yet: nothing else tells the
// moment.
func (w *watcher) log(d *Data, pod *corev1.Pod, wanted starts) {
	state, read := d.Logs[pod.UID]
	_, instance, started := rollout.DaemonContainer(pod)
	if !read || instance == "" || state.Ready() || d.At.Sub(started) > rollout.ReadyByAge {
		return
	}
	pod = pod.DeepCopy()
	wanted["log "+instance] = func(ctx context.Context) func() error {
		w.wg.Go(func() { w.followLog(ctx, pod) })
		return func() error { return nil }
	}
}

// followLog reads until the log says that the daemon is ready; a stream that
// breaks is opened again.
func (w *watcher) followLog(ctx context.Context, pod *corev1.Pod) {
	for ctx.Err() == nil {
		state, _, _ := readLog(ctx, w.Clients, pod, true, func(state rollout.DaemonLog) {
			if state.Ready() || state.Stopping || state.EmptyConf {
				w.wake()
			}
		})
		if state.Ready() {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryLost):
		}
	}
}

func (w *watcher) canaries(d *Data, wanted starts) {
	for i := range d.Canaries {
		e := &d.Canaries[i].Evidence
		ref := e.Canary
		wanted["canary "+ref.Namespace+"/"+ref.Name] = func(ctx context.Context) func() error {
			return mirrorErr(cluster.Follow[corev1.Pod](ctx, &w.wg, w.Clients.Core.Pods(ref.Namespace), byName(ref.Name), w.wake))
		}
		for j := range e.ConfigMaps {
			w.metadata(wanted, corev1.SchemeGroupVersion.WithResource("configmaps"), ref.Namespace, e.ConfigMaps[j].Name)
		}
		if ref.UID == "" {
			continue
		}
		options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(ref.UID)).String()}
		wanted["events "+string(ref.UID)] = func(ctx context.Context) func() error {
			return mirrorErr(cluster.Follow[corev1.Event](ctx, &w.wg, w.Clients.Core.Events(ref.Namespace), options, w.wake))
		}
	}
}
