package status

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// nextStep is the one command to run now. The rules, the first that applies
// deciding:
//
//   - an address of a canary is claimed twice: look at the other Pod;
//   - the kind of the networks is missing or dying: look at it;
//   - Multus needs a person: what that person must look at or do;
//   - Multus is on its way: wait for it;
//   - there is no canary, or its verdict does not hold: retest;
//   - an attempt is under way: watch it;
//   - it failed for good: what the cause means and how it is mended;
//   - it passed, and something else is amiss: other Pods claim one address, or
//     the daemon of another node needs a person;
//   - it passed: nothing, besides hearing when that changes.
func nextStep(d *Data, s *v1alpha1.SiteStatusStatus, settings Settings) v1alpha1.NextStep {
	n := next{d: d, s: s, settings: settings}
	for _, rule := range []func() (v1alpha1.NextStep, bool){n.conflict, n.crd, n.multus, n.canary, n.othersConflict, n.othersDaemon} {
		if step, ok := rule(); ok {
			return step
		}
	}
	return n.vlan50("nothing has to be done; this tells when that changes", "status", "--watch")
}

type next struct {
	d        *Data
	s        *v1alpha1.SiteStatusStatus
	settings Settings
}

// vlan50 is a command of this tool, with the flags that the user gave.
func (n *next) vlan50(reason string, words ...string) v1alpha1.NextStep {
	words = append([]string{"kubectl", "vlan50"}, words...)
	return v1alpha1.NextStep{Command: quote(append(words, n.settings.Flags...)), Reason: reason}
}

// kubectl is a command of kubectl itself.
func (n *next) kubectl(reason string, words ...string) v1alpha1.NextStep {
	words = append([]string{"kubectl"}, words...)
	return v1alpha1.NextStep{Command: quote(append(words, n.settings.ClusterFlags...)), Reason: reason}
}

func (n *next) conflict() (v1alpha1.NextStep, bool) {
	if n.s.State != v1alpha1.StateConflict {
		return v1alpha1.NextStep{}, false
	}
	var wanted []string
	for _, claim := range n.s.Addresses.Pods {
		if claim.Mark == v1alpha1.MarkBad && claim.Canary {
			wanted = append(wanted, addressesOf(claim)...)
		}
	}
	for _, claim := range n.s.Addresses.Pods {
		theirs := func(address string) bool { return slices.Contains(addressesOf(claim), address) }
		if claim.Mark == v1alpha1.MarkBad && !claim.Canary && slices.ContainsFunc(wanted, theirs) {
			return n.kubectl("give this Pod another address, or delete it; then run a retest", "describe", "pod", "-n", claim.Namespace, claim.Name), true
		}
	}
	// Both are canaries.
	c := speaker(n.s)
	return n.kubectl("give one of the canaries another address; then run a retest", "describe", "pod", "-n", c.Namespace, c.Name), true
}

// addressesOf are the addresses that a Pod asks for or holds, without prefix.
func addressesOf(claim v1alpha1.AddressClaim) []string {
	var addresses []string
	for _, text := range slices.Concat(claim.Asked, claim.Held) {
		address, _, _ := strings.Cut(text, "/")
		addresses = append(addresses, address)
	}
	return addresses
}

// othersConflict is about Pods that are no canaries.
func (n *next) othersConflict() (v1alpha1.NextStep, bool) {
	for _, claim := range n.s.Addresses.Pods {
		if claim.Mark == v1alpha1.MarkBad {
			return n.kubectl("it claims an address that another Pod claims: give one of them another address", "describe", "pod", "-n", claim.Namespace, claim.Name), true
		}
	}
	return v1alpha1.NextStep{}, false
}

// othersDaemon is about the daemon of a node that has no canary.
func (n *next) othersDaemon() (v1alpha1.NextStep, bool) {
	for _, node := range n.s.Multus.Nodes {
		if state := progress(n.d, node.Node); node.Mark == v1alpha1.MarkBad && state.Phase == rollout.Blocked {
			return n.blocked(state, node), true
		}
	}
	return v1alpha1.NextStep{}, false
}

func (n *next) crd() (v1alpha1.NextStep, bool) {
	if n.s.Network.CRDHealthy == nil || *n.s.Network.CRDHealthy {
		return v1alpha1.NextStep{}, false
	}
	return n.kubectl("without this kind no Pod can be attached: apply Multus' manifests again", "get", "customresourcedefinition", crdName, "-o", "yaml"), true
}

