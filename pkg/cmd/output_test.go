package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

func TestColoured(t *testing.T) {
	tests := []struct {
		name, color, noColor string
		want                 bool
	}{
		{"no terminal", "auto", "", false},
		{"always", "always", "", true},
		{"always, though NO_COLOR is set", "always", "1", true},
		{"never", "never", "", false},
		{"NO_COLOR", "auto", "1", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", test.noColor)
			flags := &resultFlags{color: test.color}
			if got := flags.colored(&bytes.Buffer{}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, ok := terminal(file); ok {
		t.Error("a file is taken for a terminal")
	}
	if _, ok := terminal(&bytes.Buffer{}); ok {
		t.Error("a buffer is taken for a terminal")
	}
	if got := width(file); got != 80 {
		t.Errorf("the width of no terminal is %d", got)
	}
}

func TestProgressFlags(t *testing.T) {
	var out bytes.Buffer
	tests := []struct {
		name  string
		flags progressFlags
		want  report.Progress
		err   string
	}{
		{"no terminal", progressFlags{}, report.Lines{Out: &out}, ""},
		{"quiet", progressFlags{quiet: true}, report.Quiet{}, ""},
		{"events", progressFlags{events: "json"}, report.Events{Out: &out}, ""},
		{"events of another form", progressFlags{events: "yaml"}, nil, `--events "yaml": the only form is json`},
		{"both", progressFlags{events: "json", quiet: true}, nil, "--events and --quiet exclude each other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.flags.toProgress(&out)
			if test.err != "" {
				if err == nil || err.Error() != test.err || exitCode(err) != exitUsage {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %#v, %v", got, err)
			}
		})
	}
}

// The same evidence gives the same exit code in every form, and standard output
// holds the result alone.
func TestJudgeInEveryForm(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.json")
	if err := os.WriteFile(file, []byte(goodPod), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(t *testing.T, out string){
		"":     func(t *testing.T, out string) { t.Helper(); contains(t, out, "INCONCLUSIVE  Pod media/canary") },
		"wide": func(t *testing.T, out string) { t.Helper(); contains(t, out, "INCONCLUSIVE  Pod media/canary") },
		"name": func(t *testing.T, out string) { t.Helper(); contains(t, out, "canaryverdict.vlan50.dev/canary\n") },
		"yaml": func(t *testing.T, out string) { t.Helper(); contains(t, out, "\n  verdict: inconclusive\n") },
		"json": func(t *testing.T, out string) {
			t.Helper()
			var document map[string]any
			if err := json.Unmarshal([]byte(out), &document); err != nil || document["kind"] != "CanaryVerdict" {
				t.Errorf("%v: %s", err, out)
			}
		},
		"jsonpath={.status.verdict}":            func(t *testing.T, out string) { t.Helper(); equal(t, out, "inconclusive") },
		"go-template={{.status.verdict}}":       func(t *testing.T, out string) { t.Helper(); equal(t, out, "inconclusive") },
		"go-template={{.metadata.namespace}}\n": func(t *testing.T, out string) { t.Helper(); equal(t, out, "media\n") },
	}
	for format, see := range tests {
		t.Run(format, func(t *testing.T) {
			args := []string{"canary", "judge", "-f", file}
			if format != "" {
				args = append(args, "-o", format)
			}
			o := run(t, args...)
			if o.code != exitInconclusive || o.stderr != "" {
				t.Errorf("code %d, stderr %s", o.code, o.stderr)
			}
			see(t, o.stdout)
		})
	}
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not hold %q", text, part)
	}
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Standard input is the streams', not the process's.
func TestJudgeReadsStandardInput(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(goodPod), Out: &out, ErrOut: &errOut}
	if code := Main(t.Context(), streams, []string{"canary", "judge", "-f", "-"}); code != exitInconclusive || errOut.Len() > 0 {
		t.Errorf("code %d, stderr %s", code, errOut.String())
	}
	contains(t, out.String(), "INCONCLUSIVE  Pod media/canary")
}

// Two machines that share a home are not one: the lock of a process that runs
// on the other would be taken for a dead one's.
func TestLocalStateNamesTheMachine(t *testing.T) {
	t.Setenv("VLAN50_STATE_DIR", t.TempDir())
	store, process, err := localState("https://192.0.2.10:6443")
	if err != nil {
		t.Fatal(err)
	}
	id, err := store.Machine()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, process.Machine, id+"@"+host)
	if process.PID != os.Getpid() || !process.Alive(os.Getpid()) {
		t.Errorf("process: %+v", process)
	}
}
