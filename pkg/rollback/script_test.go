package rollback

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	multusConf  = `{"cniVersion":"0.3.1","name":"multus-cni-network","clusterNetwork":"/host/etc/cni/net.d/10-flannel.conflist","type":"multus-shim"}`
	flannelConf = `{"name":"cbr0","cniVersion":"0.3.1","plugins":[{"type":"flannel"},{"type":"portmap"}]}`
)

// noon is the time of all tests.
func noon() time.Time { return time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC) }

// host is a node's conf dir and plugin dir on disk, and the shell that a node
// Pod would have.
type host struct {
	t                 *testing.T
	shell             []string
	conf, bin, copies string
	result            string
}

// shells are those of the images that node Pods run: the system's own, which is
// dash on Debian, and busybox where it is installed or where the lab has it.
func shells() map[string][]string {
	all := map[string][]string{"sh": {"/bin/sh"}}
	cache, _ := os.UserCacheDir()
	for _, name := range []string{"busybox", filepath.Join(cache, "kubectl-vlan50", "debian", "busybox-static", "bin", "busybox")} {
		if path, err := exec.LookPath(name); err == nil {
			all["busybox"] = []string{path, "sh"}
		}
	}
	return all
}

// onHosts runs a test for each shell, on a node with Multus over flannel.
func onHosts(t *testing.T, test func(t *testing.T, h *host)) {
	t.Helper()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := &host{
				t: t, shell: shell, conf: filepath.Join(dir, "conf"), bin: filepath.Join(dir, "bin"),
				copies: filepath.Join(dir, "copies"), result: filepath.Join(dir, "result"),
			}
			for _, folder := range []string{h.conf, h.bin, h.copies} {
				must(t, os.Mkdir(folder, 0o755))
			}
			h.write("00-multus.conf", multusConf)
			h.write("10-flannel.conflist", flannelConf)
			test(t, h)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *host) write(name, content string) {
	h.t.Helper()
	must(h.t, os.WriteFile(filepath.Join(h.conf, name), []byte(content), 0o600))
}

func (h *host) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.conf, name))
	must(h.t, err)
	return string(data)
}

func (h *host) names() []string {
	h.t.Helper()
	entries, err := os.ReadDir(h.conf)
	must(h.t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// run does what the kubelet does with a job, with the host's folders in the
// place of the mounts. It gives what the job printed and its termination message.
func (h *host) run(job nodeJob) (printed, message string) {
	h.t.Helper()
	must(h.t, os.WriteFile(h.result, nil, 0o600))
	cmd := exec.CommandContext(h.t.Context(), h.shell[0], append(h.shell[1:], "-c", job.script)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range job.env {
		switch name {
		case "CONF_DIR":
			value = h.conf
		case "BIN_DIR":
			value = h.bin
		case "BINARY_COPIES":
			value = h.copies
		case "RESULT":
			value = h.result
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if _, failed := err.(*exec.ExitError); err != nil && !failed { //nolint:errorlint // exec gives this very type
		h.t.Fatal(err)
	}
	data, err := os.ReadFile(h.result)
	must(h.t, err)
	return string(out), string(data)
}

func (h *host) look() ConfDir {
	h.t.Helper()
	printed, _ := h.run(lookJob("node-1", h.conf, "n0nce"))
	dir, err := parseLook([]byte(printed), "n0nce", h.conf)
	must(h.t, err)
	return dir
}

func (h *host) remove(r removal) acted {
	h.t.Helper()
	_, message := h.run(removeJob("node-1", h.conf, "n0nce", noon(), r))
	done, err := parseAct(message, "n0nce")
	must(h.t, err)
	return done
}

func (h *host) restore(b Backup) acted {
	h.t.Helper()
	_, message := h.run(restoreJob("node-1", h.conf, "n0nce", b))
	done, err := parseAct(message, "n0nce")
	must(h.t, err)
	return done
}

func TestConfIsKeptAsideAndComesBack(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		finding := Find(h.look())
		if finding.Problem != "" || len(finding.Multus) != 1 {
			t.Fatalf("finding: %+v", finding)
		}
		done := h.remove(removal{finding: finding})
		if diff := cmp.Diff([]string{"00-multus.conf"}, done.removed); diff != "" || done.stopped != "" {
			t.Fatalf("%s %s", diff, done.stopped)
		}
		if diff := cmp.Diff([]string{"10-flannel.conflist", BackupDir}, h.names()); diff != "" {
			t.Error(diff)
		}
		backups := Backups(h.look().Backups)
		if len(backups) != 1 || backups[0].SHA256 != Checksum([]byte(multusConf)) || !backups[0].Time.Equal(noon()) || backups[0].File != done.copies["00-multus.conf"] {
			t.Fatalf("backups: %+v", backups)
		}
		sums := exec.CommandContext(t.Context(), "sha256sum", "-c", backups[0].File+".sha256")
		sums.Dir = filepath.Join(h.conf, BackupDir)
		if out, err := sums.CombinedOutput(); err != nil {
			t.Errorf("sha256sum -c: %v\n%s", err, out)
		}
		backups[0].Content = nil // the node's own copy is used
		if done := h.restore(backups[0]); !slices.Equal(done.restored, []string{"00-multus.conf"}) {
			t.Fatalf("restored: %+v", done)
		}
		if got := h.read("00-multus.conf"); got != multusConf {
			t.Errorf("not byte for byte: %q", got)
		}
		if info, err := os.Stat(filepath.Join(h.conf, "00-multus.conf")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode: %v %v", info, err)
		}
		if done := h.restore(backups[0]); !slices.Equal(done.present, []string{"00-multus.conf"}) {
			t.Errorf("a second restore: %+v", done)
		}
		if names := h.names(); slices.Contains(names, ".vlan50-new") {
			t.Errorf("left behind: %v", names)
		}
	})
}

// The same conf, removed twice, is one backup.
func TestConfThatComesBackIsKeptOnce(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		for range 2 {
			h.write("00-multus.conf", multusConf)
			if done := h.remove(removal{finding: Find(h.look())}); len(done.removed) != 1 {
				t.Fatalf("%+v", done)
			}
		}
		if backups := Backups(h.look().Backups); len(backups) != 1 {
			t.Errorf("%d backups", len(backups))
		}
	})
}

// A copy that somebody made whose clock was ahead is not taken for the newest.
func TestNewestCopyIsTheOneRemovedLast(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		for _, content := range []string{multusConf, multusConf + "\n"} {
			h.write("00-multus.conf", content)
			dir := h.look()
			at := newerThan(noon(), dir.Backups)
			if content == multusConf {
				at = noon().AddDate(0, 0, 1) // the clock of this one is a day ahead
			}
			_, message := h.run(removeJob("node-1", h.conf, "n0nce", at, removal{finding: Find(dir)}))
			if done, err := parseAct(message, "n0nce"); err != nil || len(done.removed) != 1 {
				t.Fatalf("%+v %v", done, err)
			}
		}
		backups := Backups(h.look().Backups)
		if len(backups) != 2 || string(backups[0].Content) != multusConf+"\n" {
			t.Errorf("the newest of %d copies is %q", len(backups), backups[0].Content)
		}
	})
}

func TestRemovalStopsWhereTheFolderHasChanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(h *host)
		stale  bool
		want   string
	}{
		"the conf was written again":        {func(h *host) { h.write("00-multus.conf", multusConf+"\n") }, true, "00-multus.conf has changed"},
		"the primary conf was emptied":      {func(h *host) { h.write("10-flannel.conflist", "") }, true, "take over"},
		"the primary conf is gone":          {func(h *host) { must(h.t, os.Remove(filepath.Join(h.conf, "10-flannel.conflist"))) }, true, "take over"},
		"another conf would be first now":   {func(h *host) { h.write("05-new.conflist", flannelConf) }, true, "take over"},
		"a hidden conf would be first now":  {func(h *host) { h.write(".new.json", "{}") }, true, "take over"},
		"backups would land somewhere else": {func(h *host) { must(h.t, os.Symlink(h.bin, filepath.Join(h.conf, BackupDir))) }, false, BackupDir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHosts(t, func(t *testing.T, h *host) {
				finding := Find(h.look())
				row.change(h)
				done := h.remove(removal{finding: finding})
				if !strings.Contains(done.stopped, row.want) || done.stale != row.stale || len(done.removed) > 0 {
					t.Errorf("%+v", done)
				}
				h.read("00-multus.conf") // it is still there
				if entries, err := os.ReadDir(h.bin); err != nil || len(entries) > 0 {
					t.Errorf("written outside the conf dir: %v %v", entries, err)
				}
			})
		})
	}
}

// What the runtime does not read, or reads later, changes nothing.
func TestRemovalHeedsOnlyConfsThatWouldBeFirst(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		finding := Find(h.look())
		h.write("05-new.conflist.tmp", "{")
		h.write("99-new.conf", "{")
		must(t, os.Mkdir(filepath.Join(h.conf, "05-folder.conf"), 0o700))
		if done := h.remove(removal{finding: finding}); done.stopped != "" || len(done.removed) != 1 {
			t.Errorf("%+v", done)
		}
	})
}