// multus is what the DaemonSet needs before any retest can tell something.
func (n *next) multus() (v1alpha1.NextStep, bool) {
	ds := n.d.Shared.MultusDaemonSet()
	switch {
	case n.s.Ready:
		return v1alpha1.NextStep{}, false
	case ds == nil && len(n.s.Multus.Lines) > 0:
		return n.kubectl("Multus is not there, or not where it was looked for: name it with --daemonset NAMESPACE/NAME", "get", "daemonsets", "-A"), true
	case ds == nil || len(n.s.Multus.Nodes) == 0 && ds.Status.DesiredNumberScheduled > 0:
		return v1alpha1.NextStep{}, false // it may not be read, so the canary speaks alone
	}
	bad := n.badNode()
	state := progress(n.d, bad.Node)
	if state.Phase == rollout.Blocked {
		return n.blocked(state, bad), true
	}
	if log := n.d.Logs[bad.UID]; log.EmptyConf {
		return n.kubectl("its daemon wrote an empty CNI conf: see that the primary network's conf on node "+bad.Node+" is whole, then delete this Pod, whose successor writes it anew",
			"delete", "pod", "-n", n.d.DaemonSet.Namespace, bad.Pod), true
	}
	if state.Cause == verdict.RolloutBlockedNodeNotReady {
		return n.kubectl("Multus cannot be ready before the node is", "describe", "node", bad.Node), true
	}
	return n.vlan50("Multus is not ready yet; this ends when it is", "status", "--watch", "--until", "ready"), true
}

// badNode is the node that keeps Multus from being ready.
func (n *next) badNode() v1alpha1.MultusNode {
	for _, node := range n.s.Multus.Nodes {
		if !node.AttachReady {
			return node
		}
	}
	return v1alpha1.MultusNode{}
}

// blocked is what to do about a rollout that waiting cannot help.
func (n *next) blocked(state rollout.State, node v1alpha1.MultusNode) v1alpha1.NextStep {
	namespace, name := n.d.DaemonSet.Namespace, n.d.DaemonSet.Name
	about := evidence.Evidence{DaemonSet: n.d.DaemonSet, Pods: []corev1.Pod{{Spec: corev1.PodSpec{NodeName: node.Node}}}}
	pod := ""
	if len(state.Daemons) > 0 {
		pod = state.Daemons[0].Name
	}
	reason := cmp.Or(verdict.Advice(state.Cause, about), state.Message)
	switch {
	case state.Cause == verdict.RolloutOnDelete:
		return n.kubectl(reason, "delete", "pod", "-n", namespace, cmp.Or(pod, node.Pod))
	case state.Cause == verdict.RolloutZeroDesired:
		return n.kubectl(reason, "edit", "daemonset", "-n", namespace, name)
	case pod == "":
		return n.kubectl(reason, "describe", "daemonset", "-n", namespace, name)
	case state.Cause == verdict.ImagePull:
		return n.kubectl(reason, "describe", "pod", "-n", namespace, pod)
	}
	return n.kubectl(reason, "logs", "-n", namespace, pod, "-c", n.failing(state.Daemons), "--previous")
}

// failing is the container whose log tells why the daemon does not run.
func (n *next) failing(pods []*corev1.Pod) string {
	for _, pod := range pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if status.RestartCount > 0 && status.State.Running == nil {
				return status.Name
			}
		}
	}
	return multus.DaemonContainer(&n.d.Shared.MultusDaemonSet().Spec.Template.Spec).Name
}

// canary is what the canary in the state of the site needs.
func (n *next) canary() (v1alpha1.NextStep, bool) {
	c := speaker(n.s)
	switch n.s.State {
	case v1alpha1.StateFreshPass:
		return v1alpha1.NextStep{}, false
	case v1alpha1.StateNoCanary:
		return n.retest("there is no canary; this creates it from its manifest and judges it", c, "-f", "canary.yaml"), true
	case v1alpha1.StateFreshFail:
		// explain needs no cluster, and knows no flags of it.
		return v1alpha1.NextStep{Command: quote([]string{"kubectl", "vlan50", "explain", c.Cause}), Reason: cmp.Or(c.Advice, "mend what the message names, then run a retest")}, true
	case v1alpha1.StateUnknown:
		if c.Name != "" && c.UID == "" && len(n.s.Unreadable) > 0 && !n.rightMissing() {
			return n.vlan50("the API server could not tell what it holds; look again", "status"), true
		}
		if c.Name != "" && c.UID == "" { // not even the Pod may be read
			return n.kubectl("ask for the right to read it, or use another user", "auth", "can-i", "get", "pods", "-n", c.Namespace), true
		}
		if c.RecordedVerdict != "" && n.rightMissing() {
			return n.kubectl("ask for the rights that are missing above, or use another user; then look again",
				"auth", "can-i", "--list", "-n", n.rightsNamespace(c)), true
		}
	case v1alpha1.StateInconclusive:
		if c.Cause == string(verdict.AttemptInProgress) && c.RecordedVerdict == "" {
			return n.vlan50("an attempt is under way", "status", "--watch"), true
		}
	case v1alpha1.StateStale, v1alpha1.StateConflict:
	}
	if step, ok := n.refused(c); ok {
		return step, true
	}
	if held := n.finalizers(c); len(held) > 0 {
		return n.kubectl("its deletion waits for finalizer "+strings.Join(held, ", ")+", whose controller must let it go; then run a retest",
			"get", "pod", "-n", c.Namespace, c.Name, "-o", "yaml"), true
	}
	if c.DeletingAt != nil && c.Cause == string(verdict.TeardownBlocked) {
		return n.kubectl(cmp.Or(c.Advice, "its node cannot tear it down; a retest would wait for that in vain"), "describe", "pod", "-n", c.Namespace, c.Name), true
	}
	return n.retest(retestReason(c), c), true
}

