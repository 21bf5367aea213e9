package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// TestFreshness: each row changes one thing after a pass was recorded.
func TestFreshness(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*world)
		fresh  v1alpha1.Freshness
		state  v1alpha1.State
		says   string // in a change; empty: there is none
	}{
		"nothing changed": {func(*world) {}, v1alpha1.Fresh, v1alpha1.StateFreshPass, ""},
		"the DaemonSet has a new generation": {
			func(w *world) { w.share(func(e *evidence.Evidence) { e.DaemonSets[0].Generation = 2 }) },
			v1alpha1.Stale, v1alpha1.StateStale, "the DaemonSet changed (generation 1 -> 2)",
		},
		"the DaemonSet has a new revision": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) {
					e.ControllerRevisions = append(e.ControllerRevisions, *revision(2, "bbbb"))
				})
			},
			v1alpha1.Stale, v1alpha1.StateStale, "new revision (aaaa -> bbbb)",
		},
		"the daemon restarted in its Pod": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) {
					for i := range e.Pods {
						if e.Pods[i].Namespace == "kube-system" {
							e.Pods[i].Status.ContainerStatuses[0].RestartCount = 1
						}
					}
				})
			},
			v1alpha1.Stale, v1alpha1.StateStale, "restarts 0 -> 1",
		},
		"the network was edited": {
			func(w *world) { w.evidence().Networks[0].Generation = 2 },
			v1alpha1.Stale, v1alpha1.StateStale, "NetworkAttachmentDefinition downloads/vlan50 changed",
		},
		"the network was deleted": {
			func(w *world) { w.evidence().Networks = nil },
			v1alpha1.Stale, v1alpha1.StateStale, "was deleted",
		},
		"the guard's script was edited": {
			func(w *world) { w.evidence().ConfigMaps[0].ResourceVersion = "8" },
			v1alpha1.Stale, v1alpha1.StateStale, "ConfigMap egress-guard changed",
		},
		"the node was rebooted": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.Nodes = []corev1.Node{node("node-a", "boot-2")} })
			},
			v1alpha1.Stale, v1alpha1.StateStale, "node node-a was rebooted",
		},
		"the canary is being deleted": {
			func(w *world) { w.change(func(p *corev1.Pod) { p.DeletionTimestamp = new(ago(0)) }) },
			v1alpha1.Stale, v1alpha1.StateStale, "the canary is being deleted",
		},
		"nothing was recorded": {
			func(w *world) { w.change(func(p *corev1.Pod) { delete(p.Annotations, canary.VerdictAnnot) }) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "nothing was recorded",
		},
		"the record was copied from another Pod": {
			func(w *world) { w.change(func(p *corev1.Pod) { p.Annotations[canary.JudgedAnnot] = "another" }) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "its annotations were copied",
		},
		"the recorded configuration is garbage": {
			func(w *world) { w.change(func(p *corev1.Pod) { p.Annotations[canary.ConfigurationAnnot] = "{" }) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, canary.ConfigurationAnnot,
		},
		"the recorded time is garbage": {
			func(w *world) { w.change(func(p *corev1.Pod) { p.Annotations[canary.DecidedAtAnnot] = "soon" }) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "is no time",
		},
		"the DaemonSet may not be read now": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.DaemonSets, e.ControllerRevisions = nil, nil; e.Pods = e.Pods[:1] })
				delete(w.evidence().Collected, evidence.DaemonSets)
				delete(w.evidence().Collected, evidence.Pods)
			},
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "the DaemonSet changed cannot be told: it cannot be read now",
		},
		"the node may not be read now": {
			func(w *world) { w.share(func(e *evidence.Evidence) { e.Nodes = nil }) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "the node (by a reboot) changed cannot be told",
		},
		"the network may not be read now": {
			func(w *world) { w.evidence().Networks = nil; delete(w.evidence().Collected, evidence.Networks) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "NetworkAttachmentDefinition downloads/vlan50 changed cannot be told",
		},
		"the guard may not be read now": {
			func(w *world) { w.evidence().ConfigMaps = nil; delete(w.evidence().Collected, evidence.ConfigMaps) },
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "ConfigMap egress-guard changed cannot be told",
		},
		"the events have expired since": {
			func(w *world) { w.evidence().Events = nil }, v1alpha1.Fresh, v1alpha1.StateFreshPass, "",
		},
		"what was recorded as inconclusive looks like a pass now": {
			func(w *world) { w.record("inconclusive", "stale-attempt") },
			v1alpha1.Fresh, v1alpha1.StateInconclusive, "",
		},
		"a running canary failed after its pass": {
			func(w *world) {
				w.change(running)
				w.record("pass", "ok")
				w.change(func(p *corev1.Pod) {
					p.Status.Phase = corev1.PodRunning
					p.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
					p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
				})
			},
			v1alpha1.Stale, v1alpha1.StateStale, "the canary itself changed: pass (ok) was recorded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			row.change(w)
			c := Summarize(w.Data, now(), Settings{}).Status.Canaries[0]
			if c.Freshness != row.fresh || c.State != row.state {
				t.Errorf("got %s, %s (%q), want %s, %s", c.Freshness, c.State, c.Changes, row.fresh, row.state)
			}
			if got := strings.Join(c.Changes, "\n"); !strings.Contains(got, row.says) || (row.says == "") != (got == "") {
				t.Errorf("changes %q, want %q", got, row.says)
			}
		})
	}
}

// TestFailureSurvivesItsEvents: an hour after a failure its events are gone; the
// cause that was recorded stays.
func TestFailureSurvivesItsEvents(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.change(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
		p.Status.ContainerStatuses = nil
	})
	w.record("fail", "duplicate-address")
	w.evidence().Events = nil
	document := Summarize(w.Data, now().Add(2*time.Hour), Settings{})
	c := document.Status.Canaries[0]
	if c.Cause != "duplicate-address" || c.State != v1alpha1.StateFreshFail {
		t.Errorf("got %s (%s), want fresh-fail (duplicate-address)", c.State, c.Cause)
	}
	if got := document.Status.Next.Command; got != "kubectl vlan50 explain duplicate-address" {
		t.Errorf("next is %q", got)
	}
}

// TestUnseenPartsOfARecord: what was not recorded cannot be compared.
func TestUnseenPartsOfARecord(t *testing.T) {
	t.Parallel()
	full := evidence.Fingerprint{
		DaemonSetUID: "a", RevisionHash: "b", DaemonPodUID: "c", NodeBootID: "d",
		Networks: map[string]evidence.NetworkPrint{"n/x": {UID: "e"}}, ConfigMaps: map[string]string{"g": "1"},
	}
	if dark := unseen(full, full); dark != nil {
		t.Errorf("the same fingerprint has nothing unseen: %q", dark)
	}
	if dark := unseen(evidence.Fingerprint{}, full); len(dark) != 6 {
		t.Errorf("six parts were not recorded, got %q", dark)
	}
	if dark := unseen(full, evidence.Fingerprint{DaemonAbsent: true}); len(dark) != 5 {
		t.Errorf("five parts cannot be read, the daemon Pod is known to be absent: %q", dark)
	}
}

func TestRecordedTimeIsShown(t *testing.T) {
	t.Parallel()
	c := Summarize(healthy(t).Data, now(), Settings{}).Status.Canaries[0]
	if want := metav1.NewTime(now().Add(-time.Minute)); c.DecidedAt == nil || !c.DecidedAt.Equal(&want) {
		t.Errorf("decided at %v, want %v", c.DecidedAt, want)
	}
}
