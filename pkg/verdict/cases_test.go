package verdict

import (
	"io/fs"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// expectation is the expect.yaml of a case.
type expectation struct {
	Title   string  `json:"title"`
	Verdict Outcome `json:"verdict"`
	Cause   Cause   `json:"cause"`
}

// eachCase runs a test for every case under testdata/cases.
func eachCase(t *testing.T, run func(t *testing.T, e evidence.Evidence, want expectation)) {
	t.Helper()
	root := os.DirFS("testdata/cases")
	dirs, err := fs.ReadDir(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	const given = 63
	if len(dirs) < given {
		t.Fatalf("%d cases, want at least %d", len(dirs), given)
	}
	for _, d := range dirs {
		var want expectation
		text, err := fs.ReadFile(root, d.Name()+"/expect.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		t.Run(d.Name()+" "+want.Title, func(t *testing.T) {
			f, err := root.Open(d.Name() + "/evidence.yaml")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			e, err := evidence.Load(f, evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			run(t, e, want)
		})
	}
}

func TestGivenCases(t *testing.T) {
	eachCase(t, func(t *testing.T, e evidence.Evidence, want expectation) {
		got := Decide(e, e.CollectedAt)
		if got.Outcome != want.Verdict || got.Cause != want.Cause {
			t.Errorf("got %s %s, want %s %s\nmessage: %s", got.Outcome, got.Cause, want.Verdict, want.Cause, got.Message)
		}
		if got.Message == "" || got.Next == "" {
			t.Errorf("message %q, next %q: both must be there", got.Message, got.Next)
		}
		t.Logf("%v %s\n  %s\n  NEXT %s", got.Settled, got.Cause, got.Message, got.Next)
	})
}
