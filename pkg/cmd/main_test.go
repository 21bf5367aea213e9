package cmd

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write the golden files anew")

// outcome is what one command line gave.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs one command line as a user whose machine knows no cluster.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "config"), "XDG_STATE_HOME": filepath.Join(home, "state"),
		"KUBECONFIG": filepath.Join(home, "kubeconfig"), "KUBECACHEDIR": "/cache", "NO_COLOR": "",
		"VLAN50_CONFIG": "", "VLAN50_STATE_DIR": "", "VLAN50_CANARY": "", "VLAN50_DAEMONSET": "", "VLAN50_TIMEOUT": "", "VLAN50_SETTLE": "",
	} {
		t.Setenv(name, value)
	}
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	return outcome{Main(t.Context(), streams, args), out.String(), errOut.String()}
}

// oneError checks that nothing but one line was said, and how it begins.
func (o outcome) oneError(t *testing.T, code int, want string) {
	t.Helper()
	if o.code != code || o.stdout != "" || !strings.HasPrefix(o.stderr, "error: ") || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, want) {
		t.Errorf("code %d, want %d\nstdout: %s\nstderr: %s\nwant: %s", o.code, code, o.stdout, o.stderr, want)
	}
}

const (
	goodPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "canary", "namespace": "media", "annotations": {"k8s.v1.cni.cncf.io/networks": "vlan50"}},
 "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}`
	deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}`
)

func TestWrongUsageIsToldInOneLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	forged := strings.Replace(goodPod, `"vlan50"`, `"vlan50", "k8s.v1.cni.cncf.io/network-status": "[]"`, 1)
	good := file("good.json", goodPod)
	tests := []struct {
		name string
		args string
		want string
	}{
		{"unknown command", "frobnicate", `there is no command "frobnicate"; see 'kubectl vlan50 --help'`},
		{"unknown subcommand", "canary frobnicate", `there is no command "frobnicate"; see 'kubectl vlan50 canary --help'`},
		{"unknown flag", "canary retest --frobnicate", "unknown flag: --frobnicate; see 'kubectl vlan50 canary retest --help'"},
		{"unknown short flag", "canary retest -Z", "unknown shorthand flag"},
		{"a flag without its value", "canary retest --canary", "flag needs an argument: --canary"},
		{"an argument", "canary retest downloads/canary", `unexpected argument "downloads/canary"`},
		{"attempts", "canary retest --attempts 0", "--attempts 0: at least one"},
		{"attempts that are no number", "canary retest --attempts many", `invalid argument "many"`},
		{"dry run", "canary retest --dry-run=maybe", `--dry-run "maybe" is none of none, client, server`},
		{"a colour", "canary retest --color blue", `--color "blue" is none of auto, always, never`},
		{"an output", "canary retest -o xml", `unable to match a printer suitable for the output format "xml"`},
		{"a canary", "canary retest --canary a/b/c", `canary "a/b/c" is not of the form [NAMESPACE/]NAME`},
		{"two namespaces", "canary retest --canary media/c -n downloads", "canary media/c is not in the namespace downloads that -n names"},
		{"a DaemonSet", "canary retest --daemonset a/b/c", `DaemonSet "a/b/c" is not of the form [NAMESPACE/]NAME`},
		{"a timeout", "canary retest --timeout 90", `timeout "90" is no duration: give a number with a unit, such as 90s or 5m`},
		{"a settle time", "canary retest --settle long", `settle "long" is no duration`},
		{"a config file", "canary retest --config " + filepath.Join(dir, "missing.yaml"), "reading the config file: "},
		{"a manifest that is not there", "canary retest -f " + filepath.Join(dir, "missing.yaml"), "missing.yaml"},
		{"a manifest that is no YAML", "canary retest -f " + file("broken.yaml", "a: [b"), "reading the canary's manifest: "},
		{"an empty manifest", "canary retest -f " + file("empty.yaml", ""), "manifest"},
		{"several documents", "canary retest -f " + file("two.yaml", goodPod+"\n---\n"+deployment), "the manifest holds 2 objects (Pod canary and others): give the one canary Pod alone"},
		{"a Deployment", "canary retest -f " + file("deployment.json", deployment), "holds Deployment web: a canary must be a bare Pod (apiVersion v1, kind Pod), created by no controller"},
		{"a field nobody knows", "canary retest -f " + file("typo.json", strings.Replace(goodPod, "restartPolicy", "restartPolice", 1)), "restartPolice"},
		{"another restartPolicy", "canary retest -f " + file("always.json", strings.Replace(goodPod, "Never", "Always", 1)), `its restartPolicy is "Always"`},
		{"a forged network-status", "canary retest -f " + file("forged.json", forged), "it carries the annotation k8s.v1.cni.cncf.io/network-status, which only Multus may write"},
		{"another canary in the file", "canary retest --canary media/other -f " + good, "holds Pod media/canary, and the flags name media/other: give one of them"},
		{"another namespace in the file", "canary retest -n downloads -f " + good, "holds Pod media/canary, and the flags name downloads/vlan50-canary"},
		{"a shell nobody knows", "completion tcsh", `there is no command "tcsh"`},
		{"an argument of completion", "completion bash x", `unexpected argument "x"`},
		{"an argument of version", "version x", `unexpected argument "x"`},
		{"a cause nobody knows", "explain frobnicate", `there is no cause "frobnicate"; 'kubectl vlan50 explain' lists all`},
		{"evidence that is not there", "canary judge -f " + filepath.Join(dir, "missing.yaml"), "missing.yaml"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run(t, strings.Fields(test.args)...).oneError(t, exitUsage, test.want)
		})
	}
}

func TestTroubleWithTheCluster(t *testing.T) {
	t.Run("none is configured", func(t *testing.T) {
		for _, args := range []string{"canary retest", "canary judge", "version --server"} {
			o := run(t, strings.Fields(args)...)
			if o.code != exitTrouble || !strings.Contains(o.stderr, "error: no cluster is configured: set KUBECONFIG or pass --kubeconfig FILE\n") || strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%s: code %d, %s", args, o.code, o.stderr)
			}
		}
	})
	t.Run("a context that is not there", func(t *testing.T) {
		run(t, "canary", "retest", "--context", "nowhere").oneError(t, exitTrouble, `"nowhere"`)
	})
	t.Run("a server that is not reached", func(t *testing.T) {
		o := run(t, "canary", "retest", "--server", "http://127.0.0.1:1", "--quiet")
		o.oneError(t, exitTrouble, "is the API server up, and does the kubeconfig name the right one?")
	})
	t.Run("a broken kubeconfig", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte("clusters: 7"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "canary", "retest", "--kubeconfig", path).oneError(t, exitTrouble, "the kubeconfig cannot be used: ")
	})
}

func TestHelpOfRetest(t *testing.T) {
	o := run(t, "canary", "retest", "--help")
	if o.code != exitOK || o.stderr != "" {
		t.Errorf("code %d, stderr %s", o.code, o.stderr)
	}
	golden(t, "retest-help.txt", o.stdout)
}

// walk visits every command of the tree that a user can see.
func walk(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, child := range command.Commands() {
		if !child.Hidden {
			walk(child, visit)
		}
	}
}

// The tool is kubectl vlan50 to its users, wherever it names itself.
func TestHelpSaysKubectlVlan50(t *testing.T) {
	walk(NewCmd(genericiooptions.NewTestIOStreamsDiscard()), func(command *cobra.Command) {
		args := strings.Fields(strings.TrimPrefix(command.CommandPath(), "kubectl vlan50"))
		t.Run(command.CommandPath(), func(t *testing.T) {
			o := run(t, append(args, "--help")...)
			if o.code != exitOK || !strings.Contains(o.stdout, "kubectl vlan50") {
				t.Errorf("code %d: %s", o.code, o.stdout)
			}
			_, usage, _ := strings.Cut(o.stdout, "Usage:")
			if strings.Contains(usage, "kubectl-vlan50 ") && command.Name() != "completion" {
				t.Errorf("help names the binary:\n%s", usage)
			}
			if command.Short == "" || strings.HasSuffix(command.Short, ".") {
				t.Errorf("short help %q", command.Short)
			}
			for line := range strings.Lines(command.Example) {
				line = strings.TrimSpace(line)
				if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "kubectl vlan50 ") && !strings.Contains(line, "kubectl-vlan50 completion") {
					t.Errorf("example %q is no command line of this tool", line)
				}
			}
		})
	})
}

// Every flag that an example or a document names is there.
func TestNamedFlagsExist(t *testing.T) {
	flags := map[string]bool{"help": true}
	var texts strings.Builder
	walk(NewCmd(genericiooptions.NewTestIOStreamsDiscard()), func(command *cobra.Command) {
		for _, set := range []*pflag.FlagSet{command.Flags(), command.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		}
		texts.WriteString(command.Example + "\n" + command.Long + "\n")
	})
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	// The lines that run other programs have those programs' flags.
	others := regexp.MustCompile("(?:^\\s*|`)(?:(?:kubectl )?krew|sha256sum|shasum|gh|git|go|make) [^`]*")
	for _, document := range append(documents, "../../README.md") {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			texts.WriteString(others.ReplaceAllString(line, ""))
		}
	}
	for _, match := range regexp.MustCompile("(?m)(?:^|[ `(])--([a-z][a-z-]+)").FindAllStringSubmatch(texts.String(), -1) {
		if !flags[match[1]] {
			t.Errorf("there is no flag --%s", match[1])
		}
	}
}

