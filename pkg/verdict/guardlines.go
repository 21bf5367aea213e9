package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// said is what a failed container left behind, read.
type said struct {
	fault Cause
	names names
	// text is the line that told, or the last one.
	text string
}

// lastWords reads the termination message first and the log second, each from its
// end: the last thing a script says is why it gave up.
func (s *scene) lastWords(c *corev1.ContainerStatus) said {
	var last string
	if how := killed(c.State.Terminated); how != "" {
		return said{text: how}
	}
	for _, text := range []string{c.State.Terminated.Message, s.logOf(c.Name)} {
		for i, line := range tailLines(multus.Plain(text)) {
			last = cmp.Or(last, line)
			if fault, n := s.guardFault(line); fault != "" {
				return said{fault: fault, names: n, text: line}
			}
			// arping's last words where nobody answered; before others they may be
			// those of a check for duplicates that went well.
			if i == 0 && strings.HasPrefix(strings.ToLower(line), noResponse) {
				return said{fault: L2Unreachable, text: line}
			}
			if hasWord(line, "0% packet loss") {
				break // the network did well later than all before this line
			}
		}
	}
	return said{text: last}
}

// killed says that a container did not end by itself: what it said last is not
// why. Empty for one that did.
func killed(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return "it was killed for memory (OOMKilled)"
	case t.ExitCode == 137, t.ExitCode == 139, t.ExitCode == 143:
		return fmt.Sprintf("it was killed by signal %d", t.ExitCode-128)
	}
	return ""
}

// maxGuardLines bounds how far back a text is read for a cause: what a guard
// said long before it gave up is not why it gave up.
const maxGuardLines = 4

// tailLines gives the last lines of a text, last one first, without blank ones.
func tailLines(text string) []string {
	const maxTail = 16 << 10
	if len(text) > maxTail {
		text = text[len(text)-maxTail:]
	}
	var lines []string
	for _, line := range slices.Backward(joinLines(text)) {
		lines = append(lines, line)
		if len(lines) == maxGuardLines {
			break
		}
	}
	return lines
}

// noResponse begins arping's last line where nobody answered.
const noResponse = "received 0 response"

// joinLines puts together what ping and arping spread over lines: the address
// stands in one, what became of it in another.
//
//	--- 192.0.2.1 ping statistics ---
//	3 packets transmitted, 0 packets received, 100% packet loss
//
//	ARPING 192.0.2.1 from 192.0.2.10 net1
//	Received 0 response(s)
func joinLines(text string) []string {
	var lines []string
	statistics, arping := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		low := strings.ToLower(line)
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "--- ") && strings.HasSuffix(low, " statistics ---"):
			statistics = line
			continue
		case strings.HasPrefix(low, "arping "):
			arping = line
		case arping != "" && strings.HasPrefix(low, noResponse):
			line, arping = arping+": "+line, ""
		case statistics != "":
			line = statistics + " " + line
		}
		statistics = ""
		lines = append(lines, line)
	}
	return lines
}

// logOf gives a container's log, only if it was read from this UID.
func (s *scene) logOf(container string) string {
	for _, l := range s.e.PodLogs {
		if l.Pod.UID == s.uid && l.Container == container && !l.Previous {
			return l.Log
		}
	}
	return ""
}
