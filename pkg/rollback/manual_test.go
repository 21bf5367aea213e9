package rollback

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The lines for the operator are run as they are printed.
func TestLinesForTheOperator(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		r := &Rollback{Now: noon}
		n := NodeState{Name: "node-1", ConfDir: h.conf}
		run := func(lines string) string {
			t.Helper()
			out, err := exec.CommandContext(t.Context(), h.shell[0], append(h.shell[1:], "-c", lines)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, lines, out)
			}
			return string(out)
		}
		out := run(r.removeLines(n))
		if slices.Contains(h.names(), "00-multus.conf") {
			t.Errorf("the conf is still there:\n%s", out)
		}
		if got := h.read(BackupDir + "/00-multus.conf." + stamp(noon())); got != multusConf {
			t.Errorf("backup %q", got)
		}
		if !strings.Contains(out, Checksum([]byte(multusConf))) {
			t.Errorf("no checksum is shown:\n%s", out)
		}
		run(restoreLines(n))
		if got := h.read("00-multus.conf"); got != multusConf {
			t.Errorf("not byte for byte: %q", got)
		}

		h.write("00-multus.conf", `{"type":"bridge"}`)
		run(r.removeLines(n))
		if got := h.read("00-multus.conf"); got != `{"type":"bridge"}` {
			t.Errorf("a foreign conf was touched: %q", got)
		}
	})
}

func TestLinesForAnUnknownFolder(t *testing.T) {
	t.Parallel()
	r := &Rollback{Now: noon}
	lines := r.removeLines(NodeState{Name: "node-1", KnownDirs: []string{"/etc/cni/net.d", "/var/lib/rancher/k3s/agent/etc/cni/net.d"}})
	for _, want := range []string{"#   /var/lib/rancher/k3s/agent/etc/cni/net.d", "(cd '/etc/cni/net.d' || exit 1"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is missing in\n%s", want, lines)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	hostile := filepath.Join(t.TempDir(), `it's "$(touch ran)"`)
	must(t, os.Mkdir(hostile, 0o755))
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "cd "+quote(hostile)+" && pwd && ls ..").Output()
	if err != nil || !strings.HasPrefix(string(out), hostile+"\n") || strings.Contains(string(out), "\nran") {
		t.Errorf("%v %q", err, out)
	}
}