// docs/configuration.md has a row for each setting: flag, variable and key.
func TestConfigurationDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	retest, _, err := NewCmd(genericiooptions.NewTestIOStreamsDiscard()).Find([]string{"canary", "retest"})
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"canary": "canary", "daemonset": "daemonSet", "timeout": "timeout", "settle": "settle"} {
		f := retest.Flags().Lookup(name)
		variable := "VLAN50_" + strings.ToUpper(name)
		if f == nil || !strings.Contains(f.Usage, variable) {
			t.Errorf("the help of --%s does not name %s", name, variable)
		}
		row := regexp.MustCompile("(?m)^\\| `--" + name + "[ `].*\\| `" + variable + "` \\| `" + key + "` \\| `")
		if !row.Match(data) {
			t.Errorf("docs/configuration.md has no row for --%s, %s, %s", name, variable, key)
		}
	}
}

func TestDisplayName(t *testing.T) {
	for argv0, want := range map[string]string{
		"/usr/local/bin/kubectl-vlan50": "kubectl vlan50",
		`C:\bin\kubectl-vlan50.exe`:     "kubectl vlan50",
		"kubectl-canaries":              "kubectl canaries",
		"/tmp/cmd.test":                 "kubectl vlan50",
		"":                              "kubectl vlan50",
	} {
		if got := displayName(argv0); got != want {
			t.Errorf("%q: got %q, want %q", argv0, got, want)
		}
	}
}

// golden compares with a file of testdata; -update writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
