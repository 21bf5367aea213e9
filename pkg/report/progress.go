package report

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// Progress tells a run's steps to a person or a machine, on standard error.
type Progress interface {
	// Note tells one step.
	Note(note canary.Note)
	// Close ends the telling, before the result is printed.
	Close()
}

// Quiet tells nothing.
type Quiet struct{}

// Note implements Progress.
func (Quiet) Note(canary.Note) {}

// Close implements Progress.
func (Quiet) Close() {}

// Lines tells each step in a line of its own.
type Lines struct{ Out io.Writer }

// Note implements Progress.
func (l Lines) Note(note canary.Note) {
	fmt.Fprintf(l.Out, "%s  %-8s %s\n", note.Time.UTC().Format(time.TimeOnly), note.Step, Line(note.Text))
}

// Close implements Progress.
func (Lines) Close() {}

// Events tells each step as one JSON object a line.
type Events struct{ Out io.Writer }

// Note implements Progress.
func (e Events) Note(note canary.Note) {
	// Text and times cannot fail to marshal, and progress is not worth an error.
	_ = json.NewEncoder(e.Out).Encode(struct {
		Time    time.Time `json:"time"`
		Step    string    `json:"step"`
		Text    string    `json:"text"`
		Waiting bool      `json:"waiting,omitempty"`
	}{note.Time.UTC(), string(note.Step), Clean(note.Text), note.Passing})
}

// Close implements Progress.
func (Events) Close() {}

// Live keeps what is being waited for on the last line of a terminal, with the
// time it has taken; what is done scrolls up.
type Live struct {
	out   io.Writer
	width func() int
	now   func() time.Time

	mu      sync.Mutex
	waiting string
	since   time.Time
	stop    chan struct{}
	done    chan struct{}
}

// liveRefresh is how often the time on the waiting line moves on.
const liveRefresh = 500 * time.Millisecond

// NewLive begins a live view on a terminal of the width that width gives.
func NewLive(out io.Writer, width func() int, now func() time.Time) *Live {
	l := &Live{out: out, width: width, now: now, stop: make(chan struct{}), done: make(chan struct{})}
	go l.refresh()
	return l
}

// Note implements Progress.
func (l *Live) Note(note canary.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	if !note.Passing {
		fmt.Fprintf(l.out, "%s  %-8s %s\n", note.Time.UTC().Format(time.TimeOnly), note.Step, Line(note.Text))
		l.waiting = ""
		return
	}
	l.waiting, l.since = fmt.Sprintf("%-8s %s", note.Step, Line(note.Text)), l.now()
	l.draw()
}

// Close implements Progress.
func (l *Live) Close() {
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	l.waiting = ""
}

func (l *Live) refresh() {
	defer close(l.done)
	tick := time.NewTicker(liveRefresh)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			l.mu.Lock()
			l.clear()
			l.draw()
			l.mu.Unlock()
		}
	}
}

func (l *Live) clear() {
	if l.waiting != "" {
		fmt.Fprint(l.out, "\r"+ansi.EraseEntireLine)
	}
}

// draw never wraps: a wrapped line could not be taken back.
func (l *Live) draw() {
	if l.waiting == "" {
		return
	}
	line := fmt.Sprintf("  %4s    %s", l.now().Sub(l.since).Round(time.Second), l.waiting)
	fmt.Fprint(l.out, ansi.Truncate(line, max(20, l.width()-1), "…"))
}
