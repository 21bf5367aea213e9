package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// maxFailures bounds how many of a Pod's failure events are taken apart: the
// newest tells how things are, older ones only whether it was seen before.
const maxFailures = 32

// sandboxFault is rule 9. Failures are history once the sandbox stands.
func sandboxFault(s *scene) *finding {
	if s.hasRun() || s.sandboxStands() {
		return nil
	}
	var unknown *finding
	failures := s.ev.sandbox
	if len(failures) > maxFailures {
		failures = failures[len(failures)-maxFailures:]
	}
	for _, ev := range slices.Backward(failures) {
		f := s.faultIn(ev)
		if f == nil {
			continue
		}
		if f.cause == SandboxFailed {
			if unknown == nil {
				unknown = f
			}
			continue
		}
		// Older words than the newest that are known stand only where the newest
		// are not understood.
		if unknown != nil && !sameStory(ev, unknown) {
			break
		}
		return s.sawAgain(f, failures)
	}
	if f := s.missingNAD(); f != nil {
		return f
	}
	return unknown
}

// sameStory is true for events so near in time that they tell of one attempt.
func sameStory(ev *corev1.Event, unknown *finding) bool {
	return unknown.lines[0].Time.Sub(evidence.EventTime(ev)) < RepeatAfter
}

// sawAgain counts the sightings of a fault over all failures that tell it.
func (s *scene) sawAgain(f *finding, failures []*corev1.Event) *finding {
	var seen []*corev1.Event
	for _, ev := range failures {
		if other := s.faultIn(ev); other != nil && other.cause == f.cause {
			seen = append(seen, ev)
		}
	}
	f.since(seen...)
	if f.cause == NADNotFound {
		f.lines = append(f.lines, eventLines(newestOf(s.ev.noNAD))...)
	}
	return f
}

// missingNAD is the fault told by Multus' own event alone, where kubelet's is
// missing.
func (s *scene) missingNAD() *finding {
	newest := newestOf(s.ev.noNAD)
	if len(newest) == 0 {
		return nil
	}
	f := s.lookupFault(newest[0].Message)
	f.lines = eventLines(newest)
	f.at = evidence.EventTime(newest[0])
	return f.since(s.ev.noNAD...)
}

// faultIn reads one failure event.
func (s *scene) faultIn(ev *corev1.Event) *finding {
	parsed := multus.ParseFailure(ev.Message)
	f := s.fault(&parsed)
	f.lines = append([]Line{eventLine(ev)}, f.lines...)
	f.at = evidence.EventTime(ev)
	if f.message == "" {
		f.message = s.failureText(&parsed)
	}
	return f
}

// fault names what a failure message tells.
func (s *scene) fault(f *multus.Failure) *finding {
	z := s.zoneOf(f)
	switch {
	case reachedMultus(f) && s.multusGone():
		return &finding{cause: StaleMultusConf, message: fmt.Sprintf("%s: its runtime still calls Multus, but %s is not there: %s", s.who(), s.daemonSetName(), firstLine(f.Text))}
	case delegatesToItself(f):
		return &finding{cause: MultusSelfDelegation}
	case z == inShim && isNoDaemon(f.Text):
		return s.shimFault(f.Text)
	case z == inMultus && isLookup(f.Text):
		return s.lookupFault(f.Text)
	case z == inMultus && isPodMissing(f.Text):
		return s.podMissing(f.Text)
	}
	if plugin, dirs, ok := missingPlugin(f.Text); ok {
		return s.pluginMissing(f, z, plugin, dirs)
	}
	for _, sig := range signatures() {
		if sig.matches(z, f.Text) {
			return s.refine(sig.cause, f)
		}
	}
	return &finding{cause: SandboxFailed}
}

// refine puts what the objects know to what the words tell.
func (s *scene) refine(cause Cause, f *multus.Failure) *finding {
	found := &finding{cause: cause}
	switch cause {
	case CNIConfEmpty:
		return s.noRuntimeNetwork()
	case NADConfigMissing, NADConfigInvalid:
		for _, w := range s.wanted {
			if w.known && w.confErr != nil {
				found.message = fmt.Sprintf("%s: NetworkAttachmentDefinition %s: %s", s.who(), w.Network(), w.confErr)
			}
		}
	case MasterLinkMissing:
		found.names.parent = masterIn(f.Text)
	}
	return found
}

func (s *scene) failureText(f *multus.Failure) string {
	text := firstLine(f.Text)
	const maxText = 600
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	if net := f.Network(); net != "" {
		return fmt.Sprintf("%s could not be attached to network %s: %s", s.who(), net, text)
	}
	return fmt.Sprintf("%s: its sandbox could not be made: %s", s.who(), text)
}

// reachedMultus reports that the runtime called Multus, or tried to.
func reachedMultus(f *multus.Failure) bool {
	return f.Reached(multus.LayerShim) || f.Reached(multus.LayerMultus) ||
		slices.ContainsFunc(f.Names(multus.LayerPlugin), isMetaPlugin)
}

