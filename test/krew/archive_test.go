//go:build krew

package krew

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entry is a file of an archive.
type entry struct {
	Name  string
	Mode  os.FileMode
	Owner string // of tar only
	Time  time.Time
	data  []byte
}

// testArchives lists each archive exactly and looks into its binary.
func (r release) testArchives(t *testing.T) {
	committed, err := time.Parse(time.RFC3339, run(t, command(t, r.dir, "git", "log", "-1", "--format=%cI")))
	check(t, err)
	for _, p := range r.manifest.Spec.Platforms {
		t.Run(p.String(), func(t *testing.T) {
			owner := "root:root 0:0"
			if p.os() == "windows" {
				owner = ""
			}
			entries := unpack(t, r.file(p.archive()))
			want := []entry{
				{Name: "LICENSE", Mode: 0o644, Owner: owner, Time: committed.UTC()},
				{Name: "README.md", Mode: 0o644, Owner: owner, Time: committed.UTC()},
				{Name: p.Bin, Mode: 0o755, Owner: owner, Time: committed.UTC()},
			}
			if diff := cmp.Diff(want, entries, cmp.Transformer("public", entry.public)); diff != "" {
				t.Fatalf("entries (-want +got):\n%s", diff)
			}
			for _, e := range entries[:2] {
				original, err := os.ReadFile(filepath.Join(r.dir, e.Name))
				check(t, err)
				if !bytes.Equal(original, e.data) {
					t.Errorf("%s is not that of the repository", e.Name)
				}
			}
			r.testBinary(t, p, entries[2].data)
		})
	}
}

// public is what cmp compares of an entry.
func (e entry) public() string {
	return fmt.Sprintf("%s %s %s %s", e.Mode, e.Owner, e.Time.Format(time.RFC3339), e.Name)
}

func (r release) testBinary(t *testing.T, p platform, binary []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	check(t, err)
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{
		"GOOS": p.os(), "GOARCH": p.arch(), "CGO_ENABLED": "0", "-trimpath": "true",
		"vcs.revision": r.commit, "vcs.modified": "false",
	} {
		if settings[key] != want {
			t.Errorf("built with %s=%q, want %q", key, settings[key], want)
		}
	}
	if info.Main.Version != r.tag {
		t.Errorf("version %q, want the tag %q", info.Main.Version, r.tag)
	}
	if name := debugSection(t, p.os(), binary); name != "" {
		t.Errorf("not stripped: there is a section %s", name)
	}
	for what, text := range r.traces(t) {
		if bytes.Contains(binary, []byte(text)) {
			t.Errorf("the binary holds %s, %q", what, text)
		}
	}
}

// traces are strings that name the machine or the person that built.
func (r release) traces(t *testing.T) map[string]string {
	t.Helper()
	traces := map[string]string{
		"the folder of the build": filepath.Base(r.dir),
		"the name of the builder": builder,
	}
	for _, key := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		traces[key] = run(t, command(t, r.dir, "go", "env", key))
	}
	// A name such as root, or a host called vm, would be found in any binary.
	if host, err := os.Hostname(); err == nil && len(host) > 8 && host != "localhost" {
		traces["the name of the host"] = host
	}
	if who, err := user.Current(); err == nil && who.Username != "root" {
		traces["the home of the user"] = who.HomeDir + "/"
	}
	return traces
}

