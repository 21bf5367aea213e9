package report_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/causes.md anew")

// The document is generated from the catalogue, so that the two cannot drift.
func TestCausesDocument(t *testing.T) {
	const path = "../../docs/causes.md"
	var want bytes.Buffer
	report.CausesMarkdown(&want, verdict.Catalogue())
	if *updateDocs {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/causes.md is out of date, run \"make docs\" (-want +got):\n%s", diff)
	}
}
