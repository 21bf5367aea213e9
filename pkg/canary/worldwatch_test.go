package canary

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// list applies the selectors, which the fake leaves out.
func (w *world) list(action clienttesting.Action) (bool, runtime.Object, error) {
	request := action.(clienttesting.ListActionImpl)
	list, err := w.tracker.List(request.Resource, request.Kind, request.Namespace)
	if err != nil {
		return true, nil, err
	}
	items, err := meta.ExtractList(list)
	check(w.t, err)
	items = slices.DeleteFunc(items, func(item runtime.Object) bool { return !selected(item, request.ListOptions) })
	check(w.t, meta.SetList(list, items))
	return true, list, nil
}

// listMeta lists the metadata of the Pods that the typed client knows.
func (w *world) listMeta(clienttesting.Action) (bool, runtime.Object, error) {
	object, err := w.tracker.List(podsResource, corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		return true, nil, err
	}
	list := &metav1.List{}
	for _, pod := range object.(*corev1.PodList).Items {
		list.Items = append(list.Items, runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: pod.ObjectMeta,
		}})
	}
	return true, list, nil
}

// watch gives first all that is there, then what comes: as a real server does
// with sendInitialEvents, and without the gap between list and watch in which
// the fake loses changes.
func (w *world) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	request := action.(clienttesting.WatchActionImpl)
	source, err := w.tracker.Watch(request.Resource, request.Namespace)
	if err != nil {
		return true, nil, err
	}
	list, err := w.tracker.List(request.Resource, kindOf(request.Resource), request.Namespace)
	check(w.t, err)
	items, err := meta.ExtractList(list)
	check(w.t, err)

	out := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(out)
	send := func(event watch.Event) bool {
		if event.Type != watch.Bookmark && !selected(event.Object, request.ListOptions) {
			return true
		}
		select {
		case out <- event:
			return true
		case <-proxy.StopChan():
			return false
		}
	}
	go func() {
		defer source.Stop()
		for _, item := range items {
			if !send(watch.Event{Type: watch.Added, Object: item}) {
				return
			}
		}
		if initial := request.ListOptions.SendInitialEvents; initial != nil && *initial && !send(bookmark(w, request)) {
			return
		}
		for {
			select {
			case event := <-source.ResultChan():
				if !send(event) {
					return
				}
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return true, proxy, nil
}

// bookmark ends the initial events of a watch.
func bookmark(w *world, request clienttesting.WatchActionImpl) watch.Event {
	object, err := newObject(request)
	check(w.t, err)
	accessor, err := meta.Accessor(object)
	check(w.t, err)
	accessor.SetResourceVersion(w.next())
	accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return watch.Event{Type: watch.Bookmark, Object: object}
}

func selected(object runtime.Object, options metav1.ListOptions) bool {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil || !byLabel.Matches(labels.Set(accessor.GetLabels())) {
		return false
	}
	set := fields.Set{"metadata.name": accessor.GetName()}
	if event, ok := object.(*corev1.Event); ok {
		set["involvedObject.uid"] = string(event.InvolvedObject.UID)
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	return err == nil && byField.Matches(set)
}

// kindOf is the kind of a resource that a run watches.
func kindOf(gvr schema.GroupVersionResource) schema.GroupVersionKind {
	kind := map[string]string{
		"pods": "Pod", "events": "Event", "nodes": "Node", "daemonsets": "DaemonSet",
		"controllerrevisions": "ControllerRevision", "configmaps": "ConfigMap",
	}[gvr.Resource]
	return gvr.GroupVersion().WithKind(kind)
}