// delegatesToItself: Multus stands below Multus, or the network delegated to is
// Multus' own.
func delegatesToItself(f *multus.Failure) bool {
	delegates := f.Names(multus.LayerDelegate)
	if slices.Contains(delegates, "multus-cni-network") {
		return true
	}
	below := false
	for _, l := range f.Layers {
		switch {
		case l.Kind == multus.LayerDelegate:
			below = true
		case below && l.Kind == multus.LayerShim, below && l.Kind == multus.LayerPlugin && isMetaPlugin(l.Name):
			return true
		}
	}
	return false
}

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
	var seen []string
	for field := range strings.FieldsSeq(list) {
		if !slices.Contains(seen, field) {
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

// masterIn reads the name in `failed to lookup master "x"`.
func masterIn(text string) string {
	_, rest, ok := strings.Cut(text, `master "`)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// isLookup matches Multus' failure to get a NetworkAttachmentDefinition, in the
// words of v3 and v4.
func isLookup(text string) bool {
	return strings.Contains(text, "cannot find a network-attachment-definition") ||
		strings.Contains(text, "failed to get network resource") ||
		strings.Contains(text, "network-attachment-definition") && strings.Contains(text, "not found")
}

// lookupFault reads why Multus could not get a NetworkAttachmentDefinition: the
// API's own answer stands behind its name.
func (s *scene) lookupFault(text string) *finding {
	f := &finding{cause: NADNotFound}
	for _, sig := range multusSignatures() {
		switch sig.cause {
		case MultusTokenExpired, MultusCAMismatch, MultusRBACMissing:
			if sig.matches(inMultus, text) {
				return &finding{cause: sig.cause}
			}
		}
	}
	if crd := crdTerminating(s); crd != nil {
		return crd
	}
	if strings.Contains(text, "dial tcp") || strings.Contains(text, "i/o timeout") {
		return &finding{cause: APIServerUnreachable}
	}
	if _, rest, ok := strings.Cut(text, "cannot find a network-attachment-definition ("); ok {
		name, rest, _ := strings.Cut(rest, ") in namespace (")
		ns, _, _ := strings.Cut(rest, ")")
		f.message = fmt.Sprintf("%s asks for NetworkAttachmentDefinition %s/%s, which is not there", s.who(), ns, name)
	}
	return f
}

// isPodMissing: Multus did not find the Pod, in the informer's words (`pod "x"
// not found`) or in the API's (`pods "x" not found`).
func isPodMissing(text string) bool {
	return strings.Contains(text, `pod "`) && strings.Contains(text, `" not found`) ||
		strings.Contains(text, `pods "`) && strings.Contains(text, `" not found`)
}

// podMissing: a Pod that is there and that the daemon's cache does not hold
// means a stale cache; else it was gone while being attached.
func (s *scene) podMissing(text string) *finding {
	if strings.Contains(text, `pods "`) {
		// Kubelet tries again for a Pod that is there after all.
		return &finding{cause: PodDeletedDuringAdd, open: true}
	}
	f := &finding{cause: DaemonInformerStale}
	if daemon := s.e.DaemonPod(s.node); daemon != nil {
		for _, l := range s.e.PodLogs {
			if l.Pod.UID == daemon.UID && strings.Contains(l.Log, "failed to sync pod informer cache") {
				f.lines = append(f.lines, Line{Source: "log", Text: "failed to sync pod informer cache"})
			}
		}
	}
	return f
}

// noRuntimeNetwork: the runtime has no network; whether because its first conf
// is broken or because there is none yet, only the files tell.
func (s *scene) noRuntimeNetwork() *finding {
	for _, hf := range s.hostFiles() {
		if confs := confFiles(hf); len(confs) > 0 && isBrokenConf(confs[0]) && (hf.RuntimeConfDir == "" || hf.RuntimeConfDir == hf.Dir) {
			return &finding{
				cause: CNIConfEmpty, lines: []Line{hostFilesLine(hf)},
				message: fmt.Sprintf("%s: the first CNI conf, %s in %s, is empty or broken, so that the runtime has no network", s.who(), confs[0].Name, hf.Dir),
			}
		}
	}
	if daemon := s.e.DaemonPod(s.node); daemon != nil {
		for _, l := range s.e.PodLogs {
			if state := multus.AttachReady(l.Log); l.Pod.UID == daemon.UID && state.EmptyConf {
				return &finding{
					cause:   CNIConfEmpty,
					message: s.who() + ": the daemon wrote an empty CNI conf, so that the runtime has no network",
				}
			}
		}
	}
	return &finding{cause: DefaultNetworkNotReady, message: s.who() + ": the node's runtime has no network"}
}

// killText is what a FailedKillPod message says at its innermost.
func killText(message string) string {
	parsed := multus.ParseFailure(message)
	return firstLine(parsed.Text)
}
