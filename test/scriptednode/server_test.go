package scriptednode_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// controlPlane starts one API server for all tests of the package, when the
// first of them needs it.
type controlPlane struct {
	once   sync.Once
	dir    string
	server *apiserver.Server
	config *rest.Config
	err    error

	mu   sync.Mutex
	used map[string]int
}

// unique makes a suffix that no site had yet: with -count a test meets its own
// objects again.
func (c *controlPlane) unique(suffix string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == nil {
		c.used = map[string]int{}
	}
	c.used[suffix]++
	if n := c.used[suffix]; n > 1 {
		return fmt.Sprintf("%s-%d", suffix, n)
	}
	return suffix
}

func (c *controlPlane) start() {
	c.once.Do(func() { c.err = c.boot(context.Background()) })
}

func (c *controlPlane) boot(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", "scriptednode"); err != nil {
		return err
	}
	if c.server, err = apiserver.Start(ctx, filepath.Join(c.dir, "server"), os.Stderr); err != nil {
		return err
	}
	if c.config, err = c.server.Config(); err != nil {
		return err
	}
	return scriptednode.InstallCRD(ctx, c.config)
}

func (c *controlPlane) stop() error {
	if c.server != nil && c.err == nil {
		c.server.Stop()
	}
	return os.RemoveAll(c.dir)
}

// plane is the package's one server; TestMain stops it.
var plane controlPlane

func TestMain(m *testing.M) {
	code := m.Run()
	if err := plane.stop(); err != nil {
		code = max(code, 1)
	}
	os.Exit(code)
}

// within is how long a test waits for what must come. It is far above what a
// busy machine needs, and no test passes because of it.
const within = 30 * time.Second

// played is a site of its own with its node running.
type played struct {
	t      *testing.T
	ctx    context.Context
	client kubernetes.Interface
	config *rest.Config
	site   scriptednode.Site
	node   *scriptednode.Node
}

// play applies a site named after the test and starts its node.
func play(t *testing.T, suffix string, options scriptednode.Options, change ...func(*scriptednode.Site)) *played {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	plane.start()
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	site := scriptednode.Named(plane.unique(suffix))
	for _, f := range change {
		f(&site)
	}
	p := &played{t: t, ctx: t.Context(), config: plane.config, site: site, client: kubernetes.NewForConfigOrDie(plane.config)}
	if err := site.Apply(p.ctx, p.config); err != nil {
		t.Fatal(err)
	}
	p.start(options)
	return p
}

func (p *played) start(options scriptednode.Options) {
	p.t.Helper()
	node, err := scriptednode.New(p.config, p.site, options)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := node.Start(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	p.node = node
	p.t.Cleanup(func() {
		node.Stop()
		if err := node.Err(); err != nil {
			p.t.Error(err)
		}
		if p.t.Failed() {
			for _, entry := range node.Journal() {
				p.t.Log(entry)
			}
		}
	})
}

// create creates the canary and gives its UID.
func (p *played) create() *corev1.Pod {
	p.t.Helper()
	pod, err := p.site.CanaryPod()
	if err != nil {
		p.t.Fatal(err)
	}
	pod, err = p.client.CoreV1().Pods(pod.Namespace).Create(p.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return pod
}

// until waits until the canary is as done wants it.
func (p *played) until(what string, done func(*corev1.Pod) bool) *corev1.Pod {
	p.t.Helper()
	var last *corev1.Pod
	p.eventually(what, func() (bool, error) {
		pod, err := p.client.CoreV1().Pods(p.site.Namespace).Get(p.ctx, p.site.Canary, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			pod, err = nil, nil
		}
		if err != nil {
			return false, err
		}
		last = pod
		return done(pod), nil
	})
	return last
}

// eventually looks again and again until done, and fails the test otherwise.
func (p *played) eventually(what string, done func() (bool, error)) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := done()
		if ok {
			return
		}
		last = err
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("%s: did not come: %v", what, errors.Join(last, ctx.Err()))
		}
	}
}

func phase(want corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == want }
}

func gone(pod *corev1.Pod) bool { return pod == nil }

// events are the events of one UID, oldest first as the server lists them.
func (p *played) events(pod *corev1.Pod) []corev1.Event {
	p.t.Helper()
	list, err := p.client.CoreV1().Events(p.site.Namespace).List(p.ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		p.t.Fatal(err)
	}
	return list.Items
}

// event waits for an event of a reason.
func (p *played) event(pod *corev1.Pod, reason string, also func(corev1.Event) bool) corev1.Event {
	p.t.Helper()
	var found corev1.Event
	p.eventually("event "+reason, func() (bool, error) {
		for _, e := range p.events(pod) {
			if e.Reason == reason && (also == nil || also(e)) {
				found = e
				return true, nil
			}
		}
		return false, nil
	})
	return found
}
