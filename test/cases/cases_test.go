// Package cases judges the evidence that real nodes gave: each folder holds what
// one scenario of the lab left, and the right verdict on it.
package cases

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func TestRealEvidence(t *testing.T) {
	files, err := filepath.Glob("*/evidence.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no case is here")
	}
	for _, file := range files {
		t.Run(filepath.Dir(file), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "expect.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Title   string          `json:"title"`
				Verdict verdict.Outcome `json:"verdict"`
				Cause   verdict.Cause   `json:"cause"`
				Next    string          `json:"next"`
			}
			if err := yaml.UnmarshalStrict(text, &want); err != nil {
				t.Fatal(err)
			}
			saved, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer saved.Close()
			e, err := evidence.Load(saved, evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := verdict.Decide(e, e.CollectedAt)
			if got.Outcome != want.Verdict || got.Cause != want.Cause {
				t.Errorf("%s/%s, want %s/%s: %s", got.Outcome, got.Cause, want.Verdict, want.Cause, got.Message)
			}
			if got.Next != want.Next {
				t.Errorf("next step %q, want %q", got.Next, want.Next)
			}
		})
	}
}
