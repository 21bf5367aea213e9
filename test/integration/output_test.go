//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// hostile is what a compromised guard would print to take over a terminal.
const hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred \u009b31m\u202etxet\u2066 \x7f end"

// tame fails where a string that could steer a terminal got through.
func tame(t *testing.T, where, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is no UTF-8", where)
	}
	for _, r := range text {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) {
			t.Fatalf("%s has the raw character %U:\n%q", where, r, text)
		}
	}
}

// The same failing canary in every format: the same exit code, the result alone
// on standard output, and nothing that steers a terminal anywhere.
func TestOutputFormats(t *testing.T) {
	t.Parallel()
	hostileFail := scriptednode.Script{Name: "hostile", Steps: []scriptednode.Step{
		{Do: scriptednode.Sandbox{Fault: &scriptednode.Fault{Layer: scriptednode.LayerSecondary, Text: hostile}, Times: 1}},
		{Do: scriptednode.Event{Type: corev1.EventTypeWarning, Reason: "Failed", Message: hostile}},
		{Do: scriptednode.Guard{Exit: 3, Message: hostile, Log: []string{hostile}}},
	}}
	s := newSite(t, "formats", scriptednode.Options{Plan: scriptednode.Plan{hostileFail}})
	for _, row := range []struct {
		name  string
		args  []string
		check func(t *testing.T, out outcome)
	}{
		{"text", nil, func(t *testing.T, out outcome) {
			has(t, out.stdout, "FAIL  Pod "+s.Namespace+"/"+s.Canary, "cause:    guard-failed", `red \x9b31m\u202etxet\u2066 \x7f end`, "next:")
		}},
		{"wide", []string{"-o", "wide"}, func(t *testing.T, out outcome) { has(t, out.stdout, "FAIL", "steps:", "created", "decided") }},
		{"json", []string{"-o", "json"}, func(t *testing.T, out outcome) {
			document := out.verdict(t)
			if document.Kind != "CanaryVerdict" || document.APIVersion != "vlan50.dev/v1alpha1" {
				t.Errorf("got %s %s", document.APIVersion, document.Kind)
			}
			has(t, document.Status.Message, "red ", " end")
		}},
		{"yaml", []string{"-o", "yaml"}, func(t *testing.T, out outcome) {
			var document v1alpha1.CanaryVerdict
			check(t, yaml.UnmarshalStrict([]byte(out.stdout), &document))
			has(t, document.Status.Message, "red ", " end")
		}},
		{"name", []string{"-o", "name"}, func(t *testing.T, out outcome) {
			if out.stdout != "canaryverdict.vlan50.dev/"+s.Canary+"\n" {
				t.Errorf("got %q", out.stdout)
			}
		}},
		{"jsonpath", []string{"-o", "jsonpath={.status.cause} {.metadata.uid} {.status.message}"}, func(t *testing.T, out outcome) {
			has(t, out.stdout, "guard-failed "+string(s.pod().UID)+" ")
		}},
		{"go-template", []string{"-o", `go-template={{.status.verdict}} {{.status.attempt.number}} {{.status.message}}`}, func(t *testing.T, out outcome) {
			has(t, out.stdout, "fail 1 ")
		}},
		{"events", []string{"-o", "json", "--events", "json"}, func(t *testing.T, out outcome) {
			steps := eventSteps(t, out.stderr)
			for _, step := range []string{"check", "gate", "delete", "create", "observe"} {
				if !steps[step] {
					t.Errorf("no event of step %s:\n%s", step, out.stderr)
				}
			}
		}},
		{"quiet", []string{"-o", "json", "--quiet"}, func(t *testing.T, out outcome) {
			out.verdict(t)
			if out.stderr != "" {
				t.Errorf("--quiet said: %s", out.stderr)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := s.run(append([]string{"canary", "retest", "-f", s.manifest}, row.args...)...)
			if out.code != 3 {
				t.Errorf("exit code %d, want 3\n%s", out.code, out.stderr)
			}
			tame(t, "standard output", out.stdout)
			tame(t, "standard error", out.stderr)
			if strings.Contains(out.stderr, "could not be saved") || strings.Contains(out.stderr, "could not be noted") {
				t.Errorf("something was not recorded:\n%s", out.stderr)
			}
			row.check(t, out)
		})
	}
	t.Run("saved verdict", func(t *testing.T) {
		found, err := filepath.Glob(filepath.Join(s.state, "*", s.Namespace, s.Canary, "attempts", "*", "*"))
		check(t, err)
		if len(found) == 0 {
			t.Fatal("no attempt was saved")
		}
		for _, path := range found {
			data, err := os.ReadFile(path)
			check(t, err)
			if strings.HasSuffix(path, ".json") {
				tame(t, path, string(data))
			}
		}
	})
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// eventSteps reads --events json and gives the steps that were told.
func eventSteps(t *testing.T, lines string) map[string]bool {
	t.Helper()
	steps := map[string]bool{}
	for line := range strings.Lines(lines) {
		var event struct {
			Time       time.Time
			Step, Text string
			Waiting    bool
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Text == "" || event.Time.IsZero() {
			t.Errorf("not an event: %v: %s", err, line)
		}
		steps[event.Step] = true
	}
	return steps
}

// Hostile text in errors and refusals: there it has no JSON around it.
func TestHostileErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t, "hostile", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.Stuck(scriptednode.PassRunning(), hostile)}})
	s.createCanary(corev1.PodRunning)
	out := s.run("canary", "retest", "--timeout", "8s")
	if out.code != 4 {
		t.Errorf("exit code %d, want 4", out.code)
	}
	has(t, out.stderr, `\x1b[31mred`)
	has(t, out.stdout, `\x1b[31mred`, "teardown-blocked")
	tame(t, "standard output", out.stdout)
	tame(t, "standard error", out.stderr)
	for _, args := range [][]string{{hostile}, {"--" + hostile}, {"-f", "/nowhere/" + hostile}, {"--timeout", hostile}, {"-o", hostile}} {
		out := s.retest(args...)
		out.expectError(t, 2)
		tame(t, "standard error", out.stderr)
	}
	s.node.Unstick()
}

