//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxy stands between the binary and the API server. It passes everything on,
// keeps what was asked, and lets a test step in at the very request it is about.
type proxy struct {
	t       *testing.T
	server  *httptest.Server
	forward http.Handler

	mu    sync.Mutex
	rules []*rule
	asked []asked
}

// asked is one request as it came.
type asked struct {
	method string
	url    url.URL
	agent  string
	body   []byte
}

// String is one line for a failing test.
func (a asked) String() string { return a.method + " " + a.url.RequestURI() }

func (a asked) watch() bool { return a.url.Query().Get("watch") == "true" }

// object decodes a request's body, be it JSON or protobuf.
func (a asked) object(t *testing.T) runtime.Object {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(a.body, nil, nil)
	if err != nil {
		t.Fatalf("%s: its body cannot be read: %v", a, err)
	}
	return object
}

// deleteOptions decodes the body of a deletion. Its kind is DeleteOptions of
// whatever group is deleted from.
func (a asked) deleteOptions(t *testing.T) *metav1.DeleteOptions {
	t.Helper()
	options, ok := a.object(t).(*metav1.DeleteOptions)
	if !ok {
		t.Fatalf("%s: its body is no DeleteOptions", a)
	}
	return options
}

// match chooses requests.
type match func(asked) bool

// play answers a request in the API server's place; pass hands it on.
type play func(w http.ResponseWriter, r *http.Request, pass http.Handler)

type rule struct {
	match match
	play  play
	left  int
}

// behindProxy makes the site's runs go through a proxy from now on.
func (s *site) behindProxy() *proxy {
	s.t.Helper()
	config, err := s.server.Config()
	check(s.t, err)
	target, err := url.Parse(config.Host)
	check(s.t, err)
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: config.TLSClientConfig})
	check(s.t, err)
	p := &proxy{t: s.t, forward: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches and logs are passed on as they come
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      nil,
	}}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = quiet()
	p.server.StartTLS()
	s.t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	s.kubeconfig = s.writeKubeconfig(
		&clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: ca},
		&clientcmdapi.AuthInfo{Token: config.BearerToken})
	return p
}

// writeKubeconfig writes a kubeconfig of one context and gives its path.
func (s *site) writeKubeconfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) string {
	s.t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"], kubeconfig.AuthInfos["test"] = cluster, user
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	check(s.t, clientcmd.WriteToFile(*kubeconfig, path))
	return path
}

// ServeHTTP keeps the request and plays the first rule that is for it.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := asked{method: r.Method, url: *r.URL, agent: r.UserAgent(), body: body}
	if play := p.note(a); play != nil {
		play(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *proxy) note(a asked) play {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, a)
	for _, rule := range p.rules {
		if rule.left != 0 && rule.match(a) {
			rule.left--
			return rule.play
		}
	}
	return nil
}

// on plays the next times requests that match (below zero: all of them).
func (p *proxy) on(times int, match match, play play) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{match: match, play: play, left: times})
}

// allPlayed checks that every rule had its turn: else a test has tested nothing.
func (p *proxy) allPlayed(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, rule := range p.rules {
		if rule.left > 0 {
			t.Errorf("rule %d was not met %d times more", i+1, rule.left)
		}
	}
}

// cut gives a way to break the watch or log that the next matching request opens.
func (p *proxy) cut(match match) (cut func()) {
	broken := make(chan struct{})
	p.on(1, match, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-broken:
				cancel()
			case <-ctx.Done():
			}
		}()
		pass.ServeHTTP(w, r.WithContext(ctx))
		panic(http.ErrAbortHandler)
	})
	return sync.OnceFunc(func() { close(broken) })
}

// requests are all that match, in order.
func (p *proxy) requests(match match) []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.asked), func(a asked) bool { return !match(a) })
}

// tally counts requests by verb and path, for a failing test and for the record.
func tally(requests []asked) string {
	counts := map[string]int{}
	for _, a := range requests {
		verb := a.method
		if a.watch() {
			verb = "WATCH"
		}
		counts[fmt.Sprintf("%-6s %s", verb, a.url.Path)]++
	}
	lines := make([]string, 0, len(counts))
	for line, count := range counts {
		lines = append(lines, strconv.Itoa(count)+" x "+line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
