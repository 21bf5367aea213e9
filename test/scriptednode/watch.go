package scriptednode

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	appsv1 "k8s.io/api/apps/v1"
)

// watchBackoff is short: after a restart of the API server a node that sleeps
// would look like a node that is broken.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 5, Cap: time.Second}
}

// watch starts the node's two watches; each channel closes when its first list
// is through.
func (n *Node) watch(ctx context.Context) []<-chan struct{} {
	pods := newFeed(func(o runtime.Object) { n.podSeen(ctx, o.(*corev1.Pod)) }, func(o runtime.Object) { n.podGone(o.(*corev1.Pod)) })
	all := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll, fields.Everything())
	n.reflect(ctx, all, &corev1.Pod{}, pods)

	sets := newFeed(func(runtime.Object) { n.wake() }, func(o runtime.Object) { n.collectGarbage(ctx, o.(*appsv1.DaemonSet)) })
	one := fields.OneTermEqualSelector("metadata.name", n.site.DaemonSet.Name)
	mine := cache.NewListWatchFromClient(n.client.AppsV1().RESTClient(), "daemonsets", n.site.DaemonSet.Namespace, one)
	n.reflect(ctx, mine, &appsv1.DaemonSet{}, sets)
	return []<-chan struct{}{pods.synced, sets.synced}
}

// reflect keeps a feed up to date, over API server restarts too.
func (n *Node) reflect(ctx context.Context, lw *cache.ListWatch, kind runtime.Object, into *feed) {
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
type feed struct {
	seen, gone func(runtime.Object)

	mu     sync.Mutex
	known  map[types.UID]runtime.Object
	once   sync.Once
	synced chan struct{}
}

func newFeed(seen, gone func(runtime.Object)) *feed {
	return &feed{seen: seen, gone: gone, known: map[types.UID]runtime.Object{}, synced: make(chan struct{})}
}

// Add tells of an object that is there.
func (f *feed) Add(obj any) error { return f.Update(obj) }

// Update tells of an object that is there.
func (f *feed) Update(obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.update(obj)
}

func (f *feed) update(obj any) error {
	object, uid, err := identify(obj)
	if err != nil {
		return err
	}
	f.known[uid] = object
	f.seen(object)
	return nil
}

// Delete tells of an object that is gone.
func (f *feed) Delete(obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	object, uid, err := identify(obj)
	if err != nil {
		return err
	}
	delete(f.known, uid)
	f.gone(object)
	return nil
}

// Replace tells of all objects that are there; the others are gone.
func (f *feed) Replace(list []any, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.known
	f.known = map[types.UID]runtime.Object{}
	for _, obj := range list {
		if err := f.update(obj); err != nil {
			return err
		}
	}
	for uid, object := range before {
		if _, still := f.known[uid]; !still {
			f.gone(object)
		}
	}
	f.once.Do(func() { close(f.synced) })
	return nil
}

// Resync has nothing to do: nothing here is derived.
func (f *feed) Resync() error { return nil }

func identify(obj any) (runtime.Object, types.UID, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, "", err
	}
	return obj.(runtime.Object), accessor.GetUID(), nil
}
