// Package buildcache builds the large programs the tests need, once a machine.
//
// A binary lies in the user's cache folder under a hash of its module's go.mod,
// go.sum and sources, so that a fresh clone on the same machine is warm and a
// change of a pinned version never meets an old binary.
package buildcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Program is one command of a nested module.
type Program struct {
	// Name is the file name of the binary.
	Name string
	// Module is the directory of the nested module, relative to the top of the
	// project; Package is the command's package path inside it ("./cmd/x"), or
	// the import path of a dependency's command.
	Module, Package string
	// Flags are further arguments of go build; they are part of the key.
	Flags []string
	// Cold says about how long a build takes on two cores with empty caches.
	Cold time.Duration
}

// Root is the top folder of the project, found from the working directory.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the project's go.mod: %w", err)
	}
	dir := filepath.Dir(strings.TrimSpace(string(out)))
	for !isRoot(dir) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("not inside the project: no go.mod of %s above the working directory", module)
		}
		dir = parent
	}
	return dir, nil
}

const module = "github.com/vlan50/kubectl-vlan50"

func isRoot(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(mod, []byte("module "+module+"\n"))
}

// Dir is the folder of all cached binaries; VLAN50_BUILD_CACHE overrides it.
func Dir() (string, error) {
	if dir := os.Getenv("VLAN50_BUILD_CACHE"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache folder: %w", err)
	}
	return filepath.Join(cache, "kubectl-vlan50", "build"), nil
}

// Build gives the path of the program's binary, and builds it first where the
// cache has none. What it does and how long that may take goes to progress.
// Two processes that ask at once build once.
func Build(ctx context.Context, p Program, progress io.Writer) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	key, err := p.key(filepath.Join(root, p.Module))
	if err != nil {
		return "", fmt.Errorf("hashing the sources of %s: %w", p.Name, err)
	}
	cache, err := Dir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, p.Name+"-"+key)
	binary := filepath.Join(dir, p.Name)
	if whole(binary) {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(cache, "lock"), progress)
	if err != nil {
		return "", fmt.Errorf("waiting for another build: %w", err)
	}
	defer unlock()
	if whole(binary) {
		return binary, nil
	}
	return binary, p.build(ctx, filepath.Join(root, p.Module), binary, progress)
}

func (p Program) build(ctx context.Context, module, binary string, progress io.Writer) error {
	fmt.Fprintf(progress, "building %s (once a machine; %s with empty caches, seconds otherwise)\n", p.Name, p.Cold)
	start := time.Now()
	args := append([]string{"build", "-ldflags=-s -w"}, p.Flags...)
	part := binary + ".part"
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", part, p.Package)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.Name, err, out.String())
	}
	if err := note(part, binary); err != nil {
		return err
	}
	// Renamed into place, so that an interrupted build is never taken for one.
	if err := os.Rename(part, binary); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s in %s\n", p.Name, time.Since(start).Round(time.Second))
	return nil
}

// key hashes all that decides what the binary is.
func (p Program) key(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, p.Package, p.Flags)
	err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !source(entry.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.ToSlash(name), len(data), data)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

func source(name string) bool {
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	return name == "go.mod" || name == "go.sum" || filepath.Ext(name) == ".go"
}
