package cluster

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// skewTolerated is what a request's duration and times without fractions make
// of two clocks that agree.
const skewTolerated = 3 * time.Second

// Clock tells the API server's time, as far as its answers have told it. What
// happened on the cluster is timed there, so ages must be taken by its clock: a
// laptop that is minutes ahead would take a young daemon for an old one.
type Clock struct {
	local clock.PassiveClock

	mu     sync.Mutex
	offset time.Duration
}

func newClock() *Clock { return &Clock{local: clock.RealClock{}} }

// Now is the present time by the server's clock, or by this machine's where no
// answer has come yet.
func (c *Clock) Now() time.Time { return c.local.Now().Add(c.Offset()) }

// Offset is how far the server's clock is ahead of this machine's; zero where
// they agree as far as can be seen.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// hear takes the time of an answer that came between two moments of this
// machine's clock. Dates of HTTP have whole seconds, cut off.
func (c *Clock) hear(date string, asked, answered time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		return
	}
	var offset time.Duration
	switch {
	case server.Add(skewTolerated).Before(asked):
		offset = server.Sub(asked)
	case server.After(answered.Add(skewTolerated)):
		offset = server.Sub(answered)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
}

// wrap hears the time of every answer.
func (c *Clock) wrap(next http.RoundTripper) http.RoundTripper { return &timed{next, c} }

type timed struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (t *timed) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := t.clock.local.Now()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.clock.hear(response.Header.Get("Date"), asked, t.clock.local.Now())
	}
	return response, err
}

// WrappedRoundTripper lets apimachinery see what is wrapped.
func (t *timed) WrappedRoundTripper() http.RoundTripper { return t.next }
