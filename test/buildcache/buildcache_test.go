package buildcache_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// project is a checkout with one small program in a nested module, and an empty
// cache. The test runs in it.
func project(t *testing.T) (root string, program buildcache.Program) {
	t.Helper()
	root = t.TempDir()
	for name, content := range map[string]string{
		"go.mod":           "module github.com/vlan50/kubectl-vlan50\n\ngo 1.26.0\n",
		"tiny/go.mod":      "module example.test/tiny\n\ngo 1.26.0\n",
		"tiny/go.sum":      "",
		"tiny/cmd/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"one\") }\n",
		"tiny/cmd/note.md": "not a source",
	} {
		write(t, filepath.Join(root, name), content)
	}
	t.Chdir(root)
	t.Setenv("VLAN50_BUILD_CACHE", filepath.Join(t.TempDir(), "cache"))
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	return root, buildcache.Program{Name: "tiny", Module: "tiny", Package: "./cmd"}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// build gives the binary's path, and whether it was built just now.
func build(t *testing.T, p buildcache.Program) (path string, built bool) {
	t.Helper()
	var progress bytes.Buffer
	path, err := buildcache.Build(t.Context(), p, &progress)
	if err != nil {
		t.Fatal(err)
	}
	return path, strings.Contains(progress.String(), "building tiny")
}

func says(t *testing.T, path, want string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil || string(out) != want {
		t.Errorf("%s says %q, %v; want %q", path, out, err, want)
	}
}

func TestBuildOnceForTheSameSources(t *testing.T) {
	root, program := project(t)
	first, built := build(t, program)
	if !built {
		t.Error("an empty cache had a binary")
	}
	says(t, first, "one")
	for name, change := range map[string]func(){
		"nothing changed":           func() {},
		"a text changed":            func() { write(t, filepath.Join(root, "tiny/cmd/note.md"), "other") },
		"a test was added":          func() { write(t, filepath.Join(root, "tiny/cmd/main_test.go"), "package main\n") },
		"another folder is changed": func() { write(t, filepath.Join(root, "other/main.go"), "package main\n") },
		"called from a subfolder":   func() { t.Chdir(filepath.Join(root, "tiny", "cmd")) },
	} {
		change()
		if again, built := build(t, program); built || again != first {
			t.Errorf("%s: built %v in %s", name, built, again)
		}
	}
}

func TestBuildAgainForOtherSources(t *testing.T) {
	root, program := project(t)
	seen := map[string]bool{}
	first, _ := build(t, program)
	seen[first] = true
	for name, change := range map[string]func(){
		"a source changed": func() {
			write(t, filepath.Join(root, "tiny/cmd/main.go"), "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"two\") }\n")
		},
		"a source was added": func() { write(t, filepath.Join(root, "tiny/cmd/more.go"), "package main\n") },
		"go.mod changed":     func() { write(t, filepath.Join(root, "tiny/go.mod"), "module example.test/tiny\n\ngo 1.26.1\n") },
		"go.sum changed": func() {
			write(t, filepath.Join(root, "tiny/go.sum"), "example.test/x v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
		},
		"other flags": func() { program.Flags = []string{"-tags=x"} },
	} {
		change()
		path, built := build(t, program)
		if !built || seen[path] {
			t.Errorf("%s: built %v in %s", name, built, path)
		}
		seen[path] = true
	}
	// What was built before is still there: another checkout may use it.
	says(t, first, "one")
}

func TestBuildOfTwoAtOnceIsOne(t *testing.T) {
	_, program := project(t)
	var wg sync.WaitGroup
	progress := make([]bytes.Buffer, 4)
	paths := make([]string, len(progress))
	for i := range progress {
		wg.Go(func() {
			var err error
			if paths[i], err = buildcache.Build(t.Context(), program, &progress[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	builds := 0
	for i := range progress {
		builds += strings.Count(progress[i].String(), "building tiny")
		if paths[i] != paths[0] {
			t.Errorf("paths %s and %s", paths[i], paths[0])
		}
	}
	if builds != 1 {
		t.Errorf("%d builds", builds)
	}
	says(t, paths[0], "one")
}

func TestBuildAgainWhatIsDamaged(t *testing.T) {
	_, program := project(t)
	binary, _ := build(t, program)
	for name, damage := range map[string]func() error{
		"cut short":      func() error { return os.Truncate(binary, 4096) },
		"emptied":        func() error { return os.Truncate(binary, 0) },
		"no size noted":  func() error { return os.Remove(binary + ".size") },
		"an empty note":  func() error { return os.Truncate(binary+".size", 0) },
		"no binary left": func() error { return os.Remove(binary) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if path, built := build(t, program); !built || path != binary {
			t.Errorf("%s: built %v in %s", name, built, path)
		}
		says(t, binary, "one")
	}
	if _, built := build(t, program); built {
		t.Error("what is whole was built again")
	}
}

func TestBuildStopsWaitingForAnother(t *testing.T) {
	_, program := project(t)
	cache, err := buildcache.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(cache, "lock")).Lock()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var progress bytes.Buffer
	if _, err := buildcache.Build(ctx, program, &progress); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
	if said := progress.String(); said != "waiting for another build\n" {
		t.Errorf("it says %q", said)
	}
	unlock()
	// The lock that came too late was let go.
	if _, built := build(t, program); !built {
		t.Error("it was built while another had the lock")
	}
}

func TestBuildThatFailsLeavesNothing(t *testing.T) {
	root, program := project(t)
	write(t, filepath.Join(root, "tiny/cmd/main.go"), "package main\n\nfunc main() { undefined() }\n")
	for range 2 {
		_, err := buildcache.Build(t.Context(), program, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "building tiny: ") || !strings.Contains(err.Error(), "undefined") {
			t.Errorf("error: %v", err)
		}
	}
}

func TestRootIsFoundFromANestedModule(t *testing.T) {
	root, _ := project(t)
	want, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "tiny", "cmd"))
	if got, err := buildcache.Root(t.Context()); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	t.Chdir(t.TempDir())
	if got, err := buildcache.Root(t.Context()); err == nil {
		t.Errorf("found %s outside of any project", got)
	}
}
