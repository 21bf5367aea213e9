package scriptednode

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// watchBackoff is short: after a restart of the API server a node that sleeps
// would look like a node that is broken.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 5, Cap: time.Second}
}

// watch starts the node's two watches; each channel closes when its first list
// is through.
func (n *Node) watch(ctx context.Context) []<-chan struct{} {
	pods := newFeed(func(pod *corev1.Pod) { n.podSeen(ctx, pod) }, n.podGone)
	all := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll, fields.Everything())
	n.reflect(ctx, all, &corev1.Pod{}, pods)

	sets := newFeed(func(*appsv1.DaemonSet) { n.wake() }, func(ds *appsv1.DaemonSet) { n.collectGarbage(ctx, ds) })
	one := fields.OneTermEqualSelector("metadata.name", n.site.DaemonSet.Name)
	mine := cache.NewListWatchFromClient(n.client.AppsV1().RESTClient(), "daemonsets", n.site.DaemonSet.Namespace, one)
	n.reflect(ctx, mine, &appsv1.DaemonSet{}, sets)
	return []<-chan struct{}{pods.synced, sets.synced}
}

// reflect keeps a feed up to date, over API server restarts too.
func (n *Node) reflect(ctx context.Context, lw *cache.ListWatch, kind runtime.Object, into cache.ReflectorStore) {
	source := cache.ToListWatcherWithWatchListSemantics(lw, n.client)
	reflector := cache.NewReflectorWithOptions(source, kind, into, cache.ReflectorOptions{
		Name: userAgent, Backoff: watchBackoff(),
	})
	n.spawn(ctx, "watch", func(ctx context.Context) error {
		reflector.RunWithContext(ctx)
		return nil
	})
}

// feed turns what a reflector sees into two calls. It knows objects by UID, so
// that a recreated namesake is the end of one object and the start of another.
type feed[T metav1.Object] struct {
	seen, gone func(T)

	mu     sync.Mutex
	known  map[types.UID]T
	once   sync.Once
	synced chan struct{}
}

func newFeed[T metav1.Object](seen, gone func(T)) *feed[T] {
	return &feed[T]{seen: seen, gone: gone, known: map[types.UID]T{}, synced: make(chan struct{})}
}

// Add tells of an object that is there.
func (f *feed[T]) Add(obj any) error { return f.Update(obj) }

// Update tells of an object that is there.
func (f *feed[T]) Update(obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.update(obj)
}

func (f *feed[T]) update(obj any) error {
	object, ok := obj.(T)
	if !ok {
		return fmt.Errorf("watch: unexpected %T", obj)
	}
	f.known[object.GetUID()] = object
	f.seen(object)
	return nil
}

// Delete tells of an object that is gone.
func (f *feed[T]) Delete(obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	object, ok := obj.(T)
	if !ok {
		return fmt.Errorf("watch: unexpected %T", obj)
	}
	delete(f.known, object.GetUID())
	f.gone(object)
	return nil
}

// Replace tells of all objects that are there; the others are gone.
func (f *feed[T]) Replace(list []any, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := map[types.UID]bool{}
	for _, obj := range list {
		if object, ok := obj.(T); ok {
			now[object.GetUID()] = true
		}
	}
	for uid, object := range f.known {
		if !now[uid] {
			delete(f.known, uid)
			f.gone(object)
		}
	}
	for _, obj := range list {
		if err := f.update(obj); err != nil {
			return err
		}
	}
	f.once.Do(func() { close(f.synced) })
	return nil
}

// Resync has nothing to do: nothing here is derived.
func (f *feed[T]) Resync() error { return nil }
