package verdict

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// asList gives a case's objects as one v1 List in JSON, as kubectl prints them:
// without the document that says what the evidence is about.
func asList(t *testing.T, e evidence.Evidence) []byte {
	t.Helper()
	var saved bytes.Buffer
	if err := evidence.Save(&saved, e); err != nil {
		t.Fatal(err)
	}
	var items []json.RawMessage
	for doc := range strings.SplitSeq(saved.String(), "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(`"kind":"Evidence"`)) {
			items = append(items, text)
		}
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAPlainListIsJudgedTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) {
			now := c.evidence.CollectedAt
			e, err := evidence.Load(bytes.NewReader(asList(t, c.evidence)), evidence.Options{
				Canary: c.evidence.Canary, DaemonSet: c.evidence.DaemonSet, Collected: slices.Collect(maps.Keys(c.evidence.Collected)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Decide(c.evidence, now), Decide(e, now)); diff != "" {
				t.Errorf("-documents +list:\n%s", diff)
			}
		})
	}
}

// TestAPlainListTellsItself judges lists without a word of what they are about,
// where a canary is in them.
func TestAPlainListTellsItself(t *testing.T) {
	t.Parallel()
	judged := 0
	for _, c := range fileCases(t) {
		// An absent DaemonSet, log or CRD cannot be told from one not asked for.
		if c.evidence.CanaryPod() == nil || len(c.evidence.DaemonSets) == 0 || c.evidence.CanaryPod().DeletionTimestamp != nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			judged++
			e, err := evidence.Load(bytes.NewReader(asList(t, c.evidence)), evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := c.want.Cause
			if want == EventsExpired {
				want = EvidenceIncomplete // no event is there to say that events were asked for
			}
			if got := Decide(e, c.evidence.CollectedAt); got.Cause != want {
				t.Errorf("got %s, want %s: %s", got.Cause, want, got.Message)
			}
		})
	}
	const most = 40
	if judged < most {
		t.Errorf("%d cases judged, want at least %d", judged, most)
	}
}
