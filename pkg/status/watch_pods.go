package status

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// rescan is how often all Pods are looked through where they may be listed and
// not watched.
const rescan = 30 * time.Second

// followPods keeps the Pods of interest by one watch over all namespaces, so
// that no later look has to scan them again.
func (w *watcher) followPods() {
	source := &podSource{clients: w.Clients, now: w.Now, known: map[string]bool{}}
	mirror := cluster.Follow[metav1.PartialObjectMetadata](w.ctx, &w.wg, source, metav1.ListOptions{}, w.wake)
	w.Pods = func(ctx context.Context) ([]PodMeta, Search, error) {
		if err := synced(ctx, mirror); err != nil {
			return nil, Search{}, err
		}
		var metas []PodMeta
		for _, meta := range mirror.Items() {
			if m, ok := Interesting(meta); ok {
				metas = append(metas, m)
			}
		}
		return metas, Search{Pods: source.count()}, nil
	}
}

// synced waits until the watch has seen all Pods once, or never will. What it has
// seen counts no more once the server refuses to tell how it goes on.
func synced(ctx context.Context, mirror *cluster.Mirror[metav1.PartialObjectMetadata]) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		synced, err := mirror.Synced(), mirror.Err()
		if err != nil && (!synced || apierrors.IsForbidden(err)) {
			return err
		}
		if synced {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// podSource lists and watches the metadata of all Pods, and passes on only what
// the scan keeps: a large cluster's Pods must not fill the memory.
type podSource struct {
	clients *cluster.Clients
	now     func() time.Time

	mu     sync.Mutex
	known  map[string]bool // Pods that were passed on
	pods   int
	last   *metav1.PartialObjectMetadataList
	lastAt time.Time
}

func (p *podSource) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods
}

// List implements cluster.Lister. It is asked once a second where watching is
// forbidden, and scans seldom.
func (p *podSource) List(ctx context.Context, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && p.now().Sub(p.lastAt) < rescan {
		return p.last, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	p.pods, p.known = 0, map[string]bool{}
	pods := p.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	options := metav1.ListOptions{Limit: scanPage}
	for {
		page, err := pods.List(ctx, options)
		if err != nil {
			return nil, err
		}
		list.ResourceVersion = page.ResourceVersion
		p.pods += len(page.Items)
		for i := range page.Items {
			if _, ok := Interesting(&page.Items[i]); ok {
				p.known[key(&page.Items[i])] = true
				list.Items = append(list.Items, *slim(&page.Items[i]))
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			p.last, p.lastAt = list, p.now()
			return list, nil
		}
	}
}

// Watch implements cluster.Lister.
func (p *podSource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := p.clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		p.mu.Lock()
		p.pods, p.known = 0, map[string]bool{}
		p.mu.Unlock()
	}
	return watch.Filter(w, p.pass), nil
}

// pass filters one event. A Pod that loses its label or annotation is deleted
// as far as the receiver knows.
func (p *podSource) pass(event watch.Event) (watch.Event, bool) {
	meta, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event.Type {
	case watch.Added:
		p.pods++
	case watch.Deleted:
		p.pods--
	case watch.Modified, watch.Bookmark, watch.Error:
	}
	_, interesting := Interesting(meta)
	was := p.known[key(meta)]
	event.Object = slim(meta)
	switch {
	case event.Type == watch.Deleted || !interesting:
		delete(p.known, key(meta))
		event.Type = watch.Deleted
		return event, was
	case !was:
		p.known[key(meta)] = true
	}
	return event, true
}

func key(meta *metav1.PartialObjectMetadata) string { return meta.Namespace + "/" + meta.Name }

// slim keeps what Interesting reads, and what a watch needs to go on.
func slim(meta *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{TypeMeta: meta.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
	}}
	if multus.AsksForNetworks(meta.Annotations) {
		kept.Annotations = networksOf(meta.Annotations)
	}
	if label, ok := meta.Labels[CanaryLabel]; ok {
		kept.Labels = map[string]string{CanaryLabel: label}
	}
	return kept
}