// refused is about a Pod because of which a retest would not begin: it claims
// the address of a canary that has ended.
func (n *next) refused(c *v1alpha1.CanaryStatus) (v1alpha1.NextStep, bool) {
	pods := n.s.Addresses.Pods
	mine := slices.IndexFunc(pods, func(claim v1alpha1.AddressClaim) bool {
		return claim.Canary && claim.Mark == v1alpha1.MarkWarn && claim.Namespace == c.Namespace && claim.Name == c.Name
	})
	if mine < 0 {
		return v1alpha1.NextStep{}, false
	}
	wanted := addressesOf(pods[mine])
	for _, claim := range pods {
		if claim.Canary || claim.Phase == string(corev1.PodSucceeded) || claim.Phase == string(corev1.PodFailed) {
			continue
		}
		if slices.ContainsFunc(addressesOf(claim), func(address string) bool { return slices.Contains(wanted, address) }) {
			return n.kubectl("it claims the canary's address, so that a retest would be refused: give it another address, or delete it; then run a retest",
				"describe", "pod", "-n", claim.Namespace, claim.Name), true
		}
	}
	return v1alpha1.NextStep{}, false
}

// rightsNamespace is where a right is missing: beside the DaemonSet, or beside the
// canary.
func (n *next) rightsNamespace(c *v1alpha1.CanaryStatus) string {
	if slices.ContainsFunc(n.s.Unreadable, func(u v1alpha1.Unreadable) bool { return u.Section == v1alpha1.SectionMultus }) {
		return n.d.DaemonSet.Namespace
	}
	return c.Namespace
}

// finalizers are what holds a canary that is being deleted.
func (n *next) finalizers(c *v1alpha1.CanaryStatus) []string {
	for i := range n.d.Canaries {
		if pod := n.d.Canaries[i].Evidence.CanaryPod(); pod != nil && pod.UID == c.UID && pod.DeletionTimestamp != nil {
			return pod.Finalizers
		}
	}
	return nil
}

// rightMissing reports that something could not be read for want of a right.
func (n *next) rightMissing() bool {
	return slices.ContainsFunc(n.s.Unreadable, func(gap Gap) bool { return strings.Contains(gap.Text, "right missing: ") })
}

func retestReason(c *v1alpha1.CanaryStatus) string {
	switch {
	case c.DeletingAt != nil:
		return "the canary is being deleted; this waits until it is gone, creates it again and judges it"
	case c.State == v1alpha1.StateStale:
		return "only a new attempt tells about the present configuration"
	case c.State == v1alpha1.StateInconclusive:
		return cmp.Or(c.Advice, "only a new attempt can tell")
	}
	return "a verdict is worth something only with a record of what it was reached under; this makes one"
}

// retest names the canary where it is not the one the user's flags name.
func (n *next) retest(reason string, c *v1alpha1.CanaryStatus, words ...string) v1alpha1.NextStep {
	words = append([]string{"canary", "retest"}, words...)
	named := c.Name == "" || (c.Namespace == n.d.Subject.Namespace && c.Name == n.d.Subject.Name)
	if named {
		return n.vlan50(reason, words...)
	}
	step := *n
	flags := slices.Clone(n.settings.Flags)
	if i := slices.Index(flags, "--canary"); i >= 0 {
		flags = slices.Delete(flags, i, i+2)
	}
	step.settings.Flags = append([]string{"--canary", c.Namespace + "/" + c.Name}, flags...)
	return step.vlan50(reason, words...)
}

// quote makes words safe to paste into a shell: names come from the cluster.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:@,+", r)
}
