package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Save writes evidence as readable YAML, one document an object, redacted: what
// it writes can be attached to a bug report and read again by Load.
func Save(w io.Writer, e Evidence) error {
	e = Redact(e)
	for i, doc := range e.documents() {
		text, err := YAML(doc)
		if err != nil {
			return fmt.Errorf("evidence document %d: %w", i+1, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// YAML is a document as text, whatever its strings hold: the YAML reader behind
// sigs.k8s.io/yaml refuses some characters that JSON leaves as they are, which
// any container can print.
func YAML(doc any) ([]byte, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, r := range string(data) { // outside of strings JSON is plain ASCII
		if refusedByYAML(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return yaml.JSONToYAML(b.Bytes())
}

// refusedByYAML: what is outside of YAML 1.1's printable set, and NEL, which
// would be read as a line break. JSON has escaped what is below the space.
func refusedByYAML(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// documents gives the documents in the order in which they are saved.
func (e *Evidence) documents() []any {
	docs := []any{header{
		APIVersion: APIVersion, Kind: Kind, CollectedAt: e.CollectedAt,
		Canary: e.Canary, DaemonSet: e.DaemonSet, Collected: e.collectedList(), Before: e.Before,
	}}
	docs = appendTyped(docs, e.DaemonSets, func(o *appsv1.DaemonSet) { o.TypeMeta = typeMeta("apps/v1", "DaemonSet") })
	docs = appendTyped(docs, e.ControllerRevisions, func(o *appsv1.ControllerRevision) { o.TypeMeta = typeMeta("apps/v1", "ControllerRevision") })
	docs = appendTyped(docs, e.Nodes, func(o *corev1.Node) { o.TypeMeta = typeMeta("v1", "Node") })
	docs = appendTyped(docs, e.Networks, func(o *nadv1.NetworkAttachmentDefinition) {
		o.TypeMeta = typeMeta("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
	})
	docs = appendTyped(docs, e.ConfigMaps, func(o *metav1.PartialObjectMetadata) { o.TypeMeta = typeMeta("v1", "ConfigMap") })
	for _, list := range [][]map[string]any{contents(e.CRDs), contents(e.Applications)} {
		for _, obj := range list {
			docs = append(docs, obj)
		}
	}
	docs = appendTyped(docs, e.Pods, func(o *corev1.Pod) { o.TypeMeta = typeMeta("v1", "Pod") })
	docs = appendTyped(docs, e.Events, func(o *corev1.Event) { o.TypeMeta = typeMeta("v1", "Event") })
	for _, l := range e.PodLogs {
		docs = append(docs, podLogDoc{APIVersion: APIVersion, Kind: "PodLog", Metadata: l.Pod, Container: l.Container, Previous: l.Previous, Log: l.Log})
	}
	for _, hf := range e.HostFiles {
		docs = append(docs, hostFilesDoc{APIVersion: APIVersion, Kind: "HostFiles", HostFiles: hf})
	}
	return docs
}

// hostFilesDoc is the form of a HostFiles document.
type hostFilesDoc struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	HostFiles  `json:",inline"`
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// appendTyped adds objects with the type that typed clients leave out.
func appendTyped[T any](docs []any, objs []T, setType func(*T)) []any {
	for _, o := range objs {
		setType(&o)
		docs = append(docs, o)
	}
	return docs
}

func (e *Evidence) collectedList() []Resource {
	list := []Resource{} // present and empty: nothing was looked at
	for _, r := range slices.Sorted(maps.Keys(e.Collected)) {
		if e.Collected[r] {
			list = append(list, r)
		}
	}
	return list
}
