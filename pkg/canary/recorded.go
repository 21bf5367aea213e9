package canary

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// Record is the verdict that a retest noted on the Pod it judged.
type Record struct {
	// UID is the Pod that was judged.
	UID     types.UID
	Outcome verdict.Outcome
	Cause   verdict.Cause
	// Message is empty where none was noted.
	Message       string
	DecidedAt     time.Time
	Configuration evidence.Fingerprint
}

// Recorded reads the verdict noted on a Pod; nil where none is. A record that
// cannot be read, or that another Pod's annotations were copied from, is an
// error: it says nothing about this Pod.
func Recorded(pod *corev1.Pod) (*Record, error) {
	noted := pod.Annotations
	if noted[VerdictAnnot] == "" {
		return nil, nil
	}
	record := &Record{
		UID:     types.UID(noted[JudgedAnnot]),
		Outcome: verdict.Outcome(noted[VerdictAnnot]), Cause: verdict.Cause(noted[CauseAnnot]), Message: noted[MessageAnnot],
	}
	switch record.Outcome {
	case verdict.Pass, verdict.Fail, verdict.Inconclusive:
	default:
		return nil, fmt.Errorf("annotation %s: %q is no verdict", VerdictAnnot, record.Outcome)
	}
	if record.UID != pod.UID {
		return nil, fmt.Errorf("the verdict noted on this Pod was reached on another one (UID %q): its annotations were copied", record.UID)
	}
	var err error
	if record.DecidedAt, err = time.Parse(time.RFC3339, noted[DecidedAtAnnot]); err != nil {
		return nil, fmt.Errorf("annotation %s is no time: %w", DecidedAtAnnot, err)
	}
	if err := json.Unmarshal([]byte(noted[ConfigurationAnnot]), &record.Configuration); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", ConfigurationAnnot, err)
	}
	return record, nil
}
