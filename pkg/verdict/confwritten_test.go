package verdict

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// TestConfWrittenInTheSameSecond: times of whole seconds cannot order the conf
// and the canary's creation, but the run that created the canary can.
func TestConfWrittenInTheSameSecond(t *testing.T) {
	const instance = "containerd://first"
	scene := func(before *evidence.Fingerprint) evidence.Evidence {
		e := build(ran("net1 missing"), daemonStatus(runs(-2*time.Second), corev1.ContainerState{}, 0),
			podLog(daemonUID, "daemon", start.Add(time.Second).Format(time.RFC3339)+" [verbose] started to watch file /x\n"),
			daemon(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = instance }))
		e.Before = before
		return e
	}
	written := evidence.FingerprintOf(scene(nil))
	if !written.DaemonConfWritten {
		t.Fatal("the log has the line, the fingerprint does not know")
	}
	unwritten := written
	unwritten.DaemonConfWritten = false
	restarted := written
	restarted.DaemonContainerID = "containerd://earlier"
	for _, row := range []struct {
		name    string
		before  *evidence.Fingerprint
		outcome Outcome
		cause   Cause
	}{
		{"order not known", nil, Inconclusive, MultusNotInChain},
		{"not written before", &unwritten, Inconclusive, MultusNotInChain},
		{"written before", &written, Fail, MultusNotInChain},
		{"written before by a container that is gone", &restarted, Inconclusive, MultusNotInChain},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Decide(scene(row.before), now); got.Outcome != row.outcome || got.Cause != row.cause {
				t.Errorf("got %s/%s, want %s/%s: %s", got.Outcome, got.Cause, row.outcome, row.cause, got.Message)
			}
		})
	}
}
