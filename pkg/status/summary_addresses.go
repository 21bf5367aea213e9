package status

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/address"
	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// claimant is one Pod on one network, with all that it asks for or holds there.
type claimant struct {
	row      v1alpha1.AddressClaim
	claims   []address.Claim
	held     []address.Claim
	finished bool
}

// name is how messages call it.
func (c *claimant) name() string {
	if c.row.Canary {
		return "canary " + c.row.Namespace + "/" + c.row.Name
	}
	return "Pod " + c.row.Namespace + "/" + c.row.Name
}

// addressesStatus lists who asks for which address and who holds it.
func addressesStatus(d *Data) v1alpha1.AddressesStatus {
	status := v1alpha1.AddressesStatus{Namespace: d.Search.Namespace, Searched: d.Search.Pods}
	claimants := claimantsOf(d)
	judgeClaims(claimants)
	conflicts := 0
	for _, c := range claimants {
		if c.row.Mark == v1alpha1.MarkBad {
			conflicts++
		}
		status.Pods = append(status.Pods, c.row)
	}
	slices.SortStableFunc(status.Pods, func(a, b v1alpha1.AddressClaim) int {
		return cmp.Or(-compareBool(a.Canary, b.Canary), -compareBool(a.Mark == v1alpha1.MarkBad, b.Mark == v1alpha1.MarkBad))
	})
	status.Lines = append(status.Lines, searchLine(d, len(claimants), conflicts))
	return status
}

func searchLine(d *Data, found, conflicts int) v1alpha1.StatusLine {
	where := "all namespaces"
	mark := v1alpha1.MarkOK
	switch {
	case d.Search.Failed:
		return line(v1alpha1.MarkUnknown, "search", "who asks for which address is not known")
	case d.Search.Namespace != "":
		where, mark = "namespace "+d.Search.Namespace+" alone", v1alpha1.MarkUnknown
	}
	sure := "no address is claimed twice"
	if wiresUnknown(d) {
		sure, mark = "as far as the networks can be read, no address is claimed twice", v1alpha1.MarkUnknown
	}
	text := fmt.Sprintf("%d of %d Pods in %s are on this network", found, d.Search.Pods, where)
	switch {
	case conflicts > 0:
		return line(v1alpha1.MarkBad, "search", "%s; %d of them claim an address that another one claims", text, conflicts)
	case found == 0:
		return line(cmpMark(mark), "search", "%s", text)
	}
	return line(mark, "search", "%s; %s", text, sure)
}

// wiresUnknown reports that a network could not be read, so that a Pod on the
// same wire may not have been recognised.
func wiresUnknown(d *Data) bool {
	return d.Search.Blind || slices.ContainsFunc(d.Networks, func(n NetworkRead) bool { return n.Definition == nil && !n.Absent })
}

// cmpMark: nobody there is neither good nor bad, unless it is not known.
func cmpMark(mark v1alpha1.Mark) v1alpha1.Mark {
	if mark == v1alpha1.MarkOK {
		return v1alpha1.MarkNone
	}
	return mark
}

// claimantsOf are the Pods on the wires of the networks in question.
func claimantsOf(d *Data) []*claimant {
	wires := map[string]bool{}
	confs := map[types.NamespacedName]multus.NetConf{}
	for _, n := range d.Networks {
		conf := multus.NetConf{}
		if n.Definition != nil {
			conf, _ = multus.ParseNetConf(n.Definition.Spec.Config)
		}
		confs[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] = conf
		selection := multus.Selection{NetworkSelectionElement: nadv1.NetworkSelectionElement{Namespace: n.Namespace, Name: n.Name}}
		wires[address.Segment(selection, conf)] = true
	}
	maps.Copy(confs, d.OtherNetworks)
	canaries := map[types.NamespacedName]bool{}
	for _, c := range d.Canaries {
		canaries[types.NamespacedName{Namespace: c.Evidence.Canary.Namespace, Name: c.Evidence.Canary.Name}] = true
	}
	var all []*claimant
	for i := range d.Pods {
		pod := &d.Pods[i]
		selections, err := multus.AllNetworks(pod)
		if err != nil {
			continue
		}
		for _, s := range selections {
			conf := confs[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]
			if segment := address.Segment(s, conf); wires[segment] {
				c := claimantOf(pod, s, conf, segment)
				c.row.Canary = canaries[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
				all = append(all, c)
			}
		}
	}
	return all
}

func claimantOf(pod *corev1.Pod, s multus.Selection, conf multus.NetConf, segment string) *claimant {
	c := &claimant{finished: address.Finished(pod), row: v1alpha1.AddressClaim{
		Mark: v1alpha1.MarkNone, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase), Network: s.Network(), Interface: s.Interface,
	}}
	if pod.DeletionTimestamp != nil {
		c.row.Phase = "Terminating"
	}
	for _, a := range multus.RequestedAddresses(s, conf) {
		c.row.Asked = append(c.row.Asked, a.String())
		c.claims = append(c.claims, address.Claim{Address: a, Segment: segment})
	}
	if c.finished {
		return c
	}
	for _, a := range address.Held(pod, s) {
		claim := address.Claim{Address: a, Segment: segment}
		c.row.Held = append(c.row.Held, a.String())
		c.held = append(c.held, claim)
		if !slices.Contains(c.claims, claim) {
			c.claims = append(c.claims, claim)
		}
	}
	return c
}

// judgeClaims marks each claimant. A finished Pod holds nothing; that another
// one claims its address forbids a retest, and is no conflict.
func judgeClaims(all []*claimant) {
	byClaim := map[address.Claim][]*claimant{}
	for _, c := range all {
		for _, claim := range c.claims {
			byClaim[claim] = append(byClaim[claim], c)
		}
	}
	for _, c := range all {
		c.judge(byClaim)
	}
}

func (c *claimant) judge(byClaim map[address.Claim][]*claimant) {
	for _, claim := range c.claims {
		for _, other := range byClaim[claim] {
			if other == c || other.finished {
				continue
			}
			if c.finished && c.row.Canary {
				c.set(v1alpha1.MarkWarn, fmt.Sprintf("%s asks for %s as well: a retest would be refused", other.name(), claim.Address))
			}
			if c.finished {
				continue
			}
			c.set(v1alpha1.MarkBad, conflictText(claim, c, other))
		}
	}
	if c.row.Mark == v1alpha1.MarkNone && len(c.held) > 0 {
		c.row.Mark = v1alpha1.MarkOK
	}
	if c.row.Mark != v1alpha1.MarkNone || c.finished {
		return
	}
	if len(c.claims) > 0 {
		c.set(v1alpha1.MarkUnknown, "asks for an address, and holds none that Multus tells of")
	}
}

func conflictText(claim address.Claim, c, other *claimant) string {
	if slices.Contains(c.held, claim) && slices.Contains(other.held, claim) {
		return fmt.Sprintf("CONFLICT: %s holds %s as well", other.name(), claim.Address)
	}
	if slices.Contains(other.held, claim) {
		return fmt.Sprintf("OVERLAP: %s holds %s already", other.name(), claim.Address)
	}
	return fmt.Sprintf("OVERLAP: %s asks for %s as well", other.name(), claim.Address)
}

// set keeps the worst mark and every reason of it.
func (c *claimant) set(mark v1alpha1.Mark, reason string) {
	if c.row.Mark == mark {
		if !strings.Contains(c.row.Reason, reason) {
			c.row.Reason += "; " + reason
		}
		return
	}
	if c.row.Mark == v1alpha1.MarkBad {
		return
	}
	c.row.Mark, c.row.Reason = mark, reason
}

func joinAddresses(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, " ")
}
