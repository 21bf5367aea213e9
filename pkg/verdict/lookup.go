package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// missingPlugin reads libcni's `failed to find plugin "p" in path [dirs]`.
func missingPlugin(text string) (plugin, dirs string, ok bool) {
	_, rest, ok := strings.Cut(text, `failed to find plugin "`)
	if !ok {
		return "", "", false
	}
	plugin, rest, ok = strings.Cut(rest, `" in path [`)
	if !ok {
		return "", "", false
	}
	dirs, _, _ = strings.Cut(rest, "]")
	return plugin, uniqueFields(dirs), true
}

// uniqueFields drops what is doubled: thin Multus searches binDir and CNI_PATH,
// often the same.
func uniqueFields(list string) string {
	const most = 8 // nobody searches more, and the work stays linear
	var seen []string
	for field := range strings.FieldsSeq(list) {
		if len(seen) < most && !slices.Contains(seen, field) {
			seen = append(seen, field)
		}
	}
	return strings.Join(seen, ", ")
}

func (s *scene) pluginMissing(f *multus.Failure, z zone, plugin, dirs string) *finding {
	found := &finding{names: names{plugin: plugin, dir: dirs}}
	inside := f.Reached(multus.LayerDaemon) || f.Reached(multus.LayerDelegate) || f.Reached(multus.LayerMultus)
	switch {
	case isMetaPlugin(plugin) && inside:
		found.cause = MultusSelfDelegation
	case isMetaPlugin(plugin):
		found.cause = MetaPluginMissing
	case z == inSecondary:
		found.cause = DelegatePluginMissing
	default:
		found.cause = PrimaryPluginUnresolved
	}
	found.message = fmt.Sprintf("%s: plugin %q is not in %s", s.who(), plugin, cmp.Or(dirs, "any directory searched"))
	if net := f.Network(); net != "" {
		found.message += fmt.Sprintf(" (network %s)", net)
	}
	return found
}

// masterIn reads the name in `failed to lookup master "x"` and in netlink's
// `Link x not found`.
func masterIn(text string) string {
	if _, rest, ok := strings.Cut(text, `master "`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	if _, rest, ok := strings.Cut(text, "Link "); ok {
		if name, _, ok := strings.Cut(rest, " not found"); ok && !strings.Contains(name, " ") {
			return name
		}
	}
	return ""
}

// isLookup matches Multus' failure to get a NetworkAttachmentDefinition, in the
// words of v3 and v4.
func isLookup(text string) bool {
	return strings.Contains(text, "cannot find a network-attachment-definition") ||
		strings.Contains(text, "failed to get network resource") ||
		strings.Contains(text, "network-attachment-definition") && strings.Contains(text, "not found")
}

// lookupFault reads why Multus could not get a NetworkAttachmentDefinition: the
// API's own answer stands behind its name. at is when that was.
func (s *scene) lookupFault(text string, at time.Time) *finding {
	if cause := apiRefusal(text); cause != "" {
		return &finding{cause: cause}
	}
	if crd := crdTerminating(s); crd != nil {
		return crd
	}
	if daemon := s.e.DaemonPod(s.node); daemon != nil && s.daemonLogLine(daemon, isNADCacheStale) != "" {
		return &finding{cause: DaemonInformerStale}
	}
	if isUnreachable(text) {
		return &finding{cause: APIServerUnreachable}
	}
	_, rest, ok := strings.Cut(text, "cannot find a network-attachment-definition (")
	if !ok {
		return &finding{cause: NADNotFound}
	}
	name, rest, _ := strings.Cut(rest, ") in namespace (")
	ns, _, _ := strings.Cut(rest, ")")
	return s.nadMissing(ns, name, text, at)
}

// nadMissing compares what Multus says with what is there. A network that was
// there before, and that the daemon's cache does not hold, means a stale cache.
// One that came later makes the attempt a stale one (unlessStale).
func (s *scene) nadMissing(ns, name, text string, at time.Time) *finding {
	f := &finding{cause: NADNotFound, names: names{network: ns + "/" + name}, message: fmt.Sprintf("%s asks for NetworkAttachmentDefinition %s/%s, which ", s.who(), ns, name)}
	nad := s.e.Network(ns, name)
	if nad == nil || nad.CreationTimestamp.IsZero() {
		if nad == nil && s.e.Looked(evidence.Networks) {
			f.message += "is not there"
		} else {
			f.message += "Multus did not find"
		}
		return f
	}
	made := nad.CreationTimestamp.Time
	switch since := made.UTC().Format(time.RFC3339); {
	case made.After(at):
		f.message += "was not there before " + since
	case made.After(s.pod.CreationTimestamp.Time) && at.Sub(made) < RepeatAfter:
		// The call that failed may have begun before.
		f.cause, f.open = StaleAttempt, true
		f.message += "was created during the attempt, at " + since
	default:
		f.message += "Multus did not find, though it is there since " + since
		if isCacheMiss(text) {
			f.cause = DaemonInformerStale
		}
	}
	return f
}

// isCacheMiss tells the informer's words from the API's, which name the resource
// in the plural.
func isCacheMiss(text string) bool {
	return says(text, `networkattachmentdefinition.k8s.cni.cncf.io "*" not found`)
}

// isNADCacheStale matches the daemon's note that it knows no network at all.
func isNADCacheStale(line string) bool {
	return strings.Contains(line, "failed to sync net-attach-def informer cache")
}

// isPodMissing: Multus did not find the Pod, in the informer's words (`pod "x"
// not found`) or in the API's (`pods "x" not found`).
func isPodMissing(text string) bool {
	return says(text, `pod "*" not found`) || says(text, `pods "*" not found`)
}

// podMissing: a Pod that is there and that the daemon's cache does not hold
// means a stale cache; else it was gone while being attached.
func (s *scene) podMissing(text string) *finding {
	if says(text, `pods "*" not found`) {
		// Kubelet tries again for a Pod that is there after all.
		return &finding{cause: PodDeletedDuringAdd, open: true}
	}
	f := &finding{cause: DaemonInformerStale}
	if daemon := s.e.DaemonPod(s.node); daemon != nil {
		if line := s.daemonLogLine(daemon, isPodCacheStale); line != "" {
			f.lines = []Line{{Source: "log", Text: line}}
		}
	}
	return f
}

func isPodCacheStale(line string) bool {
	return strings.Contains(line, "failed to sync pod informer cache")
}
