//go:build krew

package krew

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// tools are the programs of the test, in a folder as it may lie on PATH.
type tools struct{ bin, validate string }

func buildTools(t *testing.T) tools {
	t.Helper()
	bin := t.TempDir()
	programs := map[string]buildcache.Program{
		"kubectl":                {Name: "kubectl", Module: "tools/kubectl", Package: "."},
		"kubectl-krew":           {Name: "krew", Module: "tools/krew", Package: "sigs.k8s.io/krew/cmd/krew"},
		"validate-krew-manifest": {Name: "validate-krew-manifest", Module: "tools/krew", Package: "sigs.k8s.io/krew/cmd/validate-krew-manifest"},
	}
	for name, program := range programs {
		program.Cold = 2 * time.Minute
		binary, err := buildcache.Build(t.Context(), program, os.Stderr)
		check(t, err)
		check(t, os.Symlink(binary, filepath.Join(bin, name)))
	}
	return tools{bin: bin, validate: filepath.Join(bin, "validate-krew-manifest")}
}

// krewUser is somebody with a home of their own, kubectl, krew and git, and no
// network: what asks for one runs into a closed port.
type krewUser struct {
	root, home string
	env        []string
}

func newUser(t *testing.T, tools tools, env ...string) krewUser {
	t.Helper()
	home := t.TempDir()
	root := filepath.Join(home, ".krew")
	folder := filepath.Join(home, ".local", "bin")
	check(t, os.MkdirAll(folder, 0o755))
	path := strings.Join([]string{tools.bin, filepath.Join(root, "bin"), folder, "/usr/bin", "/bin"}, string(os.PathListSeparator))
	const nowhere = "http://127.0.0.1:1"
	return krewUser{root: root, home: home, env: append([]string{
		"HOME=" + home, "PATH=" + path, "KREW_ROOT=" + root, "KUBECONFIG=" + filepath.Join(home, "no-kubeconfig"),
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "KREW_NO_UPGRADE_CHECK=1",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=index", "GIT_AUTHOR_EMAIL=index@localhost",
		"GIT_COMMITTER_NAME=index", "GIT_COMMITTER_EMAIL=index@localhost",
	}, env...)}
}

// kubectl runs kubectl, and with it krew and the plugin, as the user would.
func (u krewUser) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return u.run(t, u.home, "kubectl", args...)
}

func (u krewUser) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := command(t, dir, "env", append([]string{name}, args...)...) // env looks it up on the user's PATH
	cmd.Env = u.env
	return run(t, cmd)
}

// testOffline installs from the manifest and the archive alone. The user has some
// index, without which krew neither lists nor removes anything.
func testOffline(t *testing.T, tools tools, r release) {
	user := newUser(t, tools)
	user.newIndex(t, "other", "")
	user.kubectl(t, "krew", "install", "--manifest="+r.file("krew/vlan50.yaml"), "--archive="+r.file(r.here().archive()))
	user.testWorks(t, r.tag, r.commit)
	user.testCompletion(t)
	if out := user.kubectl(t, "krew", "upgrade", "vlan50"); !strings.Contains(out, "installed via manifest") {
		t.Errorf("krew does not say that it leaves the plugin alone:\n%s", out)
	}
	user.kubectl(t, "krew", "uninstall", "vlan50")
	user.testGone(t)
}

// here is the platform of this machine.
func (r release) here() platform {
	for _, p := range r.manifest.Spec.Platforms {
		if p.os() == runtime.GOOS && p.arch() == runtime.GOARCH {
			return p
		}
	}
	panic("no release for " + runtime.GOOS + "/" + runtime.GOARCH)
}

func (u krewUser) testWorks(t *testing.T, tag, commit string) {
	t.Helper()
	// Into a pipe krew prints INDEX/NAME, to be installed again elsewhere.
	listed := func(name string) bool { return name == "vlan50" || strings.HasSuffix(name, "/vlan50") }
	if list := u.kubectl(t, "krew", "list"); !slices.ContainsFunc(strings.Fields(list), listed) {
		t.Errorf("krew does not list the plugin:\n%s", list)
	}
	version := u.kubectl(t, "vlan50", "version")
	for _, want := range []string{"version:  " + tag + "\n", "commit:   " + commit + "\n", "go:       " + runtime.Version() + "\n"} {
		if !strings.Contains(version+"\n", want) {
			t.Errorf("no %q in what version prints:\n%s", want, version)
		}
	}
	help := u.kubectl(t, "vlan50", "canary", "retest", "--help")
	if want := "  kubectl vlan50 canary retest"; !strings.Contains(help, want) {
		t.Errorf("no %q in the help:\n%s", want, help)
	}
}

// testCompletion sets completion up as docs/install.md says and lets kubectl
// complete, which is what a shell asks it for.
func (u krewUser) testCompletion(t *testing.T) {
	t.Helper()
	u.kubectl(t, "vlan50", "completion", "kubectl", "--install", filepath.Join(u.home, ".local", "bin"))
	for words, want := range map[string]string{
		"vlan50 cana":                "canary",
		"vlan50 canary re":           "retest",
		"vlan50 canary retest --tim": "--timeout",
	} {
		got := []string{}
		for line := range strings.Lines(u.kubectl(t, append([]string{"__complete"}, strings.Fields(words)...)...)) {
			candidate, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, candidate)
		}
		if !slices.Contains(got, want) {
			t.Errorf("kubectl completes %q to %q, want %q among it", words, got, want)
		}
	}
}

