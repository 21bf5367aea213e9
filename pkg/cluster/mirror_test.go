package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestMain looks for goroutines that outlive the tests. Reflectors report
// through a handler that slows down repeated errors by the real clock, which a
// bubble's clock never reaches.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	errAway      = errors.New("connection refused")
)

// server is a Lister of Pods whose answers a test gives.
type server struct {
	mu                sync.Mutex
	pods              []corev1.Pod
	listErr, watchErr error
	lists             int
	options           []metav1.ListOptions
	watch             *watch.RaceFreeFakeWatcher
}

func (s *server) List(_ context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	s.options = append(s.options, options)
	if s.listErr != nil {
		return nil, s.listErr
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: slices.Clone(s.pods)}, nil
}

func (s *server) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options = append(s.options, options)
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	s.watch = watch.NewRaceFreeFake()
	if initial := options.SendInitialEvents; initial != nil && *initial {
		for i := range s.pods {
			s.watch.Add(s.pods[i].DeepCopy())
		}
		s.watch.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	return s.watch, nil
}

func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// current is the watch that is open.
func (s *server) current() *watch.RaceFreeFakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch
}

func (s *server) asked() []metav1.ListOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.options)
}

func (s *server) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func pod(name, version string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
}

// follow runs a Mirror in a bubble until the test ends.
func follow(t *testing.T, s *server) (m *Mirror[corev1.Pod], changes func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := 0
	options := metav1.ListOptions{FieldSelector: "metadata.name=a", LabelSelector: "name=multus"}
	m = Follow[corev1.Pod](ctx, &wg, s, options, func() {
		mu.Lock()
		defer mu.Unlock()
		count++
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return m, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func names(m *Mirror[corev1.Pod]) []string {
	var all []string
	for _, p := range m.Items() {
		all = append(all, p.Name+"@"+p.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

func expect(t *testing.T, m *Mirror[corev1.Pod], want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, names(m)); diff != "" {
		t.Errorf("the Mirror holds (-want +got):\n%s", diff)
	}
}

func TestMirrorWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []corev1.Pod{pod("a", "1")}}
		s.mu.Lock() // it does not answer yet
		m, changes := follow(t, s)
		if m.Synced() || m.One() != nil {
			t.Error("synced before the server has answered")
		}
		s.mu.Unlock()
		expect(t, m, "a@1")
		if !m.Synced() || m.Err() != nil || m.One().Name != "a" {
			t.Errorf("synced %v, error %v, one %v", m.Synced(), m.Err(), m.One())
		}
		before := changes()
		newer, other := pod("a", "2"), pod("b", "3")
		s.current().Modify(&newer)
		expect(t, m, "a@2")
		s.current().Add(&other)
		expect(t, m, "a@2", "b@3")
		s.current().Delete(&newer)
		expect(t, m, "b@3")
		s.current().Delete(&other)
		expect(t, m)
		if got := changes() - before; got != 4 {
			t.Errorf("%d changes told, want 4", got)
		}
		if m.One() != nil || !m.Synced() {
			t.Errorf("empty: one %v, synced %v", m.One(), m.Synced())
		}
		for _, o := range s.asked() {
			if o.FieldSelector != "metadata.name=a" || o.LabelSelector != "name=multus" {
				t.Errorf("asked without the selectors: %+v", o)
			}
			if o.ResourceVersion == "0" && o.SendInitialEvents == nil {
				t.Errorf("asked for what the server has in its cache: %+v", o)
			}
		}
	})
}

// A watch that ends or breaks is resumed, with what has changed meanwhile.
func TestMirrorResumes(t *testing.T) {
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	tests := map[string]func(s *server){
		"the server closes the watch":             func(s *server) { s.current().Stop() },
		"the version is too old to go on":         func(s *server) { s.current().Error(expired) },
		"the server is away for a while":          func(s *server) { away(s, 5*time.Second) },
		"the server is away for longer than that": func(s *server) { away(s, 3*time.Minute) },
	}
	for name, breaks := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{pods: []corev1.Pod{pod("a", "1")}}
				m, _ := follow(t, s)
				expect(t, m, "a@1")
				s.set(func(s *server) { s.pods = []corev1.Pod{pod("a", "9")} })
				began := time.Now()
				breaks(s)
				for s.lastErr() != nil {
					time.Sleep(100 * time.Millisecond)
				}
				back := time.Since(began)
				time.Sleep(2 * time.Second)
				// A watch resumed from its version gets what came after it.
				newest := pod("a", "10")
				s.current().Modify(&newest)
				expect(t, m, "a@10")
				if m.Err() != nil || back > 3*time.Minute+time.Second {
					t.Errorf("error %v, back after %s", m.Err(), back)
				}
			})
		})
	}
}

// away ends the watch and answers nothing for that long.
func away(s *server, d time.Duration) {
	s.set(func(s *server) { s.listErr, s.watchErr = errAway, errAway })
	s.current().Stop()
	time.AfterFunc(d, func() { s.set(func(s *server) { s.listErr, s.watchErr = nil, nil }) })
}

