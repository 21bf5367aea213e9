//go:build integration

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// audited is one request in the API server's audit log.
type audited struct {
	Verb             string
	RequestURI       string
	UserAgent        string
	Stage            string
	ImpersonatedUser *struct{ Username string }
	ObjectRef        *struct {
		Resource, Subresource, APIGroup, Namespace, Name string
	}
}

// String tells requests of one kind apart, whatever version they ask for.
func (a audited) String() string {
	location, err := url.Parse(a.RequestURI)
	if err != nil {
		return a.RequestURI
	}
	query := location.Query()
	for _, key := range []string{"resourceVersion", "resourceVersionMatch", "timeoutSeconds", "timeout", "allowWatchBookmarks", "sendInitialEvents"} {
		query.Del(key)
	}
	location.RawQuery = query.Encode()
	return fmt.Sprintf("%-7s%s", a.Verb, location)
}

// audit is what a user has asked the server for.
func (s *site) audit(user string) []audited {
	s.t.Helper()
	file, err := os.Open(s.server.AuditLog())
	check(s.t, err)
	defer file.Close()
	var found []audited
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a audited
		check(s.t, json.Unmarshal(lines.Bytes(), &a))
		// A watch is logged when it begins and when it ends, all else when it ends.
		began := a.Verb == "watch" || strings.Contains(a.RequestURI, "follow=true")
		if a.ImpersonatedUser != nil && strings.HasPrefix(a.ImpersonatedUser.Username, user) && (a.Stage == "ResponseStarted") == began {
			found = append(found, a)
		}
	}
	check(s.t, lines.Err())
	return found
}

// A whole retest, with seconds of waiting at the gate and for the canary: no
// discovery, and nothing is asked for again while a watch tells of it.
func TestRequestsOfARetest(t *testing.T) {
	t.Parallel()
	s := newSite(t, "requests", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.Pass(), scriptednode.Script{Name: "slow", Steps: []scriptednode.Step{
		{Do: scriptednode.Sandbox{}}, {Do: scriptednode.Guard{For: 3 * time.Second}}, {Do: scriptednode.Main{}},
	}}}})
	s.createCanary(corev1.PodSucceeded)
	s.asUser("counted", s.published())
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: 3 * time.Second}))
	s.retest().expect(t, 0, "pass", "ok")

	requests := s.audit("counted")
	counts := map[string]int{}
	for _, a := range requests {
		if a.ObjectRef == nil {
			t.Errorf("discovery, or another path that is no resource: %s %s", a.Verb, a.RequestURI)
			continue
		}
		if !strings.HasPrefix(a.UserAgent, "kubectl-vlan50/") {
			t.Errorf("user agent %q", a.UserAgent)
		}
		if a.ObjectRef.Resource != "selfsubjectaccessreviews" {
			counts[a.String()]++
		}
	}
	lines := make([]string, 0, len(counts))
	for line, count := range counts {
		lines = append(lines, fmt.Sprintf("%d x %s", count, line))
		// Once before the first change and once before the new Pod is created; what
		// is not watched also before and after the attempt.
		limit := 2
		if strings.Contains(line, "/network-attachment-definitions/") || strings.Contains(line, "/configmaps/") {
			limit = 5
		}
		if count > limit {
			t.Errorf("%d times %s", count, line)
		}
	}
	slices.Sort(lines)
	t.Logf("%d requests in all, %d of them about rights:\n%s", len(requests), len(requests)-sum(counts), strings.Join(lines, "\n"))
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// The new Pod is judged from its watch alone: reading it is of no use.
func TestVerdictNeedsNoReadOfThePod(t *testing.T) {
	t.Parallel()
	s := newSite(t, "watched", scriptednode.Options{})
	p := s.behindProxy()
	created := false
	p.on(1, s.creates(), first(func() { created = true }))
	p.on(-1, func(a asked) bool { return created && s.reads()(a) }, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "no reads"))
	s.retest("-f", s.manifest).expect(t, 0, "pass", "ok")
}

// A server that cannot answer is asked again at a bearable pace.
func TestBrokenServerIsNotHammered(t *testing.T) {
	t.Parallel()
	s := newSite(t, "hammered", scriptednode.Options{})
	for name, play := range map[string]play{
		"server errors":     refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: no leader"),
		"too many requests": refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down"),
		"watches that end at once": func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			if r.URL.Query().Get("watch") != "true" {
				pass.ServeHTTP(w, r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.behindProxy()
			selected := func(a asked) bool {
				return strings.HasSuffix(a.url.Path, "/daemonsets") && a.url.Query().Get("fieldSelector") != ""
			}
			p.on(-1, selected, play)
			out := s.retest("-f", s.manifest, "--timeout", "6s")
			if out.code != 4 && out.code != 0 {
				t.Errorf("exit code %d\n%s", out.code, out.stderr)
			}
			if requests := p.requests(selected); len(requests) > 30 {
				t.Errorf("%d requests in six seconds:\n%s", len(requests), tally(requests))
			}
		})
	}
}

// Watches and logs that break all the time, and answers that take their time,
// cost time and nothing else.
func TestBadConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, "bad-line", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	streams := func(a asked) bool { return a.watch() || logs(a) }
	for name, rules := range map[string]func(p *proxy){
		"streams break": func(p *proxy) {
			p.on(-1, streams, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				ctx, cancel := context.WithTimeout(r.Context(), 400*time.Millisecond)
				defer cancel()
				pass.ServeHTTP(w, r.WithContext(ctx))
				panic(http.ErrAbortHandler)
			})
		},
		"watches have expired": func(p *proxy) {
			p.on(10, func(a asked) bool { return a.watch() }, refuse(http.StatusGone, metav1.StatusReasonExpired, "too old resource version"))
		},
		"answers are slow": func(p *proxy) {
			p.on(-1, func(a asked) bool { return !streams(a) }, first(func() { time.Sleep(200 * time.Millisecond) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.behindProxy()
			rules(p)
			check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: time.Second}))
			document := s.retest().expect(t, 0, "pass", "ok")
			if slices.Contains(s.plain(), document.UID) {
				t.Error("the canary was made before the conf")
			}
			p.checkDeletions(t)
		})
	}
}
