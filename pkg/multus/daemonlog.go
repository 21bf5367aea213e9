package multus

import (
	"strings"
	"time"
)

// The lines a thick daemon prints while it becomes usable, in this order
// (cmd/multus-daemon/main.go and pkg/server/config/manager.go of multus-cni
// v4.3.0, log level verbose). v4.0.x prints the last two only.
const (
	logDaemonStarted = "multus-daemon started"
	logAPIReady      = "API readiness check done!"
	logGenerated     = "Generated MultusCNI config:"
	logWatching      = "started to watch file "
	logStopping      = "stopping..."
	logConfRemoved   = "Delete old config @ "
)

// noPrimaryConf is what a daemon says at its end that has waited in vain for the
// primary network's conf (pkg/server/config/generator.go of multus-cni v4.3.0).
const noPrimaryConf = "could not find a plugin configuration in"

// MissesPrimaryConf gives the line of a daemon's last words by which it ended
// because it found no conf of the primary network; empty where it does not say so.
func MissesPrimaryConf(lastWords string) string {
	for line := range strings.Lines(lastWords) {
		if strings.Contains(line, noPrimaryConf) {
			return strings.TrimSpace(Plain(line))
		}
	}
	return ""
}

// AttachState is what a daemon's log has told so far about whether a Pod
// created now would be attached. The zero value knows nothing; feed it the
// lines of one container's log in order, from the container's start.
type AttachState struct {
	// Verbose: the log has lines of level verbose or debug, so that the lines
	// of readiness will come.
	Verbose bool
	// APIReady: the daemon's socket answers.
	APIReady bool
	// Generated: the CNI conf was made and is about to be written.
	Generated bool
	// Watching: the conf file is on the disk.
	Watching bool
	// EmptyConf: the daemon could not read the primary conf and wrote an empty
	// file, which stops the whole node.
	EmptyConf bool
	// Stopping: the daemon is going and takes its conf away.
	Stopping bool
	// ReadyAt is the log's own time of the moment Ready became true; zero where
	// the line carried none.
	ReadyAt time.Time
}

// Feed takes the next line of the log, with or without its newline.
func (s *AttachState) Feed(line string) {
	at, verbose, msg := splitLogLine(Plain(line))
	s.Verbose = s.Verbose || verbose
	switch {
	case msg == logDaemonStarted:
		*s = AttachState{Verbose: s.Verbose}
	case msg == logAPIReady:
		s.APIReady = true
	case strings.HasPrefix(msg, logGenerated):
		s.Generated = true
		s.EmptyConf = strings.TrimSpace(strings.TrimPrefix(msg, logGenerated)) == ""
	case strings.HasPrefix(msg, logWatching):
		s.Watching = true
	case strings.HasPrefix(msg, logConfRemoved),
		strings.HasPrefix(msg, "caught ") && strings.HasSuffix(msg, logStopping):
		s.Stopping = true
	}
	if s.Ready() && s.ReadyAt.IsZero() {
		s.ReadyAt = at
	}
}

// Ready reports whether the conf was written and still lies there: a Pod
// created from now on goes through Multus.
func (s *AttachState) Ready() bool {
	return s.Watching && !s.EmptyConf && !s.Stopping
}

// Known reports whether the log tells, or will tell, about readiness. A log
// level below verbose, a rotated log and a thin plugin say nothing.
func (s *AttachState) Known() bool {
	return s.Verbose || s.APIReady || s.Generated || s.Watching || s.Stopping
}

// AttachReady reads a whole log at once.
func AttachReady(log string) AttachState {
	var s AttachState
	for line := range strings.SplitSeq(log, "\n") {
		s.Feed(line)
	}
	return s
}

// splitLogLine takes the headers off a daemon's log line and gives the first
// time found in them. Multus prints header, message and newline in three
// writes, so that the headers of two goroutines can stand before one message;
// `kubectl logs --timestamps` puts one more time in front.
func splitLogLine(line string) (at time.Time, verbose bool, msg string) {
	msg = strings.TrimRight(line, "\r\n")
	for {
		head, rest, ok := strings.Cut(msg, " ")
		if !ok {
			return at, verbose, msg
		}
		if t, err := time.Parse(time.RFC3339Nano, head); err == nil {
			if at.IsZero() {
				at = t
			}
		} else if !isLogLevel(head) {
			return at, verbose, msg
		}
		verbose = verbose || head == "[verbose]" || head == "[debug]"
		msg = rest
	}
}

// isLogLevel matches the bracketed level names of multus-cni's pkg/logging.
func isLogLevel(s string) bool {
	switch s {
	case "[panic]", "[error]", "[verbose]", "[debug]", "[unknown]":
		return true
	}
	return false
}
