package multus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadutils "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation keys that the client library does not name.
const (
	// LegacyStatusAnnot is the plural key that Multus v3 wrote besides
	// nadv1.NetworkStatusAnnot; v4 does not.
	LegacyStatusAnnot = "k8s.v1.cni.cncf.io/networks-status"
	// DefaultNetworkAnnot replaces the primary network of a Pod.
	DefaultNetworkAnnot = "v1.multus-cni.io/default-network"
	// ResourceNameAnnot on a NetworkAttachmentDefinition makes Multus ask for a
	// device.
	ResourceNameAnnot = "k8s.v1.cni.cncf.io/resourceName"
)

// maxIfName is IFNAMSIZ-1, the longest interface name Linux takes.
const maxIfName = 15

// Selection is one network a Pod asks for, with the interface it will get.
type Selection struct {
	nadv1.NetworkSelectionElement
	// Interface is the name asked for, or the netN that Multus gives by position.
	Interface string
}

// Network is the NetworkAttachmentDefinition's namespace/name.
func (s Selection) Network() string { return s.Namespace + "/" + s.Name }

// ErrNoNetworks says that a Pod asks for no secondary network at all.
var ErrNoNetworks = errors.New("the pod has no " + nadv1.NetworkAttachmentAnnot + " annotation")

// RequestedNetworks reads a Pod's networks annotation in all its forms: a comma
// list of [namespace/]name[@interface], or JSON. A missing namespace is the
// Pod's own. ErrNoNetworks is returned where there is no annotation.
func RequestedNetworks(pod *corev1.Pod) ([]Selection, error) {
	text := strings.TrimSpace(pod.Annotations[nadv1.NetworkAttachmentAnnot])
	if text == "" {
		return nil, ErrNoNetworks
	}
	elements, err := parseSelections(text, pod.Namespace)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", nadv1.NetworkAttachmentAnnot, err)
	}
	selections := make([]Selection, 0, len(elements))
	for i, el := range elements {
		if el.Name == "" {
			return nil, fmt.Errorf("annotation %s: entry %d names no network", nadv1.NetworkAttachmentAnnot, i+1)
		}
		name := el.InterfaceRequest
		if name == "" {
			// Multus counts delegates, the primary network being number 0.
			name = fmt.Sprintf("net%d", i+1)
		}
		selections = append(selections, Selection{NetworkSelectionElement: *el, Interface: name})
	}
	return selections, nil
}

// ownNamespace is Multus' own unless its configuration names another: that of a
// default network that names none.
const ownNamespace = "kube-system"

// AllNetworks are the requested networks and, before them, the one that a Pod
// asks for in the place of its primary network, if any (Multus
// pkg/k8sclient.tryLoadK8sPodDefaultNetwork: the first of that annotation, in
// Multus' own namespace where it names none).
func AllNetworks(pod *corev1.Pod) ([]Selection, error) {
	selections, err := RequestedNetworks(pod)
	text := DefaultNetwork(pod)
	if text == "" || err != nil && !errors.Is(err, ErrNoNetworks) {
		return selections, err
	}
	elements, err := parseSelections(text, ownNamespace)
	if err != nil || len(elements) == 0 {
		return nil, fmt.Errorf("annotation %s: %w", DefaultNetworkAnnot, cmp.Or(err, errors.New("it names no network")))
	}
	return slices.Insert(selections, 0, Selection{NetworkSelectionElement: *elements[0], Interface: primaryInterface}), nil
}

// primaryInterface is what the kubelet's runtimes call a Pod's first interface.
const primaryInterface = "eth0"

// AsksForNetworks reports whether annotations ask Multus for anything at all.
func AsksForNetworks(annotations map[string]string) bool {
	return strings.TrimSpace(annotations[nadv1.NetworkAttachmentAnnot]) != "" || strings.TrimSpace(annotations[DefaultNetworkAnnot]) != ""
}

