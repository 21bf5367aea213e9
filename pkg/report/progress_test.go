package report_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

func TestLinesTellEachStep(t *testing.T) {
	var out bytes.Buffer
	var progress report.Progress = report.Lines{Out: &out}
	progress.Note(canary.Note{Time: noon.In(time.FixedZone("", 3600)), Step: canary.StepGate, Text: "waiting: a\nb", Passing: true})
	progress.Note(canary.Note{Time: noon.Add(time.Second), Step: canary.StepObserve, Text: "done"})
	progress.Close()
	if got, want := out.String(), "12:00:00  gate     waiting: a\\nb\n12:00:01  observe  done\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEventsAreOneObjectALine(t *testing.T) {
	var out bytes.Buffer
	var progress report.Progress = report.Events{Out: &out}
	progress.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "waiting: \"a\"\nb", Passing: true})
	progress.Note(canary.Note{Time: noon.Add(1500 * time.Millisecond), Step: canary.StepCreate, Text: "created"})
	progress.Close()
	want := `{"time":"2026-01-15T12:00:00Z","step":"gate","text":"waiting: \"a\"\nb","waiting":true}` + "\n" +
		`{"time":"2026-01-15T12:00:01.5Z","step":"create","text":"created"}` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// screen is a terminal of one line: what stands on it now, and what has
// scrolled up.
type screen struct {
	mu   sync.Mutex
	text string
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	return len(p), nil
}

// lines are what a person sees.
func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.text, "\n")
	for i, line := range lines {
		lines[i] = line[strings.LastIndex(line, "\x1b[2K")+1:]
		lines[i] = strings.TrimPrefix(lines[i], "[2K")
	}
	return lines
}

func TestLiveKeepsWhatIsWaitedForOnTheLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screen{}
		live := report.NewLive(out, func() int { return 60 }, time.Now)
		see := func(want ...string) {
			t.Helper()
			synctest.Wait()
			got := out.lines()
			if strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("the screen shows %q, want %q", got, want)
			}
		}
		see("")
		live.Note(canary.Note{Time: noon, Step: canary.StepCheck, Text: "checked"})
		see("12:00:00  check    checked", "")
		live.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "waiting: a", Passing: true})
		see("12:00:00  check    checked", "    0s    gate     waiting: a")
		time.Sleep(1600 * time.Millisecond)
		see("12:00:00  check    checked", "    2s    gate     waiting: a")
		live.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "waiting: b", Passing: true})
		see("12:00:00  check    checked", "    0s    gate     waiting: b")
		live.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "waiting: " + strings.Repeat("long ", 30), Passing: true})
		long := "    0s    gate     waiting: long long long long long long "
		see("12:00:00  check    checked", long[:58]+"…")
		live.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "ready"})
		see("12:00:00  check    checked", "12:00:00  gate     ready", "")
		live.Note(canary.Note{Time: noon, Step: canary.StepObserve, Text: "judging", Passing: true})
		live.Close()
		see("12:00:00  check    checked", "12:00:00  gate     ready", "")
	})
}

// A terminal without a width still gets a line.
func TestLiveOnANarrowTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screen{}
		live := report.NewLive(out, func() int { return 0 }, time.Now)
		live.Note(canary.Note{Time: noon, Step: canary.StepGate, Text: "waiting: something", Passing: true})
		if got := out.lines(); len(got) != 1 || len([]rune(got[0])) != 20 {
			t.Errorf("the screen shows %q", got)
		}
		live.Close()
	})
}
