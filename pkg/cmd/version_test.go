package cmd

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

func TestClientVersion(t *testing.T) {
	const revision = "0f9d2c7be41aa0c5d7d6d1b1c3b7f1f0a3d6e5c4"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "-trimpath", Value: "true"},
			{Key: "vcs.revision", Value: revision},
			{Key: "vcs.time", Value: "2026-11-30T16:31:49Z"},
			{Key: "vcs.modified", Value: modified},
		}
	}
	tests := map[string]struct {
		build *debug.BuildInfo
		want  versionInfo
	}{
		"release build: a clean checkout at a tag": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: vcs("false")},
			want:  versionInfo{Version: "v0.1.0", Commit: revision, Date: "2026-11-30T16:31:49Z"},
		},
		"go install of a release knows the checksum, not the commit": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0", Sum: "h1:5xHe="}},
			want:  versionInfo{Version: "v0.1.0", Commit: "unknown", Date: "unknown", Sum: "h1:5xHe="},
		},
		"go install of a branch: the pseudo-version knows the commit": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v0.1.1-0.20261130163149-0f9d2c7be41a", Sum: "h1:5xHe="}},
			want: versionInfo{
				Version: "v0.1.1-0.20261130163149-0f9d2c7be41a",
				Commit:  "0f9d2c7be41a", Date: "2026-11-30T16:31:49Z", Sum: "h1:5xHe=",
			},
		},
		"go build in a checkout with changes": {
			build: &debug.BuildInfo{
				Main:     debug.Module{Version: "v0.0.0-20261130163149-0f9d2c7be41a+dirty"},
				Settings: vcs("true"),
			},
			want: versionInfo{
				Version: "v0.0.0-20261130163149-0f9d2c7be41a+dirty",
				Commit:  revision + " with local changes", Date: "2026-11-30T16:31:49Z",
			},
		},
		"go build with -buildvcs=false, or from a tarball": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:  versionInfo{Version: "(devel)", Commit: "unknown", Date: "unknown"},
		},
		"a test binary has no version of its own": {
			build: &debug.BuildInfo{},
			want:  versionInfo{Version: "(devel)", Commit: "unknown", Date: "unknown"},
		},
		"built without module support": {
			build: nil,
			want:  versionInfo{Version: "(devel)", Commit: "unknown", Date: "unknown"},
		},
		"digits that are no date are no pseudo-version": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0-0.20269930163149-0f9d2c7be41a"}},
			want:  versionInfo{Version: "v0.1.0-0.20269930163149-0f9d2c7be41a", Commit: "unknown", Date: "unknown"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := clientVersion(tt.build)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(versionInfo{}, "Go", "Platform")); diff != "" {
				t.Errorf("clientVersion (-want +got):\n%s", diff)
			}
			if want := runtime.GOOS + "/" + runtime.GOARCH; got.Go != runtime.Version() || got.Platform != want {
				t.Errorf("go and platform: %q and %q, want %q and %q", got.Go, got.Platform, runtime.Version(), want)
			}
		})
	}
}

func TestVersionNeedsNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	decode := map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	}
	for _, format := range []string{"", "json", "yaml"} {
		t.Run("format "+format, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			if code := Main(t.Context(), streams, []string{"version", "-o", format}); code != 0 {
				t.Fatalf("exit code %d: %s", code, errOut)
			}
			if format == "" {
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				want := []string{"version:", "commit:", "date:", "go:", "platform:"}
				for i, line := range lines {
					lines[i], _, _ = strings.Cut(line, " ")
				}
				if diff := cmp.Diff(want, lines); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
				return
			}
			got := versionInfo{}
			if err := decode[format](out.Bytes(), &got); err != nil {
				t.Fatalf("%v in:\n%s", err, out)
			}
			if diff := cmp.Diff(runtime.Version(), got.Go); diff != "" {
				t.Errorf("go (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionServerAwayStillPrintsTheClient(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := Main(t.Context(), streams, []string{"version", "--server", "--server=false", "-o", "xml"}); code != 2 {
		t.Errorf("an unknown format: exit code %d, want 2", code)
	}
	out.Reset()
	errOut.Reset()
	code := Main(t.Context(), streams, []string{"version", "--server"})
	if code != 1 || errOut.Len() == 0 {
		t.Errorf("exit code %d and %q on standard error, want 1 and the reason", code, errOut)
	}
	if !strings.HasPrefix(out.String(), "version:") {
		t.Errorf("standard output %q, want the version of this tool", out)
	}
}
