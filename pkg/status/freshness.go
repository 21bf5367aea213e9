package status

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// freshness tells whether a verdict speaks for the present configuration, and
// why not. The rules, in order:
//
//   - the judge itself sees that the attempt is older than the configuration,
//     or the Pod is no longer as it was judged: STALE;
//   - nothing valid was recorded: UNKNOWN;
//   - something differs from what was recorded: STALE, with each thing;
//   - something was not recorded, or cannot be read now: UNKNOWN, as what is not
//     seen may have changed;
//   - otherwise FRESH. (That Multus is down now is seen by the caller.)
func freshness(e *evidence.Evidence, live verdict.Verdict, record *canary.Record, recordErr error) (v1alpha1.Freshness, []string) {
	if live.Cause == verdict.StaleAttempt {
		if changes := diff(e, record); len(changes) > 0 {
			return v1alpha1.Stale, changes
		}
		return v1alpha1.Stale, []string{live.Message}
	}
	switch {
	case recordErr != nil:
		return v1alpha1.FreshnessUnknown, []string{recordErr.Error()}
	case record == nil:
		return v1alpha1.FreshnessUnknown, []string{"nothing was recorded: this Pod was not made by a retest, or its verdict could not be noted on it"}
	}
	if changes := append(changedSince(e, live, record), diff(e, record)...); len(changes) > 0 {
		return v1alpha1.Stale, changes
	}
	if dark := unseen(e.CanaryPod(), record.Configuration, evidence.FingerprintOf(*e)); len(dark) > 0 {
		return v1alpha1.FreshnessUnknown, dark
	}
	return v1alpha1.Fresh, nil
}

func diff(e *evidence.Evidence, record *canary.Record) []string {
	if record == nil {
		return nil
	}
	return record.Configuration.Diff(evidence.FingerprintOf(*e))
}

// changedSince tells what became of the Pod itself after it was judged.
func changedSince(e *evidence.Evidence, live verdict.Verdict, record *canary.Record) []string {
	pod := e.CanaryPod()
	if pod.DeletionTimestamp != nil {
		return []string{"the canary is being deleted"}
	}
	if word := canary.Weigh(pod, live, record); word.Outcome != record.Outcome {
		return []string{fmt.Sprintf("the canary itself changed: %s (%s) was recorded, now it is %s (%s)", record.Outcome, record.Cause, word.Outcome, word.Cause)}
	}
	return nil
}

// unseen names the parts of a fingerprint that are not known on both sides: Diff
// takes the unknown for unchanged, and a status must not.
func unseen(pod *corev1.Pod, was, is evidence.Fingerprint) []string {
	var dark []string
	cannot := func(known, knownNow bool, what string) {
		var why string
		switch {
		case known && knownNow:
			return
		case known:
			why = "it cannot be read now"
		case knownNow:
			why = "it was not recorded"
		default:
			why = "it was not recorded, and cannot be read now"
		}
		dark = append(dark, "whether "+what+" changed cannot be told: "+why)
	}
	cannot(was.DaemonSetUID != "" || was.DaemonSetAbsent, is.DaemonSetUID != "" || is.DaemonSetAbsent, "the DaemonSet")
	// The generation tells of every change of the template as well.
	if was.RevisionHash != "" || is.RevisionHash != "" {
		cannot(was.RevisionHash != "", is.RevisionHash != "", "the DaemonSet's revision")
	}
	cannot(was.DaemonPodUID != "" || was.DaemonAbsent, is.DaemonPodUID != "" || is.DaemonAbsent, "the daemon Pod")
	// A reboot starts a new container of the daemon, which tells of it as well.
	if was.NodeBootID != "" || is.NodeBootID != "" || was.DaemonContainerID == "" || is.DaemonContainerID == "" {
		cannot(was.NodeBootID != "" || was.NodeAbsent, is.NodeBootID != "" || is.NodeAbsent, "the node (by a reboot)")
	}
	selections, _ := multus.RequestedNetworks(pod)
	asked := map[string]bool{}
	for _, s := range selections {
		asked[s.Network()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		_, known := was.Networks[name]
		_, knownNow := is.Networks[name]
		cannot(known, knownNow, "NetworkAttachmentDefinition "+name)
	}
	for _, name := range evidence.ConfigMapsOf(&pod.Spec) {
		cannot(was.ConfigMaps[name] != "", is.ConfigMaps[name] != "", "ConfigMap "+name)
	}
	return dark
}