func TestConfThatHasGoneByItself(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		finding := Find(h.look())
		must(t, os.Remove(filepath.Join(h.conf, "00-multus.conf")))
		if done := h.remove(removal{finding: finding}); !slices.Equal(done.absent, []string{"00-multus.conf"}) || done.stopped != "" {
			t.Errorf("%+v", done)
		}
	})
}

// A daemon writes its conf again the moment it is gone: that is for the next look
// to see, and no failure of the removal.
func TestConfThatIsWrittenAgainAtOnce(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		finding := Find(h.look())
		conf, fresh := filepath.Join(h.conf, "00-multus.conf"), filepath.Join(t.TempDir(), "fresh")
		var over atomic.Bool
		ended := make(chan error, 1)
		go func() {
			var err error
			for err == nil && !over.Load() {
				err = os.WriteFile(fresh, []byte(multusConf), 0o600) // before it is needed
				for there := true; there && !over.Load(); {
					_, statErr := os.Stat(conf)
					there = statErr == nil
				}
				err = errors.Join(err, os.Rename(fresh, conf))
			}
			ended <- err
		}()
		for range 5 {
			if done := h.remove(removal{finding: finding}); done.stopped != "" || len(done.removed)+len(done.absent) != 1 {
				t.Errorf("%+v", done)
			}
		}
		over.Store(true)
		must(t, <-ended)
	})
}

func TestRestoreIsHonest(t *testing.T) {
	t.Parallel()
	good := Backup{Conf: "00-multus.conf", SHA256: Checksum([]byte(multusConf)), Content: []byte(multusConf)}
	for name, row := range map[string]struct {
		arrange func(h *host)
		backup  Backup
		want    string // stopped
		content string
	}{
		"from this machine's copy": {backup: good, content: multusConf},
		"the node's copy was damaged, this machine's is whole": {
			arrange: func(h *host) {
				must(h.t, os.Mkdir(filepath.Join(h.conf, BackupDir), 0o700))
				h.write(BackupDir+"/damaged", "x")
			},
			backup:  Backup{Conf: good.Conf, SHA256: good.SHA256, Content: good.Content, File: "damaged"},
			content: multusConf,
		},
		"no copy at all":     {backup: Backup{Conf: good.Conf, SHA256: good.SHA256, File: "gone"}, want: "no proven copy"},
		"this copy is false": {backup: Backup{Conf: good.Conf, SHA256: good.SHA256, Content: []byte("false")}, want: "cannot be written"},
		"another conf is there": {
			arrange: func(h *host) { h.write("00-multus.conf", "another") },
			backup:  good, want: "is there already", content: "another",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHosts(t, func(t *testing.T, h *host) {
				must(t, os.Remove(filepath.Join(h.conf, "00-multus.conf")))
				if row.arrange != nil {
					row.arrange(h)
				}
				done := h.restore(row.backup)
				if row.want == "" && done.stopped != "" || !strings.Contains(done.stopped, row.want) {
					t.Errorf("%+v", done)
				}
				if row.content != "" {
					if got := h.read("00-multus.conf"); got != row.content {
						t.Errorf("content %q", got)
					}
				} else if slices.Contains(h.names(), "00-multus.conf") {
					t.Error("a conf was written")
				}
			})
		})
	}
}

// File names are the node's to choose.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"-rf", "with space.conf", "new\nline.conf", "end 0 n0nce", "tab\there", "quote'\"`$(touch ran)", "*.conf", "..hidden", ".conf",
		"\x1b[31mred.conf", "caf\u00e9.conf", "\xff\xfe.conf", "conf file 1 x y z", strings.Repeat("n", 255),
	}
	onHosts(t, func(t *testing.T, h *host) {
		for _, name := range names {
			h.write(name, flannelConf)
		}
		must(t, os.Symlink("/etc/passwd", filepath.Join(h.conf, "link.conf")))
		must(t, os.Symlink("10-flannel.conflist", filepath.Join(h.conf, "20-near.conflist")))
		must(t, os.Symlink("nowhere", filepath.Join(h.conf, "dangling.conf")))
		must(t, os.Mkdir(filepath.Join(h.conf, "folder.conf"), 0o755))
		dir := h.look()
		seen := map[string]File{}
		for _, file := range dir.Files {
			seen[file.Name] = file
		}
		for _, name := range names {
			// What is no conf may hold anything, and is listed alone.
			want := ""
			if isConfName(name) {
				want = flannelConf
			}
			if f := seen[name]; f.Name != name || f.Size != int64(len(flannelConf)) || string(f.Content) != want {
				t.Errorf("%q: %+v", name, f)
			}
		}
		if f := seen["link.conf"]; f.Kind != Symlink || f.Content != nil {
			t.Errorf("a link out of the folder was read: %+v", f)
		}
		if f := seen["20-near.conflist"]; f.Kind != Symlink || string(f.Content) != flannelConf {
			t.Errorf("a link within the folder was not: %+v", f)
		}
		if f := seen["dangling.conf"]; f.Kind != Symlink || f.Content != nil {
			t.Errorf("%+v", f)
		}
		if f := seen["folder.conf"]; f.Kind != Directory {
			t.Errorf("%+v", f)
		}
		if len(dir.Files) != len(names)+6 {
			t.Errorf("%d files", len(dir.Files))
		}
		if _, err := os.Stat(filepath.Join(h.conf, "ran")); err == nil {
			t.Error("a file name was run as a command")
		}
	})
}

func TestLookSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		h.write("90-long.conf", strings.Repeat(" ", longestConf+1))
		for _, file := range h.look().Files {
			if file.Name == "90-long.conf" && (file.Content != nil || file.Size != longestConf+1) {
				t.Errorf("%d bytes, content %d", file.Size, len(file.Content))
			}
		}
		for i := range mostFiles {
			h.write(fmt.Sprintf("file-%d", i), "")
		}
		printed, _ := h.run(lookJob("node-1", h.conf, "n0nce"))
		if _, err := parseLook([]byte(printed), "n0nce", h.conf); err == nil || !strings.Contains(err.Error(), "more than 100 files") {
			t.Errorf("error %v", err)
		}
		must(t, os.RemoveAll(h.conf))
		printed, _ = h.run(lookJob("node-1", h.conf, "n0nce"))
		if _, err := parseLook([]byte(printed), "n0nce", h.conf); err == nil || !strings.Contains(err.Error(), "cannot be entered") {
			t.Errorf("error %v", err)
		}
	})
}

// A node Pod has no capabilities: in a folder that is not root's it may only read.
func TestLookTellsWhetherTheFolderMayBeWritten(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		for mode, locked := range map[os.FileMode]bool{0o755: false, 0o777: false, 0o555: true} {
			must(t, os.Chmod(h.conf, mode))
			dir := h.look()
			if got := dir.Locked != ""; got != locked || len(dir.Files) != 2 {
				t.Errorf("mode %o: %q, %d files", mode, dir.Locked, len(dir.Files))
			}
		}
		must(t, os.Chmod(h.conf, 0o755))
		if os.Getuid() != 0 {
			return // nobody else may give a folder away
		}
		for name, row := range map[string]struct {
			owner, group int
			mode         os.FileMode
			locked       bool
		}{
			"another user's":                     {998, 998, 0o755, true},
			"another user's, open to all":        {998, 998, 0o757, false},
			"another user's, open to the group":  {998, 998, 0o775, true},
			"another user's of root's own group": {998, 0, 0o775, false},
		} {
			must(t, os.Chown(h.conf, row.owner, row.group))
			must(t, os.Chmod(h.conf, row.mode))
			if got := h.look().Locked; got != "" != row.locked {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestOnlyProvenPluginsAreRemoved(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		for file, content := range map[string]string{
			h.bin + "/multus-shim": "shim", h.copies + "/multus-shim": "shim",
			h.bin + "/multus": "another build", h.copies + "/multus": "multus",
			h.bin + "/passthru": "passthru", h.bin + "/macvlan": "macvlan", h.copies + "/macvlan": "macvlan",
		} {
			must(t, os.WriteFile(file, []byte(content), 0o755))
		}
		done := h.remove(removal{finding: Find(h.look()), binDir: h.bin, binaries: multusBinaries()})
		want := map[string]string{"multus-shim": "removed", "multus": "differs", "passthru": "unproven"}
		if diff := cmp.Diff(want, done.binaries); diff != "" {
			t.Error(diff)
		}
		entries, err := os.ReadDir(h.bin)
		must(t, err)
		if len(entries) != 3 {
			t.Errorf("%d plugins are left, want multus, passthru and macvlan", len(entries))
		}
	})
}

func TestCredentialsAreKeptAside(t *testing.T) {
	t.Parallel()
	onHosts(t, func(t *testing.T, h *host) {
		must(t, os.Mkdir(filepath.Join(h.conf, credentialDir), 0o700))
		h.write(credentialDir+"/multus.kubeconfig", "token")
		finding := Find(h.look())
		if !finding.Credentials {
			t.Fatal("the folder was not seen")
		}
		if done := h.remove(removal{finding: finding, credentials: true}); !slices.Equal(done.moved, []string{credentialDir}) {
			t.Fatalf("%+v", done)
		}
		if got := h.read(BackupDir + "/" + credentialDir + "." + stamp(noon()) + "/multus.kubeconfig"); got != "token" {
			t.Errorf("content %q", got)
		}
	})
}
