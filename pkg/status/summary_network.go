package status

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// networkStatus judges the NetworkAttachmentDefinitions in question.
func networkStatus(d *Data) v1alpha1.NetworkStatus {
	var status v1alpha1.NetworkStatus
	for i := range d.Networks {
		definition, lines := definitionStatus(d, &d.Networks[i])
		status.Definitions = append(status.Definitions, definition)
		status.Lines = append(status.Lines, lines...)
	}
	if len(d.Networks) == 0 && !d.CRD.Absent {
		status.Lines = append(status.Lines, line(v1alpha1.MarkNone, "network", "no NetworkAttachmentDefinition is asked for by a canary or found in namespace %s", d.Subject.Namespace))
	}
	healthy, crd := crdHealth(d.CRD)
	if crd.Text != "" {
		status.CRDHealthy = &healthy
		status.Lines = append(status.Lines, crd)
	}
	return status
}

func definitionStatus(d *Data, n *NetworkRead) (v1alpha1.NetworkDefinition, []v1alpha1.StatusLine) {
	definition := v1alpha1.NetworkDefinition{Namespace: n.Namespace, Name: n.Name}
	name := n.Namespace + "/" + n.Name
	if n.Definition == nil {
		if !n.Absent {
			return definition, nil // the gap says why
		}
		definition.Found = new(false)
		return definition, []v1alpha1.StatusLine{line(v1alpha1.MarkBad, "network", "there is no NetworkAttachmentDefinition %s, which the canary asks for", name)}
	}
	definition.Found = new(true)
	definition.UID, definition.Generation = n.Definition.UID, n.Definition.Generation
	conf, err := multus.ParseNetConf(n.Definition.Spec.Config)
	if errors.Is(err, multus.ErrNoConfig) {
		definition.Lacks = []string{err.Error()}
		return definition, []v1alpha1.StatusLine{line(v1alpha1.MarkWarn, "network", "%s: %s: Multus takes a file of that name from the node, which cannot be seen from here", name, err)}
	}
	if err != nil {
		definition.Lacks = []string{err.Error()}
		return definition, []v1alpha1.StatusLine{line(v1alpha1.MarkBad, "network", "%s cannot be used: %s", name, err)}
	}
	definition.CNIVersion, definition.Type, definition.Master = conf.CNIVersion, conf.Type, conf.Master
	definition.Mode, definition.IPAM = conf.Mode, conf.IPAM.Type
	lines := []v1alpha1.StatusLine{line(v1alpha1.MarkOK, "network", "%s: %s", name, confText(conf))}
	for _, lack := range lacks(d, n, conf) {
		definition.Lacks = append(definition.Lacks, lack.Text)
		lines = append(lines, lack)
	}
	return definition, lines
}

// confText tells a configuration in one line.
func confText(conf multus.NetConf) string {
	text := conf.Type
	if conf.Master != "" {
		text += " on " + conf.Master
	}
	if conf.Mode != "" {
		text += ", mode " + conf.Mode
	}
	if conf.IPAM.Type != "" {
		text += ", IPAM " + conf.IPAM.Type
	}
	return text
}

// lacks names what a configuration should have and has not.
func lacks(d *Data, n *NetworkRead, conf multus.NetConf) []v1alpha1.StatusLine {
	var lines []v1alpha1.StatusLine
	lack := func(mark v1alpha1.Mark, format string, args ...any) {
		lines = append(lines, line(mark, "config", format, args...))
	}
	there, asked, errs := asks(d, n)
	if conf.CNIVersion == "" {
		lack(v1alpha1.MarkWarn, "it has no cniVersion: plugins take it for the oldest")
	}
	if (conf.Type == "macvlan" || conf.Type == "ipvlan") && conf.Master == "" {
		lack(v1alpha1.MarkWarn, "it has no master: %s takes the interface of the default route", conf.Type)
	}
	switch {
	case conf.IPAM.Type == "" && asked:
		lack(v1alpha1.MarkBad, "it has no IPAM: the address that the canary asks for is not set")
	case conf.IPAM.Type == "":
		lack(v1alpha1.MarkWarn, "it has no IPAM: Pods get an interface without an address")
	case conf.IPAM.Type == "static" && !asked && len(conf.IPAM.Addresses) == 0 && there && errs == nil:
		lack(v1alpha1.MarkBad, "its IPAM is static without addresses, and the canary asks for none")
	case conf.IPAM.Type == "static" && asked && !conf.Capabilities["ips"]:
		lack(v1alpha1.MarkWarn, "it has no capability ips: the address asked for reaches the static IPAM by CNI_ARGS alone")
	}
	for _, address := range conf.IPAM.Addresses {
		if _, err := netip.ParsePrefix(address.Address); err != nil && conf.IPAM.Type == "static" {
			lack(v1alpha1.MarkBad, "its static address %q is not in CIDR notation", address.Address)
		}
	}
	if errs != nil {
		lack(v1alpha1.MarkBad, "the address that the canary asks for is not valid: %s", errs)
	}
	return lines
}

// asks reports whether there is a canary on the network, whether it asks for an
// address, and what is wrong with what it asks for.
func asks(d *Data, n *NetworkRead) (there, asked bool, err error) {
	var errs []error
	for i := range d.Canaries {
		pod := d.Canaries[i].Evidence.CanaryPod()
		if pod == nil {
			continue
		}
		selections, err := multus.RequestedNetworks(pod)
		if err != nil {
			continue // the judge says so
		}
		for _, s := range selections {
			if s.Namespace != n.Namespace || s.Name != n.Name {
				continue
			}
			there = true
			asked = asked || len(multus.RequestedAddresses(s, multus.NetConf{})) > 0
			errs = append(errs, multus.AddressErrors(s)...)
		}
	}
	return there, asked, join(errs)
}

// join puts errors into one line.
func join(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// crdHealth judges the definition of the kind itself. The text is empty where
// nothing is known.
func crdHealth(crd CRDRead) (bool, v1alpha1.StatusLine) {
	switch {
	case crd.Absent:
		return false, line(v1alpha1.MarkBad, "CRD", "%s is not installed: no Pod can be given a secondary network", crdName)
	case crd.Object == nil:
		return false, v1alpha1.StatusLine{}
	case crd.Object.GetDeletionTimestamp() != nil:
		return false, line(v1alpha1.MarkBad, "CRD", "%s is being deleted, and every NetworkAttachmentDefinition with it", crdName)
	}
	for _, condition := range []string{"NamesAccepted", "Established"} {
		if ok, why := conditionTrue(crd.Object, condition); !ok {
			return false, line(v1alpha1.MarkBad, "CRD", "%s is not healthy: %s is not True%s", crdName, condition, why)
		}
	}
	return true, line(v1alpha1.MarkOK, "CRD", "%s is established", crdName)
}

func conditionTrue(object *unstructured.Unstructured, kind string) (ok bool, why string) {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return false, ": its status cannot be read"
	}
	for _, c := range conditions {
		condition, isMap := c.(map[string]any)
		if isMap && condition["type"] == kind {
			if condition["status"] == "True" {
				return true, ""
			}
			return false, fmt.Sprintf(" (%v)", condition["message"])
		}
	}
	return false, ""
}