func TestColor(t *testing.T) {
	t.Parallel()
	s := newSite(t, "color", scriptednode.Options{})
	for _, row := range []struct {
		name    string
		args    []string
		env     []string
		colored bool
	}{
		{"no terminal", nil, nil, false},
		{"always", []string{"--color", "always"}, nil, true},
		{"always beats NO_COLOR", []string{"--color", "always"}, []string{"NO_COLOR=1"}, true},
		{"never", []string{"--color", "never"}, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.env = row.env
			out := s.run(append([]string{"canary", "retest", "-f", s.manifest}, row.args...)...)
			if colored := strings.Contains(out.stdout, "\x1b["); colored != row.colored || out.code != 0 {
				t.Errorf("exit code %d, coloured %v:\n%q", out.code, colored, out.stdout)
			}
		})
	}
}

// A run on a terminal shows what is being waited for and takes it away again.
func TestTerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t, "terminal", scriptednode.Options{})
	s.createCanary(corev1.PodSucceeded)
	t.Run("live view", func(t *testing.T) {
		s.shutGate()
		screen, code := s.onTerminal(nil, func(shown func(string), _ *os.File) {
			shown("has not written its CNI conf")
			s.openGate()
		})
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		has(t, screen, "\r\x1b[2K", "\x1b[1;32mPASS", "delete", "create")
		last := screen[strings.LastIndex(screen, "\r\x1b[2K")+len("\r\x1b[2K"):]
		has(t, last, "PASS") // the waiting line was taken away before the result
		if strings.Contains(last, "observe") {
			t.Errorf("a waiting line is left on the screen: %q", last)
		}
	})
	t.Run("NO_COLOR", func(t *testing.T) {
		screen, code := s.onTerminal([]string{"NO_COLOR=1"}, nil)
		if code != 0 || strings.Contains(screen, "\x1b[1;32m") || !strings.Contains(screen, "PASS") {
			t.Errorf("exit code %d, screen %q", code, screen)
		}
	})
	t.Run("dumb", func(t *testing.T) {
		screen, code := s.onTerminal([]string{"TERM=dumb"}, nil)
		if code != 0 || strings.Contains(screen, "\x1b") || !strings.Contains(screen, "PASS") {
			t.Errorf("exit code %d, screen %q", code, screen)
		}
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		s.shutGate()
		screen, code := s.onTerminal(nil, func(shown func(string), terminal *os.File) {
			shown("has not written its CNI conf")
			_, err := terminal.Write([]byte{3})
			check(t, err)
		})
		if code != 130 {
			t.Errorf("exit code %d, want 130", code)
		}
		last := screen[strings.LastIndex(screen, "\r\x1b[2K")+len("\r\x1b[2K"):]
		if !strings.HasPrefix(last, "error: interrupted: nothing was changed") {
			t.Errorf("the error is not on a line of its own: %q", last)
		}
		s.unlocked()
	})
}

// onTerminal runs a command, a retest where none is named, on a terminal of its
// own; act may wait for what is shown and type.
func (s *site) onTerminal(env []string, act func(shown func(string), terminal *os.File), args ...string) (screen string, code int) {
	s.t.Helper()
	if len(args) == 0 {
		args = []string{"canary", "retest"}
	}
	command := s.command(args...)
	command.Env = append(command.Env, append([]string{"TERM=xterm"}, env...)...)
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 40, Cols: 160})
	check(s.t, err)
	defer terminal.Close()
	var shown lockedBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, terminal) // ends with EIO when the run has ended
	}()
	if act != nil {
		act(func(text string) {
			eventually(s.t, "the terminal shows "+text, func() bool { return strings.Contains(shown.String(), text) })
		}, terminal)
	}
	err = command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	<-read
	return shown.String(), command.ProcessState.ExitCode()
}