func (s *server) lastErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listErr
}

// While the server is away, the Mirror keeps what it has and says why.
func TestMirrorTellsThatTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []corev1.Pod{pod("a", "1")}}
		m, changes := follow(t, s)
		expect(t, m, "a@1")
		before := changes()
		away(s, 10*time.Second)
		time.Sleep(5 * time.Second)
		if !errors.Is(m.Err(), errAway) || changes() == before {
			t.Errorf("error %v, %d changes told", m.Err(), changes()-before)
		}
		expect(t, m, "a@1")
		time.Sleep(10 * time.Second)
		expect(t, m, "a@1")
		if m.Err() != nil {
			t.Errorf("the server is back: %v", m.Err())
		}
	})
}

// A server that never answered is told too: somebody waits for it.
func TestMirrorTellsTheFirstError(t *testing.T) {
	for name, s := range map[string]*server{
		"away":                      {listErr: errAway, watchErr: errAway},
		"forbidden":                 {listErr: errForbidden, watchErr: errForbidden},
		"only listing is forbidden": {listErr: errForbidden, watchErr: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, changes := follow(t, s)
				time.Sleep(5 * time.Second)
				if m.Synced() || m.Err() == nil || changes() == 0 {
					t.Errorf("synced %v, error %v, %d changes told", m.Synced(), m.Err(), changes())
				}
			})
		})
	}
}

// Where watching is forbidden, the Mirror lists once a second.
func TestMirrorPolls(t *testing.T) {
	notSupported := apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "pods"}, "watch")
	for name, watchErr := range map[string]error{"forbidden": errForbidden, "not supported": notSupported} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{pods: []corev1.Pod{pod("a", "1")}, watchErr: watchErr}
				m, changes := follow(t, s)
				expect(t, m, "a@1")
				before := changes()
				time.Sleep(5 * pollInterval)
				if told := changes() - before; told > 0 {
					t.Errorf("the same list was told %d times", told)
				}
				s.set(func(s *server) { s.pods = []corev1.Pod{pod("a", "2")} })
				time.Sleep(pollInterval)
				expect(t, m, "a@2")
				s.set(func(s *server) { s.listErr = errAway })
				time.Sleep(pollInterval)
				expect(t, m, "a@2")
				if !errors.Is(m.Err(), errAway) {
					t.Errorf("error %v", m.Err())
				}
				before = changes()
				s.set(func(s *server) { s.listErr = nil })
				time.Sleep(pollInterval)
				expect(t, m, "a@2")
				if changes() == before {
					t.Error("that the server is back was not told")
				}
				s.set(func(s *server) { s.listErr, s.pods, s.lists = nil, nil, 0 })
				time.Sleep(10 * pollInterval)
				expect(t, m)
				if m.Err() != nil || !m.Synced() || s.listed() < 9 || s.listed() > 11 {
					t.Errorf("error %v, synced %v, %d lists in ten seconds", m.Err(), m.Synced(), s.listed())
				}
			})
		})
	}
}

// A right to watch that is taken away in mid-run ends in polling.
func TestMirrorPollsOnceWatchingIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []corev1.Pod{pod("a", "1")}}
		m, _ := follow(t, s)
		expect(t, m, "a@1")
		s.set(func(s *server) { s.watchErr, s.pods = errForbidden, []corev1.Pod{pod("a", "2")} })
		s.current().Stop()
		time.Sleep(5 * time.Second)
		expect(t, m, "a@2")
	})
}

func TestMirrorEnds(t *testing.T) {
	for name, s := range map[string]*server{
		"while it watches":          {},
		"while it polls":            {watchErr: errForbidden},
		"while the server is away":  {listErr: errAway, watchErr: errAway},
		"while nothing can be read": {listErr: errForbidden, watchErr: errForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				Follow[corev1.Pod](ctx, &wg, s, metav1.ListOptions{}, func() {})
				time.Sleep(3 * time.Second)
				stopped := time.Now()
				cancel()
				wg.Wait()
				if took := time.Since(stopped); took != 0 {
					t.Errorf("ended after %s", took)
				}
			})
		})
	}
}

// A trouble that lasts is told once, and is over when the watch goes on.
func TestMirrorTellsATroubleOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []corev1.Pod{pod("a", "1")}}
		m, changes := follow(t, s)
		expect(t, m, "a@1")
		before := changes()
		s.set(func(s *server) { s.listErr, s.watchErr = errAway, errAway })
		s.current().Stop()
		time.Sleep(10 * time.Second)
		if told := changes() - before; told != 1 || m.Err() == nil {
			t.Errorf("told %d times, error %v", told, m.Err())
		}
		s.set(func(s *server) { s.listErr, s.watchErr = nil, nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if m.Err() != nil {
			t.Errorf("the watch goes on: %v", m.Err())
		}
	})
}
