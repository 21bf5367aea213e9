//go:build krew

package krew

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifest is a krew manifest, as far as ours goes: a field that it has not is
// an error.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`

	// header are the comments at the top of the file.
	header string
}

type platform struct {
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	Bin      string               `json:"bin"`
	Selector metav1.LabelSelector `json:"selector"`
}

func (p platform) os() string      { return p.Selector.MatchLabels["os"] }
func (p platform) arch() string    { return p.Selector.MatchLabels["arch"] }
func (p platform) String() string  { return p.os() + "/" + p.arch() }
func (p platform) archive() string { return path.Base(p.URI) }

func parseManifest(t *testing.T, text string) manifest {
	t.Helper()
	var m manifest
	check(t, yaml.UnmarshalStrict([]byte(text), &m))
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		m.header += line
	}
	return m
}

// testManifest holds the rules that krew's validation does not know: those of
// its reviewers, and that the manifest tells the truth about the archives.
func (r release) testManifest(t *testing.T) {
	spec := r.manifest.Spec
	if spec.Version != r.tag {
		t.Errorf("version %q, want the tag %q", spec.Version, r.tag)
	}
	if length := len(spec.ShortDescription); length == 0 || length > 50 {
		t.Errorf("short description of %d characters, want at most 50", length)
	}
	for line := range strings.Lines(spec.Description + "\n" + spec.Caveats) {
		if len(line) > 81 {
			t.Errorf("a line over 80 characters: %q", line)
		}
	}
	for _, word := range []string{"Multus", "right to"} {
		if !strings.Contains(spec.Description, word) {
			t.Errorf("the description does not say what the plugin needs: no %q in it", word)
		}
	}
	got := map[string]string{}
	for _, p := range spec.Platforms {
		got[p.String()] = p.Bin
		if want := "https://github.com/vlan50/kubectl-vlan50/releases/download/" + r.tag + "/" + p.archive(); p.URI != want {
			t.Errorf("%s: uri %q, want %q", p, p.URI, want)
		}
		if want := sum(t, r.file(p.archive())); p.SHA256 != want {
			t.Errorf("%s: sha256 %s, want that of the archive, %s", p, p.SHA256, want)
		}
	}
	want := map[string]string{
		"linux/amd64": "kubectl-vlan50", "linux/arm64": "kubectl-vlan50",
		"darwin/amd64": "kubectl-vlan50", "darwin/arm64": "kubectl-vlan50",
		"windows/amd64": "kubectl-vlan50.exe", "windows/arm64": "kubectl-vlan50.exe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bin of each platform (-want +got):\n%s", diff)
	}
	if len(spec.Platforms) != len(want) {
		t.Errorf("%d platforms, want %d: each once", len(spec.Platforms), len(want))
	}
}

// testValidation runs krew's validation with installation for every platform; it
// downloads, so that it gets the archives from a server on the loopback.
func testValidation(t *testing.T, tools tools, r release) {
	text := redirect(t, r)
	file := filepath.Join(t.TempDir(), "vlan50.yaml") // krew takes the name from it
	check(t, os.WriteFile(file, []byte(text), 0o644))
	validate := command(t, "", tools.validate, "-manifest", file)
	validate.Env = newUser(t, tools).env
	out := run(t, validate)
	if want := fmt.Sprintf("all %d spec.platforms installed fine", len(r.manifest.Spec.Platforms)); !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}

// redirect gives the release's manifest with its archives on a server of this
// test; all else stays as it is.
func redirect(t *testing.T, r release) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(r.file(""))))
	t.Cleanup(server.Close)
	text := r.read(t, "krew/vlan50.yaml")
	for _, p := range r.manifest.Spec.Platforms {
		text = strings.ReplaceAll(text, p.URI, server.URL+"/"+p.archive())
	}
	return text
}

// testDrift compares the manifest of the repository with that of this build,
// all but what differs by nature: the bytes of another commit.
func testDrift(t *testing.T, committed manifest, r release) {
	normal := func(m manifest) manifest {
		m.header = ""
		platforms := []platform{}
		for _, p := range m.Spec.Platforms {
			p.SHA256 = ""
			p.URI = strings.ReplaceAll(p.URI, strings.TrimPrefix(m.Spec.Version, "v"), "VERSION")
			platforms = append(platforms, p)
		}
		m.Spec.Version, m.Spec.Platforms = "", platforms
		return m
	}
	if diff := cmp.Diff(normal(r.manifest), normal(committed), cmp.AllowUnexported(manifest{})); diff != "" {
		t.Errorf("plugin.yaml is not of the template in .goreleaser.yaml; docs/release.md says how it is written (-template +plugin.yaml):\n%s", diff)
	}
}

var origin = regexp.MustCompile(`# Release (\S+) of commit ([0-9a-f]{40}), built with (\S+)\.`)

// testReal builds the commit that plugin.yaml names and compares the checksums.
func testReal(t *testing.T, root string, committed manifest, r release) {
	match := origin.FindStringSubmatch(committed.header)
	if match == nil {
		t.Fatalf("the header of plugin.yaml does not say what it was made from:\n%s", committed.header)
	}
	tag, commit, toolchain := match[1], match[2], match[3]
	if tag != committed.Spec.Version {
		t.Errorf("plugin.yaml is of %s in its header and of %s below", tag, committed.Spec.Version)
	}
	if toolchain != runtime.Version() {
		t.Skipf("plugin.yaml was made with %s, this is %s: other bytes", toolchain, runtime.Version())
	}
	if command(t, root, "git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		t.Skipf("this clone has no commit %s, from which plugin.yaml was made", commit)
	}
	if commit != r.commit || tag != r.tag {
		r = build(t, root, commit, tag)
	}
	if diff := cmp.Diff(r.manifest.Spec, committed.Spec); diff != "" {
		t.Errorf("plugin.yaml is not what its commit gives (-built +plugin.yaml):\n%s", diff)
	}
}

// readCommitted reads plugin.yaml, under the next version where -update and
// -release say so.
func readCommitted(t *testing.T, root string) manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "plugin.yaml"))
	check(t, err)
	m := parseManifest(t, string(text))
	if *update && *nextVersion != "" {
		m.Spec.Version = *nextVersion
	}
	return m
}

func writeCommitted(t *testing.T, root string, r release) {
	t.Helper()
	_, body, _ := strings.Cut(r.read(t, "krew/vlan50.yaml"), "\n")
	header := "# Generated from .goreleaser.yaml, do not edit; docs/release.md says how.\n" +
		fmt.Sprintf("# Release %s of commit %s, built with %s.\n", r.tag, r.commit, runtime.Version())
	check(t, os.WriteFile(filepath.Join(root, "plugin.yaml"), []byte(header+body), 0o644))
}
