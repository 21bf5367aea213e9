package cmd

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCompletionScriptForKubectl(t *testing.T) {
	o := run(t, "completion", "kubectl")
	want := "#!/bin/sh\n# Completion of kubectl vlan50: kubectl runs this with the words typed so far.\nexec kubectl vlan50 __complete \"$@\"\n"
	if o.code != exitOK || o.stdout != want || o.stderr != "" {
		t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

func TestCompletionInstall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubectl_complete-vlan50")
	t.Setenv("PATH", t.TempDir())
	o := run(t, "completion", "kubectl", "--install", dir)
	if o.code != exitOK || o.stdout != path+" installed\n" || o.stderr != "note: "+dir+" is not on PATH; kubectl finds the script only there\n" {
		t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != completeScript {
		t.Errorf("installed %q, %v", data, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join([]string{t.TempDir(), dir}, string(filepath.ListSeparator)))
	if o := run(t, "completion", "kubectl", "--install", dir); o.code != exitOK || o.stderr != "" {
		t.Errorf("installed again: code %d, stderr %q", o.code, o.stderr)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("the script cannot be run: %v, %v", info.Mode(), err)
	}
}

func TestCompletionInstallSparesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubectl_complete-vlan50")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "completion", "kubectl", "--install", dir).oneError(t, exitUsage, path+" is there already and is not this script: remove it first")
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Error("the file was written over")
	}
	run(t, "completion", "kubectl", "--install", filepath.Join(dir, "missing")).oneError(t, exitTrouble, "installing completion: ")
}

func TestCompletionOfShells(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "__start_kubectl-vlan50", "zsh": "#compdef kubectl-vlan50", "fish": "complete -c kubectl-vlan50", "powershell": "Register-ArgumentCompleter",
	} {
		t.Run(shell, func(t *testing.T) {
			o := run(t, "completion", shell)
			if o.code != exitOK || o.stderr != "" || !strings.Contains(o.stdout, want) {
				t.Errorf("code %d, stderr %q, stdout without %q", o.code, o.stderr, want)
			}
		})
	}
}

// kubectl asks this way for the words that may follow.
func TestCompletionAnswersKubectl(t *testing.T) {
	tests := map[string]struct {
		words []string
		want  []string
	}{
		"commands":        {[]string{""}, []string{"canary\t", "explain\t", "version\t", "completion\t"}},
		"of canary":       {[]string{"canary", ""}, []string{"retest\t", "judge\t"}},
		"flags of retest": {[]string{"canary", "retest", "--att"}, []string{"--attempts\t"}},
		"causes":          {[]string{"explain", "nad-"}, []string{"nad-not-found"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := run(t, append([]string{"__complete"}, test.words...)...)
			for _, want := range test.want {
				if o.code != exitOK || !strings.Contains(o.stdout, want) {
					t.Errorf("code %d, %q without %q", o.code, o.stdout, want)
				}
			}
		})
	}
}

// kubectl looks the executable up as the operating system does.
func TestCompletionFileOfEachSystem(t *testing.T) {
	for goos, want := range map[string]string{"linux": "kubectl_complete-vlan50", "darwin": "kubectl_complete-vlan50", "windows": "kubectl_complete-vlan50.bat"} {
		name, content := completeFile(goos)
		if name != want || !strings.Contains(content, "kubectl vlan50 __complete ") {
			t.Errorf("%s: %s\n%s", goos, name, content)
		}
	}
}
