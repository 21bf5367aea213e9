package canary

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

const daemonInstance = "containerd://x"

func newDaemonLog() *daemonLog {
	d := &daemonLog{wake: func() {}}
	d.known.state.Container = daemonInstance
	return d
}

func TestDaemonLogReadsLines(t *testing.T) {
	long := strings.Repeat("x", logLine+10)
	ready := "started to watch file /x"
	tests := map[string]struct {
		log          string
		ready, known bool
	}{
		"ready":                               {readyLog, true, true},
		"begun":                               {startingLog, false, true},
		"nothing":                             {"", false, false},
		"the last line is not ended":          {"2026-01-15T12:00:00Z [verbose] " + ready, true, true},
		"Windows line ends":                   {"2026-01-15T12:00:00Z [verbose] multus-daemon started\r\n", false, true},
		"a huge line, then the ready one":     {long + "\n[verbose] " + ready + "\n", true, true},
		"the end of a huge line looks ready":  {strings.Repeat("x", logLine) + ready + "\n", false, false},
		"a huge line that is not ended":       {long, false, false},
		"a huge line twice as long, the same": {strings.Repeat("x", 2*logLine) + ready + "\n", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDaemonLog()
			read, err := d.scan(strings.NewReader(test.log))
			state := d.read()
			if err != nil || read != len(test.log) {
				t.Errorf("read %d of %d bytes, error %v", read, len(test.log), err)
			}
			if !state.Read || state.Container != daemonInstance || state.Ready() != test.ready || state.Known() != test.known {
				t.Errorf("state: %+v", state)
			}
		})
	}
}

func TestDaemonLogKeepsTheFirstLines(t *testing.T) {
	d := newDaemonLog()
	_, err := d.scan(strings.NewReader("first\n" + strings.Repeat("more\n", 10*logKept)))
	check(t, err)
	if lines := strings.Split(d.text(), "\n"); len(lines) != logKept || lines[0] != "first" {
		t.Errorf("kept %d lines, the first is %q", len(lines), lines[0])
	}
}

// A stream that is opened again begins at the log's start, and knows less than
// is known until it has come as far.
func TestDaemonLogOpenedAgainTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemonLog()
		_, err := d.scan(strings.NewReader(readyLog))
		check(t, err)

		in, out := io.Pipe()
		ended := make(chan error)
		go func() {
			_, err := d.scan(in)
			ended <- err
		}()
		for _, line := range strings.SplitAfter(strings.TrimSuffix(readyLog, "\n"), "\n") {
			if state := d.read(); !state.Ready() || !state.Read {
				t.Fatalf("before %q: %+v", line, state)
			}
			_, err := io.WriteString(out, line)
			check(t, err)
			synctest.Wait()
		}
		check(t, out.Close())
		check(t, <-ended)
		if state := d.read(); !state.Ready() {
			t.Errorf("at the end: %+v", state)
		}
		// A log that begins anew (it was rotated) tells what it tells once it is read.
		_, err = d.scan(strings.NewReader("x\n"))
		check(t, err)
		if state := d.read(); state.Known() || !state.Read {
			t.Errorf("a rotated log: %+v", state)
		}
	})
}

func TestDaemonLogThatBreaksKeepsWhatIsKnown(t *testing.T) {
	d := newDaemonLog()
	_, err := d.scan(strings.NewReader(startingLog))
	check(t, err)
	broken := errors.New("connection reset")
	_, err = d.scan(io.MultiReader(strings.NewReader(startingLog[:20]), iotest.ErrReader(broken)))
	if state := d.read(); !errors.Is(err, broken) || !state.Known() || !state.Read {
		t.Errorf("error %v, state %+v", err, d.read())
	}
}

// An open log that says nothing counts as one that does not tell, after a while.
func TestDaemonLogThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemonLog()
		in, out := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = d.scan(in)
		}()
		time.Sleep(logSilence - time.Millisecond)
		if d.read().Read {
			t.Error("counts as read at once")
		}
		time.Sleep(2 * time.Millisecond)
		if !d.read().Read {
			t.Error("does not count as read")
		}
		_, err := io.WriteString(out, startingLog)
		check(t, err)
		synctest.Wait()
		if state := d.read(); !state.Known() {
			t.Error("what comes later is not seen")
		}
		check(t, out.Close())
		<-ended
	})
}
