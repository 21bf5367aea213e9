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
		// The copy is one that a look takes for proven.
		sum := Checksum([]byte(multusConf))
		name := "00-multus.conf." + stamp(noon()) + "." + sum[:12]
		if got := h.read(BackupDir + "/" + name); got != multusConf {
			t.Errorf("backup %q", got)
		}
		kept := Backups([]File{file(name, multusConf), file(name+".sha256", h.read(BackupDir+"/"+name+".sha256"))})
		if len(kept) != 1 || kept[0].Conf != "00-multus.conf" {
			t.Errorf("the copy is not known again: %+v", kept)
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

		h.write("00-multus.conf", multusConf)
		for _, other := range []string{"", "{", `{"type": "multus"}`, `{"type": "x"}`, `{"name": "x", "plugins": [{"type": "ptp"}`, `{"name": "x", "plugins": [{"type": "ptp"}, 7]}`} {
			h.write("10-flannel.conflist", other)
			out, err := exec.CommandContext(t.Context(), h.shell[0], append(h.shell[1:], "-c", r.removeLines(n))...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "nothing was removed") || h.read("00-multus.conf") != multusConf {
				t.Errorf("with %q as the other conf: %v\n%s", other, err, out)
			}
		}
	})
}

// Without python3 nothing is removed before the operator has looked at the conf
// that takes over.
func TestLinesForANodeWithoutPython(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		tools := t.TempDir()
		for _, name := range []string{"cat", "cmp", "cp", "cut", "grep", "head", "ls", "mkdir", "rm", "sha256sum"} {
			path, err := exec.LookPath(name)
			must(t, err)
			must(t, os.Symlink(path, filepath.Join(tools, name)))
		}
		lines := (&Rollback{Now: noon}).removeLines(NodeState{Name: "node-1", ConfDir: h.conf})
		run := func(before string) (string, error) {
			cmd := exec.CommandContext(t.Context(), h.shell[0], append(h.shell[1:], "-c", before+lines)...)
			cmd.Env = []string{"PATH=" + tools}
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		out, err := run("")
		if err == nil || !strings.Contains(out, "USABLE='10-flannel.conflist'") || !strings.Contains(out, flannelConf) || h.read("00-multus.conf") != multusConf {
			t.Errorf("nobody has looked, and: %v\n%s", err, out)
		}
		if out, err := run("USABLE=05-other.conf\n"); err == nil || h.read("00-multus.conf") != multusConf {
			t.Errorf("the operator has looked at another conf, and: %v\n%s", err, out)
		}
		if out, err := run("USABLE=10-flannel.conflist\n"); err != nil || slices.Contains(h.names(), "00-multus.conf") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// Where the folder is not known, the lines find the one that Multus has been in.
func TestLinesForAnUnknownFolder(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		other := filepath.Join(t.TempDir(), "it's", "net.d")
		must(t, os.MkdirAll(other, 0o755))
		must(t, os.WriteFile(filepath.Join(other, "10-other.conflist"), []byte(flannelConf), 0o600))
		r := &Rollback{Now: noon}
		n := NodeState{Name: "node-1", KnownDirs: []string{filepath.Join(other, "none"), other, h.conf}}
		run := func(lines string) (string, error) {
			out, err := exec.CommandContext(t.Context(), h.shell[0], append(h.shell[1:], "-c", lines)...).CombinedOutput()
			return string(out), err
		}
		if out, err := run(r.removeLines(n)); err != nil || slices.Contains(h.names(), "00-multus.conf") {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := run(restoreLines(n)); err != nil || h.read("00-multus.conf") != multusConf {
			t.Errorf("%v\n%s", err, out)
		}
		n.KnownDirs = n.KnownDirs[:2]
		if out, err := run(restoreLines(n)); err == nil || !strings.Contains(out, BackupDir) {
			t.Errorf("no folder has a copy, and: %v\n%s", err, out)
		}
	})
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
