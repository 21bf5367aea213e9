package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// maxFailures bounds how many of a Pod's failure events are taken apart: the
// newest tells how things are, older ones only whether it was seen before.
const maxFailures = 32

// sandboxFault is rule 9. Failures are history once the sandbox stands. The
// newest that is understood decides, unless a newer one of another attempt is
// not: then older words no longer tell how things are. A status that could not
// be read is no attempt.
func sandboxFault(s *scene) *finding {
	if s.hasRun() || s.sandboxStands() {
		return nil
	}
	failures := s.ev.sandbox
	if len(failures) > maxFailures {
		failures = failures[len(failures)-maxFailures:]
	}
	found := make([]*finding, len(failures))
	for i, ev := range failures {
		found[i] = s.faultIn(ev)
	}
	var newest *finding
	for i, f := range slices.Backward(found) {
		switch {
		case f.cause != SandboxFailed && (newest == nil || newest.at.Sub(f.at) < RepeatAfter):
			return s.sawAgain(f, found, failures)
		case newest == nil && !isStatusRead(failures[i]):
			newest = f
		}
	}
	if f := s.missingNAD(); f != nil {
		return f
	}
	if newest == nil && len(found) > 0 {
		return found[len(found)-1]
	}
	return newest
}

// isStatusRead tells kubelet's failure to read a sandbox's or the Pod's status
// from one to make a sandbox.
func isStatusRead(ev *corev1.Event) bool {
	message := plainMessage(ev)
	return ev.Reason == "FailedPodSandBoxStatus" || ev.Reason == "FailedSync" && strings.HasPrefix(message, "error determining status: ")
}

// sawAgain counts the sightings of a fault over all failures that tell it.
func (s *scene) sawAgain(f *finding, found []*finding, failures []*corev1.Event) *finding {
	for i, other := range found {
		if other.cause == f.cause {
			f.since(failures[i])
		}
	}
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
	at, said := evidence.EventTime(newest[0]), multus.Plain(newest[0].Message)
	f := s.lookupFault(said, at)
	if f.message == "" {
		f.message = fmt.Sprintf("%s: Multus could not get the network: %s", s.who(), cmp.Or(firstLine(said), "it does not say why"))
	}
	f.lines, f.at = eventLines(newest), at
	return f.since(s.ev.noNAD...)
}

// faultIn reads one failure event.
func (s *scene) faultIn(ev *corev1.Event) *finding {
	parsed := multus.ParseFailure(ev.Message)
	at := evidence.EventTime(ev)
	f := s.fault(&parsed, at)
	f.lines, f.at = append([]Line{eventLine(ev)}, f.lines...), at
	if f.message == "" {
		f.message = s.failureText(&parsed)
	}
	if w, ok := s.wantedOf(parsed.Network()); ok && f.names.network == "" {
		f.names.network = w.Network()
	}
	return f
}

// fault names what a failure message of some time tells.
func (s *scene) fault(f *multus.Failure, at time.Time) *finding {
	z := s.zoneOf(f)
	switch {
	case reachedMultus(f) && s.multusGone():
		return &finding{cause: StaleMultusConf, message: fmt.Sprintf("%s: its runtime still calls Multus, but %s is not there: %s", s.who(), s.daemonSetName(), firstLine(f.Text))}
	case delegatesToItself(f):
		return &finding{cause: MultusSelfDelegation}
	case z == inShim && isNoDaemon(f.Text):
		return s.shimFault(f.Text)
	case z == inMultus && isLookup(f.Text):
		return s.lookupFault(f.Text, at)
	case z == inMultus && isPodMissing(f.Text):
		return s.podMissing(f.Text)
	case isUnknownToDaemon(f):
		return &finding{cause: ShimDaemonVersionSkew, message: s.who() + ": the daemon does not know what its shim asks: " + firstLine(f.Text)}
	}
	if plugin, dirs, ok := missingPlugin(f.Text); ok {
		return s.pluginMissing(f, z, plugin, dirs)
	}
	for _, sig := range signatures {
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
		return s.noRuntimeNetwork(f)
	case NADConfigMissing, NADConfigInvalid:
		for _, w := range s.wanted {
			if w.known && w.confErr != nil {
				found.message = fmt.Sprintf("%s: NetworkAttachmentDefinition %s: %s", s.who(), w.Network(), w.confErr)
				found.names.network = w.Network()
			}
		}
	case MasterLinkMissing:
		found.names.parent = masterIn(f.Text)
		if s.wants(found.names.parent) {
			found.cause = SandboxFailed // the Pod's own interface, not its parent
		}
	case DuplicateAddress:
		// The first may be our own Pod's before, whose neighbours have not noticed.
		found.again = true
		found.names.address = joinAddresses(addressesIn(f.Text))
	default: // the words say it all
	}
	return found
}

func (s *scene) failureText(f *multus.Failure) string {
	text := firstLine(f.Text)
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

// noRuntimeNetwork: the runtime has no network; whether because its first conf
// is broken or because there is none yet, only the files tell.
func (s *scene) noRuntimeNetwork(f *multus.Failure) *finding {
	if strings.Contains(f.Text, "failed to load CNI config") {
		return &finding{cause: CNIConfEmpty} // the runtime names the file and its fault
	}
	for _, hf := range s.hostFiles() {
		if confs := confFiles(hf); len(confs) > 0 && isBrokenConf(confs[0]) && isRuntimeDir(hf) {
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
