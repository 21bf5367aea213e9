package scriptednode

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// LogRequest is one request for a container's log that reached the node.
type LogRequest struct {
	At        time.Time
	Pod       types.NamespacedName
	UID       types.UID // empty where the Pod is not on the node
	Container string
	Query     url.Values
	Code      int
}

// LogRequests are the log requests that reached the node, in order.
func (n *Node) LogRequests() []LogRequest {
	n.logs.mu.Lock()
	defer n.logs.mu.Unlock()
	return slices.Clone(n.logs.requests)
}

// RefuseLogs answers log requests from now on with status 500 and this text;
// empty serves them again.
func (n *Node) RefuseLogs(text string) {
	n.logs.mu.Lock()
	defer n.logs.mu.Unlock()
	n.logs.refuse = text
}

// SlowLogs delays the answer to log requests from now on.
func (n *Node) SlowLogs(delay time.Duration) {
	n.logs.mu.Lock()
	defer n.logs.mu.Unlock()
	n.logs.delay = delay
}

// logError is an answer other than a log.
type logError struct {
	code int
	text string
}

// Error is the kubelet's text.
func (e *logError) Error() string { return e.text }

func (b *logBook) serve(w http.ResponseWriter, r *http.Request) {
	name := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	container := r.PathValue("container")
	b.mu.Lock()
	delay := b.delay
	b.mu.Unlock()
	if sleep(r.Context(), delay) != nil {
		return
	}
	uid, stream, err := b.find(name, container, r.URL.Query())
	options, optionErr := parseLogOptions(r.URL.Query(), time.Now())
	if err == nil {
		err = optionErr
	}
	code := http.StatusOK
	var answer *logError
	if errors.As(err, &answer) {
		code = answer.code
	}
	b.mu.Lock()
	b.requests = append(b.requests, LogRequest{At: time.Now(), Pod: name, UID: uid, Container: container, Query: r.URL.Query(), Code: code})
	b.mu.Unlock()
	if code != http.StatusOK {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer.text)
		return
	}
	options.copy(r.Context(), flusher{w, http.NewResponseController(w)}, stream)
}

// logOptions are the query of a log request.
type logOptions struct {
	follow, timestamps bool
	since              time.Time
	tail, limit        int64 // negative: no limit
}

func parseLogOptions(query url.Values, now time.Time) (logOptions, error) {
	o := logOptions{follow: query.Get("follow") == "true", timestamps: query.Get("timestamps") == "true", tail: -1, limit: -1}
	bad := &logError{http.StatusBadRequest, `{"message": "Unable to decode query."}`}
	for key, into := range map[string]*int64{"tailLines": &o.tail, "limitBytes": &o.limit} {
		if text := query.Get(key); text != "" {
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return o, bad
			}
			*into = number
		}
	}
	if text := query.Get("sinceSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, bad
		}
		o.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return o, bad
		}
		o.since = since
	}
	return o, nil
}

// copy writes what the options choose, and while following, what comes later.
func (o logOptions) copy(ctx context.Context, w io.Writer, stream *logStream) {
	// kubelet answers before there is anything to say.
	_, _ = w.Write(nil)
	lines, closed, changed := stream.from(0)
	index := len(lines)
	if o.tail >= 0 && int64(len(lines)) > o.tail {
		lines = lines[int64(len(lines))-o.tail:]
	}
	for {
		for _, line := range lines {
			if !o.write(w, line) || o.limit == 0 {
				return
			}
		}
		if closed || !o.follow {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		lines, closed, changed = stream.from(index)
		index += len(lines)
	}
}

// write writes one line if it is young enough, cut at what is left of the
// limit; the limit is counted down in o by the caller's copy.
func (o *logOptions) write(w io.Writer, line logLineAt) bool {
	if line.at.Before(o.since) {
		return true
	}
	text := line.text + "\n"
	if o.timestamps {
		// kubelet prints RFC3339 with nine fixed digits.
		text = line.at.Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text
	}
	if o.limit >= 0 {
		text = text[:min(int64(len(text)), o.limit)]
		o.limit -= int64(len(text))
	}
	_, err := io.WriteString(w, text)
	return err == nil
}

// flusher sends each line at once, so that followers see it when it is printed.
type flusher struct {
	io.Writer
	controller *http.ResponseController
}

// Write writes and flushes.
func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.controller.Flush()
}
