package verdict

import (
	"bytes"
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
	// Next is for the reader: the catalogue's words differ.
	Next string `json:"next"`
}

// fileCase is one folder under testdata/cases.
type fileCase struct {
	name     string
	evidence evidence.Evidence
	want     expectation
}

// fileCases reads all cases under testdata/cases.
func fileCases(t *testing.T) []fileCase {
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
	cases := make([]fileCase, 0, len(dirs))
	for _, d := range dirs {
		c := fileCase{}
		text, err := fs.ReadFile(root, d.Name()+"/expect.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, &c.want); err != nil {
			t.Fatalf("%s: %v", d.Name(), err)
		}
		saved, err := fs.ReadFile(root, d.Name()+"/evidence.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c.name = d.Name() + " " + c.want.Title
		if c.evidence, err = evidence.Load(bytes.NewReader(saved), evidence.Options{}); err != nil {
			t.Fatalf("%s: %v", d.Name(), err)
		}
		cases = append(cases, c)
	}
	return cases
}

func TestGivenCases(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.evidence, c.evidence.CollectedAt)
			if got.Outcome != c.want.Verdict || got.Cause != c.want.Cause {
				t.Errorf("got %s %s, want %s %s\nmessage: %s", got.Outcome, got.Cause, c.want.Verdict, c.want.Cause, got.Message)
			}
			if got.Message == "" || got.Next == "" {
				t.Errorf("message %q, next %q: both must be there", got.Message, got.Next)
			}
		})
	}
}
