//go:build krew

// Package krew proves the packaging. It builds the release of HEAD in two clones
// and takes it through what users do with it: krew's own validation, offline
// installation, an index, an upgrade, a removal, and unpacking on the platforms
// that this machine is not. No step needs a network but the Go module proxy.
package krew

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// TestRelease builds once and shows one property of the release after another.
func TestRelease(t *testing.T) {
	root, err := buildcache.Root(t.Context())
	check(t, err)
	if changes := run(t, command(t, root, "git", "status", "--porcelain")); changes != "" {
		t.Logf("the release is that of HEAD, without these changes:\n%s", changes)
	}
	head := run(t, command(t, root, "git", "rev-parse", "HEAD"))
	committed := readCommitted(t, root)

	release := build(t, root, head, committed.Spec.Version)
	t.Run("two builds give the same bytes", func(t *testing.T) {
		again := build(t, root, head, committed.Spec.Version)
		for _, file := range []string{"checksums.txt", "krew/vlan50.yaml"} {
			if diff := cmp.Diff(release.read(t, file), again.read(t, file)); diff != "" {
				t.Errorf("%s (-first +second):\n%s", file, diff)
			}
		}
	})
	if *update {
		writeCommitted(t, root, release)
		committed = readCommitted(t, root)
	}
	t.Run("checksums", release.testChecksums)
	t.Run("archives", release.testArchives)
	t.Run("SBOMs", release.testSBOMs)
	t.Run("manifest", release.testManifest)
	t.Run("plugin.yaml is of the same template", func(t *testing.T) { testDrift(t, committed, release) })
	t.Run("plugin.yaml has real checksums", func(t *testing.T) { testReal(t, root, committed, release) })

	tools := buildTools(t)
	t.Run("krew finds the manifest valid", func(t *testing.T) { testValidation(t, tools, release) })
	t.Run("install offline", func(t *testing.T) { testOffline(t, tools, release) })
	t.Run("install from an index, upgrade, remove", func(t *testing.T) { testIndex(t, tools, release) })
	t.Run("other platforms", func(t *testing.T) { testPlatforms(t, tools, release) })
}

var (
	update      = flag.Bool("update", false, "write plugin.yaml from this build of HEAD")
	nextVersion = flag.String("release", "", "with -update: the version to write; default the one in plugin.yaml")
)

// release is the outcome of `make dist` in a clone of one commit under one tag.
type release struct {
	dir, commit, tag string
	manifest         manifest
}

// builder is who builds: a name that must not be found in any binary.
const builder = "the-build-user"

// build clones the project, tags the commit and cuts the release, as docs/release.md
// says it is done, apart from publishing.
func build(t *testing.T, root, commit, tag string) release {
	t.Helper()
	r := release{dir: filepath.Join(t.TempDir(), "the-build-folder"), commit: commit, tag: tag}
	run(t, command(t, root, "git", "clone", "--quiet", "--no-tags", "--no-checkout", root, r.dir))
	run(t, command(t, r.dir, "git", "checkout", "--quiet", "--detach", commit))
	run(t, command(t, r.dir, "git", "tag", tag))
	make := command(t, r.dir, "make", "dist")
	make.Env = append(os.Environ(), "USER="+builder, "LOGNAME="+builder)
	out := run(t, make)
	_, sizes, _ := strings.Cut(out, "release succeeded")
	t.Logf("release %s of %s:%s", tag, commit, sizes)
	r.manifest = parseManifest(t, r.read(t, "krew/vlan50.yaml"))
	return r
}

// file is the path of a file in dist.
func (r release) file(name string) string {
	return filepath.Join(r.dir, "dist", filepath.FromSlash(name))
}

func (r release) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(r.file(name))
	check(t, err)
	return string(text)
}

// command prepares a program; its environment is that of the test unless set.
func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	return cmd
}

// run gives what the program printed on both streams, without the space around it.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
