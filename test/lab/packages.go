//go:build linux

package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packaged is a program that comes as a Debian package.
type packaged struct {
	name, pkg string
	// static programs run inside images, where no library is.
	static bool
}

func packagedPrograms() []packaged {
	return []packaged{
		{name: "containerd", pkg: "containerd"},
		{name: "containerd-shim-runc-v2", pkg: "containerd"},
		{name: "ctr", pkg: "containerd"},
		{name: "runc", pkg: "runc"},
		{name: "busybox", pkg: "busybox-static", static: true},
	}
}

// programDirs are where programs lie, on the machine or in an unpacked package.
func programDirs() []string {
	return []string{"usr/local/bin", "usr/local/sbin", "usr/bin", "usr/sbin", "bin", "sbin"}
}

// findPackages gives the path of each packaged program. What the machine does
// not have is fetched and unpacked into the cache, not installed: so no service
// starts, and nothing has to be taken away again.
func findPackages(ctx context.Context, progress io.Writer) (map[string]string, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	// Two that unpack into one folder at once would be in each other's way.
	release, err := lock(ctx, filepath.Join(cache, "debian.lock"), func(pid int) {
		fmt.Fprintf(progress, "waiting for process %d, which fetches packages\n", pid)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for another fetch of packages: %w", err)
	}
	defer release()
	paths := map[string]string{}
	for _, program := range packagedPrograms() {
		path := lookIn("/", program)
		if path == "" {
			dir := filepath.Join(cache, "debian", program.pkg)
			if path, err = fromPackage(ctx, dir, program, progress); err != nil {
				return nil, err
			}
		}
		paths[program.name] = path
	}
	return paths, nil
}

func fromPackage(ctx context.Context, dir string, program packaged, progress io.Writer) (string, error) {
	if path := lookIn(dir, program); path != "" {
		return path, nil
	}
	if err := fetchPackage(ctx, dir, program.pkg, progress); err != nil {
		return "", fmt.Errorf("the lab needs the program %q: install the package %s (fetching it failed: %w)", program.name, program.pkg, err)
	}
	if path := lookIn(dir, program); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("the package %s has no usable program %q: install one", program.pkg, program.name)
}

func lookIn(root string, program packaged) string {
	for _, dir := range programDirs() {
		path := filepath.Join(root, dir, program.name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && usable(path, program.static) {
			return path
		}
	}
	return ""
}

// usable reports whether a program is whole, as the section headers at its end can
// be read, and whether it needs no dynamic linker where it must not.
func usable(path string, static bool) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	if !static {
		return true
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// fetchPackage unpacks a package into dir.
func fetchPackage(ctx context.Context, dir, pkg string, progress io.Writer) error {
	fmt.Fprintf(progress, "fetching the package %s into the cache (it is not installed)\n", pkg)
	final := dir
	dir += ".unpacking" // one that is cut short must not look whole
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	get, err := newApt(filepath.Join(filepath.Dir(filepath.Dir(dir)), "apt"))
	if err != nil {
		return err
	}
	if err := get.download(ctx, dir, pkg); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(archives) == 0 {
		return fmt.Errorf("apt-get fetched no archive of %s", pkg)
	}
	for _, archive := range archives {
		if err := run(ctx, dir, "dpkg-deb", "--extract", archive, dir); err != nil {
			return err
		}
		if err := os.Remove(archive); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(final), os.Rename(dir, final))
}

// run runs a command to its end; its output speaks only in the error.
func run(ctx context.Context, dir string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
