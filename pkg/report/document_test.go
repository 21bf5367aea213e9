package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	noon    = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	subject = evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"}
)

func passed() canary.Result {
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }
	return canary.Result{
		UID: "4c0ffee0-0000-4000-8000-000000000001",
		Verdict: verdict.Verdict{
			Outcome: verdict.Pass, Cause: verdict.OK, Settled: true,
			Message: "canary downloads/vlan50-canary on node node-a is attached to net1 with 192.0.2.100 on downloads/vlan50, and its guard and containers did well",
			Next:    "nothing: the network works for this canary",
			Node:    "node-a", Network: "downloads/vlan50", Interface: "net1", Addresses: []string{"192.0.2.100", "2001:db8::64"},
			Lines: []verdict.Line{
				{Source: "pod", Text: "network-status: net1 192.0.2.100 2001:db8::64"},
				{Time: at(9.4), Source: "event", Text: "AddedInterface: Add net1 [192.0.2.100/24 2001:db8::64/64] from downloads/vlan50"},
			},
		},
		Attempt: canary.Attempt{
			ID: "attempt", Number: 1, StartedAt: noon, RolloutReady: at(0.25), AttachReady: at(4.5), AttachReadyBy: rollout.ByLog,
			Deleted: at(4.6), Gone: at(6.8), Created: at(7), Decided: at(13.125),
		},
		Configuration: evidence.Fingerprint{
			DaemonSetUID: "d5", DaemonSetGeneration: 3, RevisionHash: "rev3", Node: "node-a", DaemonPodUID: "d0",
			Networks:   map[string]evidence.NetworkPrint{"downloads/vlan50": {UID: "n0", Generation: 1}},
			ConfigMaps: map[string]string{"vlan50-guard": "1234"},
		},
	}
}

func failed() canary.Result {
	result := passed()
	result.Verdict = verdict.Verdict{
		Outcome: verdict.Fail, Cause: verdict.DelegatePluginMissing, Settled: true, SandboxFailures: 11,
		Message: "the plugin macvlan of network downloads/vlan50 is not in /var/lib/rancher/k3s/data/cni on node node-a",
		Next:    "install the reference CNI plugins into that directory on node-a,\nthen run the retest again",
		Node:    "node-a",
	}
	for i := range 11 {
		result.Verdict.Lines = append(result.Verdict.Lines, verdict.Line{
			Time: noon.Add(time.Duration(8+i) * time.Second), Source: "event",
			Text: "FailedCreatePodSandBox: " + strings.Repeat("wrapped in: ", 30) + "failed to find plugin \"macvlan\"\n': StdinData: {}",
		})
	}
	return result
}

func blocked() canary.Result {
	return canary.Result{
		Verdict: verdict.Verdict{
			Outcome: verdict.Inconclusive, Cause: verdict.RolloutZeroDesired, Settled: true,
			Message: "DaemonSet kube-system/kube-multus-ds wants no Pod on any node (nodeSelector vlan50=yes). Nothing was changed.",
			Next:    "label the node, or mend the nodeSelector",
			Lines:   []verdict.Line{{Time: noon, Source: "daemonset", Text: "wants no Pod"}},
		},
		Attempt: canary.Attempt{Number: 1, StartedAt: noon, Decided: noon.Add(time.Second)},
	}
}

func TestResult(t *testing.T) {
	for name, result := range map[string]canary.Result{"pass": passed(), "fail": failed(), "inconclusive": blocked()} {
		document := report.Result(subject, result)
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report.Text{Out: &out}.Verdict(document)
			golden(t, name+".txt", out.String())
		})
		t.Run(name+" wide", func(t *testing.T) {
			var out bytes.Buffer
			report.Text{Out: &out, Wide: true}.Verdict(document)
			golden(t, name+".wide.txt", out.String())
		})
		t.Run(name+" JSON", func(t *testing.T) {
			golden(t, name+".json", printed(t, &printers.JSONPrinter{}, document))
		})
		t.Run(name+" name", func(t *testing.T) {
			if got, want := printed(t, &printers.NamePrinter{}, document), "canaryverdict.vlan50.dev/vlan50-canary\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A saved file that is judged knows no attempt and no configuration.
func TestVerdictOfASavedFile(t *testing.T) {
	document := report.Verdict(evidence.Ref{Namespace: "downloads", Name: "vlan50-canary", UID: "uid"}, passed().Verdict)
	if document.Status.Attempt != nil || document.Status.Configuration != nil || document.UID != "uid" {
		t.Errorf("document: %+v", document)
	}
	var out bytes.Buffer
	report.Text{Out: &out, Wide: true}.Verdict(document)
	if strings.Contains(out.String(), "steps:") || !strings.Contains(out.String(), "PASS  Pod downloads/vlan50-canary (UID uid)\n") {
		t.Errorf("text:\n%s", out.String())
	}
}

func TestVerdictInColour(t *testing.T) {
	for outcome, want := range map[verdict.Outcome]string{
		verdict.Pass: "\x1b[1;32mPASS\x1b[", verdict.Fail: "\x1b[1;31mFAIL\x1b[", verdict.Inconclusive: "\x1b[1;33mINCONCLUSIVE\x1b[",
	} {
		t.Run(string(outcome), func(t *testing.T) {
			document := report.Verdict(subject, verdict.Verdict{Outcome: outcome})
			var out bytes.Buffer
			report.Text{Out: &out, Color: true}.Verdict(document)
			if !strings.HasPrefix(out.String(), want) {
				t.Errorf("got %q", out.String())
			}
			out.Reset()
			report.Text{Out: &out}.Verdict(document)
			if strings.Contains(out.String(), "\x1b") {
				t.Errorf("colour where none is wanted: %q", out.String())
			}
		})
	}
}

func printed(t *testing.T, printer printers.ResourcePrinter, document *v1alpha1.CanaryVerdict) string {
	t.Helper()
	var out bytes.Buffer
	if err := printer.PrintObj(runtime.Object(document), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
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
