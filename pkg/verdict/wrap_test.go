package verdict

import (
	"fmt"
	"maps"
	"slices"
)

// wrapper puts the words of a runtime and of a flavour of Multus around Multus'
// own.
type wrapper func(multusSays string) string

const (
	sandboxID = "5ca1ab1e00000000000000000000000000000000000000000000000000000001"
	stdin     = `{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus-shim"}`
)

func thin(m string) string {
	return `plugin type="multus" name="multus-cni-network" failed (add): ` + m
}

func bare(m string) string { return m }

func thick(m string) string {
	return fmt.Sprintf(`plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): CNI request failed with status 400: 'ContainerID:%q Netns:"/var/run/netns/cni-1" IfName:"eth0" Args:"K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s" Path:"" ERRORED: error configuring pod [%s/%s] networking: %s`+"\n': StdinData: %s",
		sandboxID, testNS, testName, testNS, testName, m, stdin)
}

// thick40 is the daemon of v4.0.x, which printed its request as bytes.
func thick40(m string) string {
	return fmt.Sprintf(`plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): CNI request failed with status 400: '&{ContainerID:%s Netns:/var/run/netns/cni-1 IfName:eth0 Args:K8S_POD_NAME=%s Path: StdinData:[123 34 99 110 105]} ContainerID:%q Netns:"/var/run/netns/cni-1" IfName:"eth0" Args:"" Path:"" ERRORED: error configuring pod [%s/%s] networking: %s`+"\n'",
		sandboxID, testName, sandboxID, testNS, testName, m)
}

// thickEscaped has its newline as two letters, as a message quoted once more.
func thickEscaped(m string) string {
	return fmt.Sprintf(`plugin type="multus-shim" failed (add): CmdAdd (shim): CNI request failed with status 400: 'error configuring pod [%s/%s] networking: %s\n': StdinData: %s`, testNS, testName, m, stdin)
}

func containerd(m string) string {
	return fmt.Sprintf("Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: %s", sandboxID, m)
}

func crio(m string) string {
	return fmt.Sprintf(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create pod network sandbox k8s_%s_%s_%s_0(%s): error adding pod %s_%s to CNI network "multus-cni-network": %s`,
		testName, testNS, testUID, sandboxID, testNS, testName, m)
}

func dockershim(m string) string {
	return fmt.Sprintf(`Failed create pod sandbox: rpc error: code = Unknown desc = [failed to set up sandbox container %q network for pod %q: networkPlugin cni failed to set up pod "%s_%s" network: %s, failed to clean up sandbox container %q network for pod %q: networkPlugin cni failed to teardown pod "%s_%s" network: delegateDel: error invoking DelegateDel - "macvlan": error in getting result from DelNetwork: Link not found]`,
		sandboxID, testName, testName, testNS, m, sandboxID, testName, testName, testNS)
}

func syncPod(m string) string {
	return fmt.Sprintf(`Error syncing pod, skipping: failed to "CreatePodSandbox" for "%s_%s(%s)" with CreatePodSandboxError: %q`,
		testName, testNS, testUID, "CreatePodSandbox for pod failed: rpc error: code = Unknown desc = failed to setup network for sandbox \"x\": "+m)
}

func unknownRuntime(m string) string {
	return "Failed to create pod sandbox: rpc error: code = Internal desc = wiring of microvm 0017 gave up (stage 3): " + m
}

func combined(m string) string { return "(combined from similar events): " + containerd(m) }

// wrappers crosses runtimes and flavours; the keys name the situation.
func wrappers() map[string]wrapper {
	all := map[string]wrapper{}
	runtimes := map[string]wrapper{
		"containerd": containerd, "cri-o": crio, "dockershim": dockershim, "a runtime not known": unknownRuntime,
		"combined": combined, "FailedSync": syncPod,
	}
	flavours := map[string]wrapper{"thin": thin, "old thin": bare, "thick": thick, "thick v4.0": thick40, "thick, escaped newline": thickEscaped}
	for r, outer := range runtimes {
		for f, inner := range flavours {
			all[r+", "+f] = func(m string) string { return outer(inner(m)) }
		}
	}
	return all
}

func wrapperNames() []string { return slices.Sorted(maps.Keys(wrappers())) }

// own is what Multus says of itself, in the forms of v3, v4 and with an empty
// UID.
func own(text string) []string {
	return []string{
		fmt.Sprintf("Multus: [%s/%s/%s]: %s", testNS, testName, testUID, text),
		fmt.Sprintf("Multus: [%s/%s/]: %s", testNS, testName, text),
		fmt.Sprintf("Multus: [%s/%s]: %s", testNS, testName, text),
	}
}

// delegate is what a delegate of the conf named net says, in the forms of v4,
// of v3 and of v3 with its inner words.
func delegate(net, text string) []string {
	return []string{
		fmt.Sprintf("[%s/%s/%s:%s]: error adding container to network %q: %s", testNS, testName, testUID, net, net, text),
		fmt.Sprintf("[%s/%s/:%s]: error adding container to network %q: %s", testNS, testName, net, net, text),
		fmt.Sprintf("[%s/%s:%s]: error adding container to network %q: delegateAdd: error invoking confAdd - %q: error in getting result from AddNetwork: %s", testNS, testName, net, net, net, text),
		fmt.Sprintf("Multus: [%s/%s]: error adding container to network %q: %s", testNS, testName, net, text),
		fmt.Sprintf("[%s/%s/%s:%s]: error adding container to network %q: plugin type=\"x\" failed (add): %s", testNS, testName, testUID, net, net, text),
		fmt.Sprintf("Multus: Err adding pod to network %q: Multus: error in invoke Delegate add - \"macvlan\": %s", net, text),
	}
}