func parseSelections(text, namespace string) ([]*nadv1.NetworkSelectionElement, error) {
	if strings.ContainsAny(text, "[{\"") {
		if err := refuseNullEntries(text); err != nil {
			return nil, err
		}
		elements, err := nadutils.ParseNetworkAnnotation(text, namespace)
		if err != nil {
			return nil, fmt.Errorf("%s", oneLine(err.Error()))
		}
		return elements, nil
	}
	var elements []*nadv1.NetworkSelectionElement
	for item := range strings.SplitSeq(text, ",") {
		el, err := parseShortForm(strings.TrimSpace(item), namespace)
		if err != nil {
			return nil, err
		}
		elements = append(elements, el)
	}
	return elements, nil
}

// refuseNullEntries guards the client library, which dereferences each entry
// and so panics on [null].
func refuseNullEntries(text string) error {
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return fmt.Errorf("not a JSON list of networks: %w", err)
	}
	for i, e := range entries {
		if bytes.Equal(bytes.TrimSpace(e), []byte("null")) {
			return fmt.Errorf("entry %d is null", i+1)
		}
	}
	return nil
}

// parseShortForm reads [namespace/]name[@interface]. The interface is taken off
// first: the client library holds it to the rules of a DNS label, Multus itself
// only to those of Linux.
func parseShortForm(item, namespace string) (*nadv1.NetworkSelectionElement, error) {
	network, ifname, hasIf := strings.Cut(item, "@")
	ifname = strings.TrimSpace(ifname)
	if hasIf && !validIfName(ifname) {
		return nil, fmt.Errorf("%q is no interface name", ifname)
	}
	if strings.TrimSpace(network) == "" {
		return nil, errors.New("an entry names no network")
	}
	elements, err := nadutils.ParseNetworkAnnotation(network, namespace)
	if err != nil {
		return nil, fmt.Errorf("%s", oneLine(err.Error()))
	}
	if len(elements) != 1 {
		return nil, fmt.Errorf("%q is not one network", network)
	}
	elements[0].InterfaceRequest = ifname
	return elements[0], nil
}

func validIfName(name string) bool {
	return name != "" && len(name) <= maxIfName && !strings.ContainsAny(name, " \t\n\v\f\r/@")
}

// DefaultNetwork gives the NetworkAttachmentDefinition that replaces the Pod's
// primary network, as namespace/name; empty where there is none. A missing
// namespace is Multus' own, which the annotation does not tell.
func DefaultNetwork(pod *corev1.Pod) string {
	return strings.TrimSpace(pod.Annotations[DefaultNetworkAnnot])
}

// Status is one entry of a Pod's network-status.
type Status = nadv1.NetworkStatus

// Statuses is what a Pod's network-status annotation says.
type Statuses struct {
	Entries []Status
	// Present: one of the two keys is set.
	Present bool
	// Legacy: only the old plural key is set.
	Legacy bool
}

// NetworkStatus reads the result annotation, the old plural key where the
// present one is missing. Broken JSON is an error with Present set.
func NetworkStatus(pod *corev1.Pod) (Statuses, error) {
	probe := &corev1.Pod{}
	var st Statuses
	if text, ok := pod.Annotations[nadv1.NetworkStatusAnnot]; ok {
		st.Present = true
		probe.ObjectMeta = statusMeta(text)
	} else if text, ok := pod.Annotations[LegacyStatusAnnot]; ok {
		st.Present, st.Legacy = true, true
		probe.ObjectMeta = statusMeta(text)
	} else {
		return st, nil
	}
	entries, err := nadutils.GetNetworkStatus(probe)
	if err != nil {
		return st, fmt.Errorf("annotation %s: %w", nadv1.NetworkStatusAnnot, err)
	}
	st.Entries = entries
	return st, nil
}

func statusMeta(text string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: map[string]string{nadv1.NetworkStatusAnnot: text}}
}

// oneLine keeps an error to one line, as errors here are printed.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
