package target_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

const configFile = `
canary: general/canary
daemonSet: general/multus
timeout: 3m
contexts:
  home:
    canary: media/vlan20-canary
    settle: 7s
`

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestResolvePrecedence(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "config.yaml"), configFile)
	tests := []struct {
		name      string
		flags     target.Settings
		variables map[string]string
		context   string
		want      target.Settings
	}{
		{
			name: "the general part of the file", context: "work",
			want: target.Settings{Canary: "general/canary", DaemonSet: "general/multus", Timeout: "3m"},
		},
		{
			name: "the section of the context wins over it", context: "home",
			want: target.Settings{Canary: "media/vlan20-canary", DaemonSet: "general/multus", Timeout: "3m", Settle: "7s"},
		},
		{
			name: "a variable wins over the section", context: "home",
			variables: map[string]string{"VLAN50_CANARY": "v/c", "VLAN50_SETTLE": "8s", "VLAN50_TIMEOUT": "1m", "VLAN50_DAEMONSET": "v/d"},
			want:      target.Settings{Canary: "v/c", DaemonSet: "v/d", Timeout: "1m", Settle: "8s"},
		},
		{
			name: "a flag wins over all, each by itself", context: "home",
			flags:     target.Settings{Settle: "9s"},
			variables: map[string]string{"VLAN50_CANARY": "v/c", "VLAN50_SETTLE": "8s"},
			want:      target.Settings{Canary: "v/c", DaemonSet: "general/multus", Timeout: "3m", Settle: "9s"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := target.Resolve(test.flags, env(test.variables), path, test.context)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveFindsTheFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv("AppData", home)
	folder, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	named := writeFile(t, filepath.Join(home, "named.yaml"), "canary: named/c")
	other := writeFile(t, filepath.Join(home, "other.yaml"), "canary: other/c")
	variable := map[string]string{"VLAN50_CONFIG": other}

	resolve := func(want, path string, variables map[string]string) {
		t.Helper()
		got, err := target.Resolve(target.Settings{}, env(variables), path, "")
		if err != nil || got.Canary != want {
			t.Errorf("canary %q, error %v, want %q", got.Canary, err, want)
		}
	}
	resolve("", "", nil) // none there
	writeFile(t, filepath.Join(folder, "kubectl-vlan50", "config.yaml"), "canary: default/c")
	resolve("default/c", "", nil)
	resolve("other/c", "", variable)
	resolve("named/c", named, variable)
}

func TestResolveRefusesAFile(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct{ path, want string }{
		"that is not there":        {filepath.Join(dir, "missing.yaml"), "reading the config file: "},
		"with a key nobody knows":  {writeFile(t, filepath.Join(dir, "key.yaml"), "cannary: a/b"), `unknown field "cannary"`},
		"that is no YAML":          {writeFile(t, filepath.Join(dir, "broken.yaml"), "canary: [a"), "config file " + dir},
		"with a key given twice":   {writeFile(t, filepath.Join(dir, "twice.yaml"), "canary: a/b\ncanary: c/d"), "already set"},
		"with a number for a text": {writeFile(t, filepath.Join(dir, "number.yaml"), "timeout: 90"), "config file " + dir},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := target.Resolve(target.Settings{}, env(nil), test.path, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, test.want)
			}
		})
	}
}

func TestParseRef(t *testing.T) {
	tests := map[string]struct {
		text, fallback string
		want           evidence.Ref
		fails          bool
	}{
		"both":               {"media/canary", "downloads", evidence.Ref{Namespace: "media", Name: "canary"}, false},
		"the name alone":     {"canary", "downloads", evidence.Ref{Namespace: "downloads", Name: "canary"}, false},
		"no namespace":       {"canary", "", evidence.Ref{}, true},
		"nothing":            {"", "downloads", evidence.Ref{}, true},
		"an empty name":      {"media/", "downloads", evidence.Ref{}, true},
		"an empty namespace": {"/canary", "downloads", evidence.Ref{}, true},
		"too many parts":     {"pod/media/canary", "downloads", evidence.Ref{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := target.ParseRef(test.text, test.fallback)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Duration
		err  string
	}{
		"not set":        {"", time.Minute, ""},
		"seconds":        {"90s", 90 * time.Second, ""},
		"for ever":       {"0s", 0, ""},
		"zero":           {"0", 0, ""},
		"without a unit": {"90", 0, `timeout "90" is no duration: give a number with a unit, such as 90s or 5m`},
		"negative":       {"-1s", 0, `timeout "-1s" is no duration: give a number with a unit, such as 90s or 5m`},
		"a word":         {"long", 0, `timeout "long" is no duration: give a number with a unit, such as 90s or 5m`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := target.Duration("timeout", test.text, time.Minute)
			if text := ""; err != nil {
				if text = err.Error(); text != test.err {
					t.Errorf("error %q, want %q", text, test.err)
				}
			} else if got != test.want || test.err != "" {
				t.Errorf("got %s, want %s, error %q", got, test.want, test.err)
			}
		})
	}
}
