package status

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// freshness tells whether a verdict speaks for the present configuration, and
// why not. The rules, in order:
//
//   - the judge itself sees that the attempt is older than the configuration,
//     or the Pod is no longer as it was judged: STALE;
//   - nothing valid was recorded: UNKNOWN;
//   - something differs from what was recorded: STALE, with each thing;
//   - something that was recorded cannot be read now, or the other way round:
//     UNKNOWN, as what is not seen may have changed;
//   - otherwise FRESH.
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
	if dark := unseen(record.Configuration, evidence.FingerprintOf(*e)); len(dark) > 0 {
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
	if word := weigh(pod, live, record); word.Outcome != record.Outcome {
		return []string{fmt.Sprintf("the canary itself changed: %s (%s) was recorded, now it is %s (%s)", record.Outcome, record.Cause, word.Outcome, word.Cause)}
	}
	return nil
}

// unseen names the parts of a fingerprint that are known on one side alone:
// Diff takes the unknown for unchanged, and a status must not.
func unseen(was, is evidence.Fingerprint) []string {
	var dark []string
	cannot := func(known, knownNow bool, what string) {
		switch {
		case known && !knownNow:
			dark = append(dark, "whether "+what+" changed cannot be told: it cannot be read now")
		case !known && knownNow:
			dark = append(dark, "whether "+what+" changed cannot be told: it was not recorded")
		}
	}
	cannot(was.DaemonSetUID != "", is.DaemonSetUID != "", "the DaemonSet")
	cannot(was.RevisionHash != "", is.RevisionHash != "", "the DaemonSet's revision")
	cannot(was.DaemonPodUID != "" || was.DaemonAbsent, is.DaemonPodUID != "" || is.DaemonAbsent, "the daemon Pod")
	cannot(was.NodeBootID != "", is.NodeBootID != "", "the node (by a reboot)")
	for _, name := range names(was.Networks, is.Networks) {
		_, known := was.Networks[name]
		_, knownNow := is.Networks[name]
		cannot(known, knownNow, "NetworkAttachmentDefinition "+name)
	}
	for _, name := range names(was.ConfigMaps, is.ConfigMaps) {
		cannot(was.ConfigMaps[name] != "", is.ConfigMaps[name] != "", "ConfigMap "+name)
	}
	return dark
}

// names are the keys of both maps, sorted.
func names[V any](a, b map[string]V) []string {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
