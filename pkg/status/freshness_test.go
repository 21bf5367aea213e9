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
		"the node is gone": {
			func(w *world) { w.share(func(e *evidence.Evidence) { e.Nodes = nil }) },
			v1alpha1.Stale, v1alpha1.StateStale, "node node-a is gone",
		},
		"the DaemonSet was deleted": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.DaemonSets, e.ControllerRevisions = nil, nil })
			},
			v1alpha1.Stale, v1alpha1.StateStale, "the DaemonSet was deleted",
		},
		"the node is down": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.Nodes[0].Status.Conditions = nil })
			},
			v1alpha1.Stale, v1alpha1.StateStale, "a Pod made now on node node-a would not be attached: node node-a is NotReady",
		},
		"the daemon is not Ready": {
			func(w *world) { w.daemonNotReady() },
			v1alpha1.Stale, v1alpha1.StateStale, "a Pod made now on node node-a would not be attached",
		},
		"network and guard were not recorded and may not be read": {
			func(w *world) {
				w.hideNetworkAndGuard()
				w.record("pass", "ok")
			},
			v1alpha1.FreshnessUnknown, v1alpha1.StateUnknown, "it was not recorded, and cannot be read now",
		},
		"a canary that passed while it ran has failed since": {
			func(w *world) {
				w.change(running)
				w.record("pass", "ok")
				w.change(func(p *corev1.Pod) {
					p.Status.Phase = corev1.PodFailed
					p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
				})
			},
			v1alpha1.Stale, v1alpha1.StateStale, "the canary itself changed: pass (ok) was recorded",
		},
		"a canary that failed while it was pending has succeeded since": {
			func(w *world) { w.record("fail", "master-missing") },
			v1alpha1.Stale, v1alpha1.StateStale, "the canary itself changed: fail (master-missing) was recorded, now it is pass",
		},
		"a canary that failed at its end, of which the events have gone": {
			func(w *world) {
				w.record("fail", "address-mismatch")
				w.evidence().Events = nil
				w.change(func(p *corev1.Pod) { delete(p.Annotations, "k8s.v1.cni.cncf.io/network-status") })
			},
			v1alpha1.Fresh, v1alpha1.StateFreshFail, "",
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
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.Nodes = nil })
				delete(w.evidence().Collected, evidence.Nodes)
			},
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
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "x"}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "g"},
		}}}}},
	}
	full := evidence.Fingerprint{
		DaemonSetUID: "a", RevisionHash: "b", DaemonPodUID: "c", DaemonContainerID: "c1", NodeBootID: "d",
		Networks: map[string]evidence.NetworkPrint{"n/x": {UID: "e"}}, ConfigMaps: map[string]string{"g": "1"},
	}
	none := evidence.Fingerprint{}
	withoutNode, withoutRevision := full, full
	withoutNode.NodeBootID, withoutRevision.RevisionHash = "", ""
	withoutContainer := withoutNode
	withoutContainer.DaemonContainerID = ""
	for name, row := range map[string]struct {
		was, is evidence.Fingerprint
		dark    int
		says    string
	}{
		"the same":                       {full, full, 0, ""},
		"nothing was recorded":           {none, full, 6, "it was not recorded"},
		"nothing can be read":            {full, none, 6, "it cannot be read now"},
		"neither":                        {none, none, 5, "it was not recorded, and cannot be read now"},
		"the daemon Pod is not there":    {full, evidence.Fingerprint{DaemonAbsent: true}, 5, ""},
		"the node on neither side":       {withoutNode, withoutNode, 0, ""},
		"neither node nor container":     {withoutContainer, withoutContainer, 1, "by a reboot"},
		"the revisions on neither side":  {withoutRevision, withoutRevision, 0, ""},
		"the revisions on one side only": {full, withoutRevision, 1, "revision"},
	} {
		dark := unseen(pod, row.was, row.is)
		if len(dark) != row.dark || row.says != "" && !strings.Contains(strings.Join(dark, "\n"), row.says) {
			t.Errorf("%s: got %d parts, want %d: %q", name, len(dark), row.dark, dark)
		}
	}
}

func TestRecordedTimeIsShown(t *testing.T) {
	t.Parallel()
	c := Summarize(healthy(t).Data, now(), Settings{}).Status.Canaries[0]
	if want := metav1.NewTime(now().Add(-time.Minute)); c.DecidedAt == nil || !c.DecidedAt.Equal(&want) {
		t.Errorf("decided at %v, want %v", c.DecidedAt, want)
	}
}
