//go:build integration

package integration

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// to matches a method and the end of a path.
func to(method, path string) match {
	return func(a asked) bool {
		return a.method == method && strings.HasSuffix(a.url.Path, path) && a.url.Query().Get("dryRun") == "" && !a.watch()
	}
}

// deletes, creates and reads match what a retest does to the canary's Pod.
func (s *site) deletes() match { return to(http.MethodDelete, "/pods/"+s.Canary) }

func (s *site) creates() match {
	return to(http.MethodPost, "/api/v1/namespaces/"+s.Namespace+"/pods")
}
func (s *site) reads() match { return to(http.MethodGet, "/pods/"+s.Canary) }

// dryRuns matches what is only tried.
func dryRuns(a asked) bool { return a.url.Query().Get("dryRun") != "" }

// scans matches the look over the Pods of all namespaces.
func scans(a asked) bool {
	return a.method == http.MethodGet && a.url.Path == "/api/v1/pods" && !a.watch()
}

// first does something of the test's own, then passes the request on.
func first(do func()) play {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		do()
		pass.ServeHTTP(w, r)
	}
}

// then passes the request on and does something before its answer goes back.
func then(do func()) play {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		answer := httptest.NewRecorder()
		pass.ServeHTTP(answer, r)
		do()
		copyAnswer(w, answer)
	}
}

func copyAnswer(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// loseAnswer lets the server act and breaks the connection then.
func loseAnswer(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// loseRequest breaks the connection before the server hears of it.
func loseRequest(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// refuse answers with a Status of the given code.
func refuse(code int, reason metav1.StatusReason, message string) play {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		})
	}
}

// held is a request that waits for the test.
type held struct {
	reached, release chan struct{}
	once             sync.Once
}

// hold stops the next request that matches until the test lets go, or until the
// client gives up.
func (p *proxy) hold(match match) *held {
	h := &held{reached: make(chan struct{}), release: make(chan struct{})}
	p.on(1, match, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		close(h.reached)
		select {
		case <-h.release:
			pass.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	p.t.Cleanup(h.letGo)
	return h
}

// holdAnswer lets the server act at once and keeps the answer back.
func (p *proxy) holdAnswer(match match) *held {
	h := &held{reached: make(chan struct{}), release: make(chan struct{})}
	p.on(1, match, then(func() {
		close(h.reached)
		<-h.release
	}))
	p.t.Cleanup(h.letGo)
	return h
}

func (h *held) letGo() { h.once.Do(func() { close(h.release) }) }

// wait waits until the run has come to the request.
func (h *held) wait(p *process) {
	p.t.Helper()
	select {
	case <-h.reached:
	case <-p.ended:
		p.t.Fatalf("the run ended before the request:\n%s", p.stderr.String())
	}
}
