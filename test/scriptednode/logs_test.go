package scriptednode

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testLogs has one Pod with a daemon that has run twice and a container that
// has not started.
func testLogs() (*logBook, podID) {
	book, id := newLogBook(), testID()
	book.admit(id, map[string]string{"daemon": "", "late": "PodInitializing", "puller": "PodInitializing"})
	book.open(id, "daemon")
	book.print(id, "daemon", noon, "first run")
	book.close(id, "daemon")
	book.open(id, "daemon")
	for i, line := range []string{"one", "two", "three"} {
		book.print(id, "daemon", noon.Add(time.Duration(i)*time.Second), line)
	}
	book.waits(id, "puller", "ImagePullBackOff")
	return book, id
}

func serveLogs(book *logBook) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", book.serve)
	return mux
}

func TestLogRequests(t *testing.T) {
	const base = "/containerLogs/downloads/vlan50-canary/"
	for name, row := range map[string]struct {
		path string
		code int
		body string
	}{
		"whole log":               {base + "daemon", 200, "one\ntwo\nthree\n"},
		"last lines":              {base + "daemon?tailLines=2", 200, "two\nthree\n"},
		"no lines":                {base + "daemon?tailLines=0", 200, ""},
		"since a time":            {base + "daemon?sinceTime=2026-01-15T12:00:01Z", 200, "two\nthree\n"},
		"cut at a size":           {base + "daemon?limitBytes=6", 200, "one\ntw"},
		"size larger than log":    {base + "daemon?limitBytes=600", 200, "one\ntwo\nthree\n"},
		"with times":              {base + "daemon?timestamps=true&tailLines=1", 200, "2026-01-15T12:00:02.000000000Z three\n"},
		"run before":              {base + "daemon?previous=true", 200, "first run\n"},
		"unknown Pod":             {"/containerLogs/downloads/other/daemon", 404, `pod "other" does not exist`},
		"unknown container":       {base + "other", 404, `container "other" not found in pod "vlan50-canary"`},
		"container not started":   {base + "late", 400, `container "late" in pod "vlan50-canary" is waiting to start: PodInitializing`},
		"container without image": {base + "puller", 400, `container "puller" in pod "vlan50-canary" is waiting to start: trying and failing to pull image`},
		"no run before":           {base + "late?previous=true", 400, `previous terminated container "late" in pod "vlan50-canary" not found`},
		"query does not parse":    {base + "daemon?tailLines=many", 400, `{"message": "Unable to decode query."}`},
	} {
		t.Run(name, func(t *testing.T) {
			book, _ := testLogs()
			response := httptest.NewRecorder()
			serveLogs(book).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, row.path, http.NoBody))
			if response.Code != row.code {
				t.Errorf("status %d, want %d", response.Code, row.code)
			}
			if diff := cmp.Diff(row.body, response.Body.String()); diff != "" {
				t.Error(diff)
			}
			if len(book.requests) != 1 || book.requests[0].Code != row.code {
				t.Errorf("recorded %+v", book.requests)
			}
		})
	}
}

func TestRefusedLogs(t *testing.T) {
	book, id := testLogs()
	book.refuse = "runtime is down"
	response := httptest.NewRecorder()
	serveLogs(book).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/downloads/vlan50-canary/daemon", http.NoBody))
	if response.Code != http.StatusInternalServerError || response.Body.String() != "runtime is down" {
		t.Errorf("%d %s", response.Code, response.Body)
	}
	if got := book.requests[0]; got.UID != id.uid || got.Container != "daemon" {
		t.Errorf("recorded %+v", got)
	}
}

// A follower gets each line when it is printed, and the end when the container
// ends or the Pod is gone.
func TestFollow(t *testing.T) {
	for name, end := range map[string]func(*logBook, podID){
		"container ends": func(b *logBook, id podID) { b.close(id, "daemon") },
		"Pod is gone":    func(b *logBook, id podID) { b.forget(id) },
	} {
		t.Run(name, func(t *testing.T) {
			book, id := testLogs()
			_, stream, err := book.find(id.NamespacedName, "daemon", url.Values{})
			if err != nil {
				t.Fatal(err)
			}
			options, err := parseLogOptions(url.Values{"follow": {"true"}, "tailLines": {"1"}}, noon)
			if err != nil {
				t.Fatal(err)
			}
			reader, writer := io.Pipe()
			go func() {
				options.copy(t.Context(), writer, stream)
				writer.Close()
			}()
			expect := func(want string) {
				t.Helper()
				got := make([]byte, len(want))
				if _, err := io.ReadFull(reader, got); err != nil || string(got) != want {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
			}
			expect("three\n")
			book.print(id, "daemon", noon, "four")
			expect("four\n")
			end(book, id)
			if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
				t.Errorf("after the end: %q, %v", rest, err)
			}
		})
	}
}

func TestFollowerEndsWithItsRequest(t *testing.T) {
	book, id := testLogs()
	_, stream, err := book.find(id.NamespacedName, "daemon", url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	logOptions{follow: true, tail: -1, limit: -1}.copy(ctx, &out, stream)
	if out.String() != "one\ntwo\nthree\n" {
		t.Errorf("got %q", out.String())
	}
}

// The API server asks by name: after a recreation the newest UID answers.
func TestLogsAreThoseOfTheNewestUID(t *testing.T) {
	book, old := testLogs()
	id := old
	id.uid = "99999999-8888-4777-8666-000000000000"
	book.admit(id, map[string]string{"daemon": "ContainerCreating"})
	book.forget(old)
	uid, _, err := book.find(id.NamespacedName, "daemon", url.Values{})
	if uid != id.uid || err == nil {
		t.Errorf("answered for %s, %v", uid, err)
	}
}
