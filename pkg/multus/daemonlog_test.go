package multus

import (
	"strings"
	"testing"
	"time"
)

// realLog is the start of a thick v4.3.0 daemon, cut to the lines that matter.
const realLog = `2026-03-03T08:59:40Z [verbose] multus-daemon started
2026-03-03T08:59:40Z [verbose] Readiness Indicator file check
2026-03-03T08:59:41Z [verbose] API readiness check
2026-03-03T08:59:42Z [verbose] API readiness check done!
2026-03-03T08:59:43Z [verbose] Generated MultusCNI config: {"cniVersion":"0.3.1","type":"multus-shim"}
2026-03-03T08:59:44Z [verbose] started to watch file /host/etc/cni/net.d/10-flannel.conflist
2026-03-03T08:59:50Z [verbose] ADD starting CNI request ContainerID:"x"
`

func TestAttachReadyAtEachLine(t *testing.T) {
	var s AttachState
	for i, line := range strings.SplitAfter(realLog, "\n") {
		s.Feed(line)
		if ready := i >= 5; s.Ready() != ready {
			t.Errorf("after line %d %q: ready %v", i, line, s.Ready())
		}
	}
	if want := time.Date(2026, 3, 3, 8, 59, 44, 0, time.UTC); !s.ReadyAt.Equal(want) || !s.APIReady || !s.Generated {
		t.Errorf("state %+v", s)
	}
}

func TestAttachReady(t *testing.T) {
	cut := func(drop string) string {
		var kept []string
		for line := range strings.SplitSeq(realLog, "\n") {
			if !strings.Contains(line, drop) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\n")
	}
	for name, row := range map[string]struct {
		log          string
		ready, known bool
	}{
		"a whole start":                       {realLog, true, true},
		"v4.0 has no API check":               {cut("API readiness"), true, true},
		"conf generated, not yet written":     {cut("started to watch"), false, true},
		"a log level that says nothing":       {"2026-03-03T08:59:40Z [error] something else\n", false, false},
		"empty":                               {"", false, false},
		"an empty conf":                       {strings.Replace(realLog, `{"cniVersion":"0.3.1","type":"multus-shim"}`, "", 1), false, true},
		"stopping":                            {realLog + "2026-03-03T09:10:00Z [verbose] caught terminated, stopping...\n", false, true},
		"conf taken away":                     {realLog + "2026-03-03T09:10:00Z [verbose] Delete old config @ /host/etc/cni/net.d/00-multus.conf\n", false, true},
		"stopped and started again":           {realLog + "2026-03-03T09:10:00Z [verbose] caught terminated, stopping...\n" + realLog, true, true},
		"restarted, not ready yet":            {realLog + "2026-03-03T09:10:00Z [verbose] multus-daemon started\n", false, true},
		"with kubectl's timestamps":           {"2026-03-03T08:59:44.123456789Z 2026-03-03T08:59:44Z [verbose] started to watch file /x\n", true, true},
		"two headers before one message":      {"2026-03-03T08:59:44Z [verbose] 2026-03-03T08:59:44Z [error] started to watch file /x\n", true, true},
		"header lost to another line":         {"started to watch file /x\n", true, true},
		"the words inside another message":    {"2026-03-03T08:59:44Z [error] pod says: started to watch file /x\n", false, false},
		"an unfinished line is not that line": {"2026-03-03T08:59:44Z [verbose] started to wat", false, true},
		"Windows line ends":                   {strings.ReplaceAll(realLog, "\n", "\r\n"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := AttachReady(row.log)
			if s.Ready() != row.ready || s.Known() != row.known {
				t.Errorf("ready %v known %v, want %v %v: %+v", s.Ready(), s.Known(), row.ready, row.known, s)
			}
		})
	}
}

func TestReadyAtIsKubeletsTimeWhereGiven(t *testing.T) {
	s := AttachReady("2026-03-03T08:59:44.5Z 2026-03-03T08:59:44Z [verbose] started to watch file /x\n")
	if want := time.Date(2026, 3, 3, 8, 59, 44, 500_000_000, time.UTC); !s.ReadyAt.Equal(want) {
		t.Errorf("ready at %v, want %v", s.ReadyAt, want)
	}
}