// debugSection gives the name of a section that stripping removes.
func debugSection(t *testing.T, goos string, binary []byte) string {
	t.Helper()
	reader := bytes.NewReader(binary)
	names := []string{}
	switch goos {
	case "linux":
		file, err := elf.NewFile(reader)
		check(t, err)
		for _, section := range file.Sections {
			names = append(names, section.Name)
		}
	case "darwin":
		file, err := macho.NewFile(reader)
		check(t, err)
		for _, section := range file.Sections {
			names = append(names, section.Name)
		}
	case "windows":
		file, err := pe.NewFile(reader)
		check(t, err)
		for _, section := range file.Sections {
			// Go's linker always leaves a table for symbols, here an empty one.
			if section.Name != ".symtab" || len(file.Symbols) > 0 {
				names = append(names, section.Name)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("no sections at all")
	}
	for _, name := range names {
		if strings.Contains(name, "debug") || name == ".symtab" {
			return name
		}
	}
	return ""
}

// testChecksums holds checksums.txt against the files, and wants one for each
// archive and SBOM.
func (r release) testChecksums(t *testing.T) {
	got := map[string]string{}
	for line := range strings.Lines(r.read(t, "checksums.txt")) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got[name] = digest
	}
	want := map[string]string{}
	for _, p := range r.manifest.Spec.Platforms {
		for _, name := range []string{p.archive(), r.sbom(p)} {
			want[name] = sum(t, r.file(name))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checksums.txt (-want +got):\n%s", diff)
	}
}

func (r release) sbom(p platform) string {
	return fmt.Sprintf("kubectl-vlan50_%s_%s_%s.cdx.json", strings.TrimPrefix(r.tag, "v"), p.os(), p.arch())
}

// testSBOMs wants each module in the binary in its SBOM, with its version.
func (r release) testSBOMs(t *testing.T) {
	for _, p := range r.manifest.Spec.Platforms {
		t.Run(p.String(), func(t *testing.T) {
			var bom struct {
				BomFormat string
				Metadata  struct {
					Component struct{ Name, Version string }
				}
				// Go's standard library is one of them.
				Components []struct{ Name, Version string }
			}
			check(t, json.Unmarshal([]byte(r.read(t, r.sbom(p))), &bom))
			if bom.BomFormat != "CycloneDX" || bom.Metadata.Component.Version != r.tag {
				t.Errorf("a %s document of version %q, want CycloneDX of %q", bom.BomFormat, bom.Metadata.Component.Version, r.tag)
			}
			got := map[string]string{}
			for _, component := range bom.Components {
				got[component.Name] = component.Version
			}
			entries := unpack(t, r.file(p.archive()))
			info, err := buildinfo.Read(bytes.NewReader(entries[len(entries)-1].data))
			check(t, err)
			if diff := cmp.Diff(modules(info), got); diff != "" {
				t.Errorf("components (-in the binary +in the SBOM):\n%s", diff)
			}
		})
	}
}

func modules(info *debug.BuildInfo) map[string]string {
	all := map[string]string{"std": info.GoVersion}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		all[module.Path] = module.Version
	}
	return all
}

func sum(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	check(t, err)
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

func unpack(t *testing.T, archive string) []entry {
	t.Helper()
	if strings.HasSuffix(archive, ".zip") {
		return unzip(t, archive)
	}
	return untar(t, archive)
}

func untar(t *testing.T, archive string) []entry {
	t.Helper()
	file, err := os.Open(archive)
	check(t, err)
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	check(t, err)
	entries := []entry{}
	for reader := tar.NewReader(zipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		check(t, err)
		data, err := io.ReadAll(reader)
		check(t, err)
		entries = append(entries, entry{
			Name: header.Name, Mode: header.FileInfo().Mode(), Time: header.ModTime.UTC(), data: data,
			Owner: fmt.Sprintf("%s:%s %d:%d", header.Uname, header.Gname, header.Uid, header.Gid),
		})
	}
}

func unzip(t *testing.T, archive string) []entry {
	t.Helper()
	reader, err := zip.OpenReader(archive)
	check(t, err)
	defer reader.Close()
	entries := []entry{}
	for _, file := range reader.File {
		content, err := file.Open()
		check(t, err)
		data, err := io.ReadAll(content)
		check(t, err)
		entries = append(entries, entry{Name: file.Name, Mode: file.Mode(), Time: file.Modified.UTC(), data: data})
	}
	return entries
}
