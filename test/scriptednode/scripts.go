package scriptednode

import "fmt"

// The texts of the guard script.
const (
	guardNoInterface = "timed out waiting for net1"
	guardDuplicate   = "duplicate address "
	guardFound       = "net1 has "
)

func steps(actions ...Action) []Step {
	out := make([]Step, 0, len(actions))
	for _, action := range actions {
		out = append(out, Step{Do: action})
	}
	return out
}

// Pass attaches the networks, finds the address free and ends well.
func Pass() Script {
	return Script{Name: "pass", Steps: steps(Sandbox{}, Guard{}, Main{})}
}

// PassRunning is Pass with a main container that stays running and ready.
func PassRunning() Script {
	return Script{Name: "pass-running", Steps: steps(Sandbox{}, Guard{}, Main{Runs: true})}
}

// ConfWindow is the window of a DaemonSet restart in which the Multus conf is
// absent: the primary network alone makes the sandbox, so there is no event of
// Multus and no network-status, and the guard waits in vain.
func ConfWindow() Script {
	return Script{Name: "conf-window", Steps: steps(PrimarySandbox{}, Guard{})}
}

// MissingPlugin lacks the plugin of the second network where the daemon looks.
func MissingPlugin(plugin string) Script { return MissingPluginIn(plugin, Reference().BinDir) }

// MissingPluginIn is MissingPlugin with the directory the daemon looks in.
func MissingPluginIn(plugin, dir string) Script {
	return Failing("missing-plugin", Fault{Layer: LayerSecondary, Text: missingPlugin(plugin, dir)})
}

// PrimaryPluginUnresolved lacks the plugin of the node's own network: the
// daemon has no binDir and looks in the default one.
func PrimaryPluginUnresolved() Script {
	return Failing("primary-plugin-unresolved", Fault{Layer: LayerPrimary, Text: missingPlugin("flannel", "/opt/cni/bin")})
}

// MetaPluginMissing lacks multus-shim where the runtime looks.
func MetaPluginMissing() Script {
	return Failing("meta-plugin-missing", Fault{Layer: LayerRuntime, Text: missingPlugin("multus-shim", Reference().BinDir)})
}

// NADNotFound finds no NetworkAttachmentDefinition of the canary's site,
// though the API has it: an informer that lags. Where the API does not have
// it, Pass fails in the same way by itself.
func NADNotFound(site Site) Script {
	return Failing("nad-not-found", missingNetwork(site.networkName()))
}

// DaemonUnreachable finds no Multus daemon for the given number of tries and
// attaches then; with 0 it never does.
func DaemonUnreachable(tries int) Script {
	fault := Fault{Layer: LayerShim, Text: daemonSilent}
	return Script{Name: "daemon-unreachable", Steps: steps(Sandbox{Fault: &fault, Times: tries}, Guard{}, Main{})}
}

// Delegate fails at the second network with a text of the caller.
func Delegate(text string) Script {
	return Failing("delegate", Fault{Layer: LayerSecondary, Text: text})
}

// GuardFailed attaches, and the guard ends with exit and message.
func GuardFailed(exit int32, message string) Script {
	return Script{Name: "guard-failed", Steps: steps(Sandbox{}, Guard{Exit: exit, Message: message})}
}

// DuplicateAddress attaches, and somebody else answers for the address.
func DuplicateAddress(site Site) Script {
	address := site.Address.Addr().String()
	return Script{Name: "duplicate-address", Steps: steps(Sandbox{}, Guard{
		Exit: 1, Message: guardDuplicate + address,
		Log: []string{fmt.Sprintf("Unicast reply from %s [%s] 0.912ms", address, "02:00:00:00:50:01")},
	})}
}

// ImagePull attaches, and the guard's image cannot be had: the Pod stays
// Pending for ever.
func ImagePull() Script {
	return Script{Name: "image-pull", Steps: steps(Sandbox{}, Pull{})}
}

// MountFailed never gets as far as a sandbox.
func MountFailed(volume, err string) Script {
	return Script{Name: "mount-failed", Steps: steps(Mount{Volume: volume, Err: err})}
}

// Unscheduled is taken by no node.
func Unscheduled() Script {
	return Script{Name: "unscheduled", Steps: steps(Unschedulable{
		Message: "0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, " +
			"preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
	})}
}

// LateSuccess fails the given number of times for lack of the plugin, and
// attaches then.
func LateSuccess(failures int) Script {
	fault := Fault{Layer: LayerSecondary, Text: missingPlugin("macvlan", Reference().BinDir)}
	return Script{Name: "late-success", Steps: steps(Sandbox{Fault: &fault, Times: failures}, Guard{}, Main{})}
}

// NeverFinishes stays Pending without a word: the node is bound and does
// nothing more.
func NeverFinishes() Script { return Script{Name: "never-finishes"} }

// Stuck is a script whose Pod cannot be taken down: every try fails with text
// until Node.Unstick.
func Stuck(script Script, text string) Script {
	script.Name += "-stuck"
	script.Teardown.Stuck = text
	return script
}

// Failing never gets a sandbox by Multus, because of the fault. Without the conf it gets a plain one,
// which is why it goes on.
func Failing(name string, fault Fault) Script {
	return Script{Name: name, Steps: steps(Sandbox{Fault: &fault}, Guard{}, Main{})}
}
