package canary

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// fail answers the next requests of a kind with these errors, one each; nil
// lets one through.
func (w *world) fail(verb, resource string, answers ...error) {
	var mu sync.Mutex
	w.kube.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 || isDryRun(action) || action.GetSubresource() != "" {
			return false, nil, nil
		}
		err := answers[0]
		answers = answers[1:]
		return err != nil, nil, err
	})
}

// failAlways answers every request of a kind with an error.
func (w *world) failAlways(verb, resource string, err error) {
	w.kube.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	if verb == "list" {
		w.kube.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, err })
	}
}

// forbidWatching answers every watch as for a user who may only list.
func (w *world) forbidWatching() {
	w.kube.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	})
}

// change changes an object other than the canary.
func (w *world) change(resource schema.GroupVersionResource, namespace, name string, change func(any)) {
	object, err := w.tracker.Get(resource, namespace, name)
	check(w.t, err)
	object = object.DeepCopyObject()
	change(object)
	check(w.t, w.tracker.Update(resource, object, namespace))
}

func isDryRun(action clienttesting.Action) bool {
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		return len(action.CreateOptions.DryRun) > 0
	case clienttesting.DeleteActionImpl:
		return len(action.DeleteOptions.DryRun) > 0
	}
	return false
}
