package cluster

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// pollInterval is how often a kind is listed that may not be watched.
const pollInterval = time.Second

// reconnect is how a broken watch is resumed. The default of client-go starts
// at 0.8 s and grows to 30 s; a person is waiting here.
func reconnect() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 8, Cap: time.Second}
}

// Lister is the part of a typed client that a Mirror reads from.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Mirror is the newest state of the objects that a selector matches. Decisions
// are made from the whole of it at each change, never from one watch event.
type Mirror[T any] struct {
	store   cache.Store
	changed func()

	mu       sync.Mutex
	synced   bool
	lastErr  error
	deleted  *T
	watchNo  chan struct{} // closed once the server forbids to watch
	watchOff sync.Once
}

// Follow keeps a Mirror up to date until ctx ends: by a watch that is resumed
// for as long as it takes, or, where watching is forbidden, by a list a second.
// changed is called after each change and must return at once. T is the type of
// the items of L, without the pointer.
func Follow[T any, L runtime.Object](ctx context.Context, wg *sync.WaitGroup, client Lister[L], options metav1.ListOptions, changed func()) *Mirror[T] {
	m := &Mirror[T]{
		store:   cache.NewStore(cache.MetaNamespaceKeyFunc),
		changed: changed,
		watchNo: make(chan struct{}),
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, narrow(o, options))
			m.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := client.Watch(ctx, narrow(o, options))
			m.noteWatch(err)
			return w, err
		},
	}
	// Reflectors log what they retry; what matters reaches the user by Err.
	ctx = klog.NewContext(ctx, logr.Discard())
	var item T
	wg.Go(func() { m.run(ctx, lw, cache.ToListWatcherWithWatchListSemantics(lw, client), &item) })
	return m
}

// narrow adds the caller's selectors to the options of a reflector. A reflector
// begins with whatever a server has in its cache (resource version 0), which may
// be older than an object that was made a moment ago: its absence would be taken
// for a deletion. Selectors keep the list short, so the newest state is asked for.
func narrow(o, selectors metav1.ListOptions) metav1.ListOptions {
	if o.ResourceVersion == "0" && !o.Watch {
		o.ResourceVersion = ""
	}
	o.FieldSelector, o.LabelSelector = selectors.FieldSelector, selectors.LabelSelector
	return o
}

func (m *Mirror[T]) run(ctx context.Context, lister cache.ListerWithContext, lw cache.ListerWatcher, item any) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-m.watchNo:
			stop()
		case <-watching.Done():
		}
	}()
	discard := logr.Discard()
	cache.NewReflectorWithOptions(lw, item, m, cache.ReflectorOptions{Logger: &discard, Backoff: reconnect()}).
		RunWithContext(watching)
	if ctx.Err() == nil {
		m.poll(ctx, lister)
	}
}

// poll is the way out where watching is forbidden. A list that tells nothing new
// is no change.
func (m *Mirror[T]) poll(ctx context.Context, lister cache.ListerWithContext) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var known map[string]string // nil: unlike any list
	for {
		list, err := lister.ListWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			known = nil // that it can be read again is news
		} else if objects, versions, err := listed(list); err == nil && (known == nil || !maps.Equal(known, versions)) {
			known = versions
			_ = m.Replace(objects, "")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listed takes a list apart: its objects, and the version of each by its name.
func listed(list runtime.Object) (objects []any, versions map[string]string, err error) {
	versions = map[string]string{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		objects = append(objects, item)
		versions[object.GetNamespace()+"/"+object.GetName()] = string(object.GetUID()) + "@" + object.GetResourceVersion()
		return nil
	})
	return objects, versions, err
}

// note keeps the last error, and forgets it at the next success. A new error is a
// change too: somebody waits for the answer.
func (m *Mirror[T]) note(err error) {
	m.mu.Lock()
	same := err == nil || m.lastErr != nil && m.lastErr.Error() == err.Error()
	m.lastErr = err
	m.mu.Unlock()
	if !same {
		m.changed()
	}
}

func (m *Mirror[T]) noteWatch(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
		m.watchOff.Do(func() { close(m.watchNo) })
		return
	}
	// A watch that fails is news. One that starts goes on from the last list, where
	// there was one.
	if err != nil || m.Synced() {
		m.note(err)
	}
}

// Items are the newest objects, in no order. They are shared: do not change them.
func (m *Mirror[T]) Items() []*T {
	objects := m.store.List()
	items := make([]*T, 0, len(objects))
	for _, object := range objects {
		if item, ok := object.(*T); ok {
			items = append(items, item)
		}
	}
	return items
}

// One is the newest object of a Mirror that selects a single name, or nil where
// there is none.
func (m *Mirror[T]) One() *T {
	if items := m.Items(); len(items) > 0 {
		return items[0]
	}
	return nil
}

// Deleted is the object that a watch saw being deleted last, in its last state;
// nil where none was, or where no watch was open in that moment.
func (m *Mirror[T]) Deleted() *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deleted
}

// Synced reports whether the server has answered at least once, so that an
// empty Mirror means "none there".
func (m *Mirror[T]) Synced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// Err is the last error of reading, nil while all is well.
func (m *Mirror[T]) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastErr
}

// Add implements cache.ReflectorStore.
func (m *Mirror[T]) Add(object any) error { return m.apply(m.store.Add(object)) }

// Update implements cache.ReflectorStore.
func (m *Mirror[T]) Update(object any) error { return m.apply(m.store.Update(object)) }

// Delete implements cache.ReflectorStore.
func (m *Mirror[T]) Delete(object any) error {
	if item, ok := object.(*T); ok {
		m.mu.Lock()
		m.deleted = item
		m.mu.Unlock()
	}
	return m.apply(m.store.Delete(object))
}

// Replace implements cache.ReflectorStore.
func (m *Mirror[T]) Replace(objects []any, resourceVersion string) error {
	err := m.store.Replace(objects, resourceVersion)
	m.mu.Lock()
	m.synced, m.lastErr = true, nil
	m.mu.Unlock()
	return m.apply(err)
}

// Resync implements cache.ReflectorStore.
func (m *Mirror[T]) Resync() error { return nil }

func (m *Mirror[T]) apply(err error) error {
	if err == nil {
		m.changed()
	}
	return err
}