func (u krewUser) testGone(t *testing.T) {
	t.Helper()
	if list := u.kubectl(t, "krew", "list"); strings.Contains(list, "vlan50") {
		t.Errorf("krew still lists the plugin:\n%s", list)
	}
	for _, pattern := range []string{"bin/kubectl-vlan50", "store/vlan50", "receipts/vlan50.yaml"} {
		if left, _ := filepath.Glob(filepath.Join(u.root, pattern)); len(left) > 0 {
			t.Errorf("left behind: %s", left)
		}
	}
}

// testIndex goes the way of users of a custom index: add it, install, upgrade
// when the index has a newer version, remove.
func testIndex(t *testing.T, tools tools, r release) {
	user := newUser(t, tools)
	index := user.newIndex(t, "vlan50", redirect(t, r))
	user.kubectl(t, "krew", "install", "vlan50/vlan50")
	user.testWorks(t, r.tag, r.commit)

	newer := r.next(t)
	user.publish(t, index, redirect(t, newer))
	user.kubectl(t, "krew", "upgrade", "vlan50")
	user.testWorks(t, newer.tag, r.commit)
	if diff := cmp.Diff([]string{newer.tag}, names(t, filepath.Join(user.root, "store", "vlan50"))); diff != "" {
		t.Errorf("versions in krew's store (-want +got):\n%s", diff)
	}

	user.kubectl(t, "krew", "uninstall", "vlan50")
	user.testGone(t)
	user.kubectl(t, "krew", "index", "remove", "vlan50")
}

// newIndex makes an index, with our manifest if there is one, and adds it.
func (u krewUser) newIndex(t *testing.T, name, manifest string) string {
	t.Helper()
	index := t.TempDir()
	u.run(t, index, "git", "init", "--quiet", "--initial-branch=main")
	check(t, os.Mkdir(filepath.Join(index, "plugins"), 0o755))
	check(t, os.WriteFile(filepath.Join(index, "plugins", ".gitkeep"), nil, 0o644))
	u.run(t, index, "git", "add", "plugins")
	u.run(t, index, "git", "commit", "--quiet", "--message", "empty")
	if manifest != "" {
		u.publish(t, index, manifest)
	}
	u.kubectl(t, "krew", "index", "add", name, index)
	return index
}

// publish puts a manifest into the index, where docs/release.md says it goes.
func (u krewUser) publish(t *testing.T, index, manifest string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(index, "plugins", "vlan50.yaml"), []byte(manifest), 0o644))
	u.run(t, index, "git", "add", "plugins/vlan50.yaml")
	u.run(t, index, "git", "commit", "--quiet", "--message", "vlan50")
}

// next is a higher version of the same commit, for this machine only: its
// archive and manifest are made here from GoReleaser's binary.
func (r release) next(t *testing.T) release {
	t.Helper()
	var major, minor, patch int
	_, err := fmt.Sscanf(r.tag, "v%d.%d.%d", &major, &minor, &patch)
	check(t, err)
	next := release{dir: filepath.Join(t.TempDir(), "next"), commit: r.commit, tag: fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)}
	run(t, command(t, "", "git", "clone", "--quiet", "--no-tags", r.dir, next.dir))
	run(t, command(t, next.dir, "git", "tag", next.tag))

	p := r.here()
	binary := filepath.Join(t.TempDir(), p.Bin)
	build := command(t, next.dir, "go", "tool", "-modfile=tools/release/go.mod", "goreleaser", "build", "--single-target", "--output", binary)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	run(t, build)
	archive := strings.ReplaceAll(p.archive(), strings.TrimPrefix(r.tag, "v"), strings.TrimPrefix(next.tag, "v"))
	check(t, os.MkdirAll(next.file("krew"), 0o755))
	pack(t, next.file(archive), binary, filepath.Join(next.dir, "LICENSE"))

	text := strings.ReplaceAll(r.read(t, "krew/vlan50.yaml"), strings.TrimPrefix(r.tag, "v"), strings.TrimPrefix(next.tag, "v"))
	text = strings.ReplaceAll(text, p.SHA256, sum(t, next.file(archive)))
	check(t, os.WriteFile(next.file("krew/vlan50.yaml"), []byte(text), 0o644))
	next.manifest = parseManifest(t, text)
	return next
}

func pack(t *testing.T, archive string, files ...string) {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for _, file := range files {
		data, err := os.ReadFile(file)
		check(t, err)
		check(t, writer.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: 0o755, Size: int64(len(data))}))
		_, err = writer.Write(data)
		check(t, err)
	}
	check(t, writer.Close())
	check(t, zipped.Close())
	check(t, os.WriteFile(archive, out.Bytes(), 0o644))
}

// testPlatforms installs the archives of the platforms that this machine is
// not: krew unpacks them and links the bin as it would there.
func testPlatforms(t *testing.T, tools tools, r release) {
	for _, p := range r.manifest.Spec.Platforms {
		t.Run(p.String(), func(t *testing.T) {
			user := newUser(t, tools, "KREW_OS="+p.os(), "KREW_ARCH="+p.arch())
			user.kubectl(t, "krew", "install", "--manifest="+r.file("krew/vlan50.yaml"), "--archive="+r.file(p.archive()))
			store := filepath.Join(user.root, "store", "vlan50", r.tag)
			if diff := cmp.Diff([]string{"LICENSE", "README.md", p.Bin}, names(t, store)); diff != "" {
				t.Errorf("unpacked (-want +got):\n%s", diff)
			}
			target, err := os.Readlink(filepath.Join(user.root, "bin", p.Bin))
			check(t, err)
			if want := filepath.Join(store, p.Bin); target != want {
				t.Errorf("krew links %s, want %s", target, want)
			}
		})
	}
}

// names lists a folder, in order.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	all := []string{}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}
