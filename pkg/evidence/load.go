package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// APIVersion and Kind of the document that heads saved evidence.
const (
	APIVersion = "vlan50.dev/v1alpha1"
	Kind       = "Evidence"
)

// Options tell what a plain dump of objects does not.
type Options struct {
	// Canary and DaemonSet replace what the evidence says or what is found in
	// it, field by field.
	Canary    Ref
	DaemonSet Ref
	// Collected adds resources that were looked at although none was found: an
	// empty `kubectl get` leaves no trace of what it asked for.
	Collected []Resource
}

// header is the first document of saved evidence.
type header struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	CollectedAt time.Time `json:"collectedAt"`
	Canary      Ref       `json:"canary"`
	DaemonSet   Ref       `json:"daemonSet"`
	// Collected is nil where the document does not say.
	Collected []Resource   `json:"collected"`
	Before    *Fingerprint `json:"before,omitempty"`
}

// Load reads evidence: the documents of Save, or any objects as kubectl prints
// them, YAML or JSON, one by one or in lists.
func Load(r io.Reader, o Options) (Evidence, error) {
	l := loader{seen: map[Resource]bool{}}
	if err := l.read(r); err != nil {
		return Evidence{}, err
	}
	return l.finish(o)
}

// LoadFS reads all .yaml, .yml and .json files of a folder and below as one
// evidence.
func LoadFS(fsys fs.FS, o Options) (Evidence, error) {
	l := loader{seen: map[Resource]bool{}}
	files := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		files++
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(l.read(f), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return Evidence{}, err
	}
	if files == 0 {
		return Evidence{}, errors.New("no .yaml, .yml or .json file in the folder")
	}
	return l.finish(o)
}

// loader gathers documents.
type loader struct {
	e      Evidence
	head   *header
	seen   map[Resource]bool
	number int
}

// read takes all documents of one stream.
func (l *loader) read(r io.Reader) error {
	br := bufio.NewReader(r)
	if isJSON(br) {
		return l.readJSON(br)
	}
	docs := utilyaml.NewYAMLReader(br)
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
		l.number++
		text, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return fmt.Errorf("document %d is not YAML: %w", l.number, err)
		}
		if err := l.add(text); err != nil {
			return err
		}
	}
}

// isJSON looks at the first letter that is not white space.
func isJSON(br *bufio.Reader) bool {
	for n := 1; n <= br.Size(); n++ {
		b, err := br.Peek(n)
		if err != nil || len(b) < n {
			return false
		}
		switch b[n-1] {
		case ' ', '\t', '\r', '\n':
		default:
			return b[n-1] == '{' || b[n-1] == '['
		}
	}
	return false
}

// readJSON takes one or more JSON documents after each other; a list of
// documents is taken for the documents themselves.
func (l *loader) readJSON(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var doc json.RawMessage
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		l.number++
		if err != nil {
			return fmt.Errorf("document %d is not JSON: %w", l.number, err)
		}
		docs := []json.RawMessage{doc}
		if bytes.HasPrefix(doc, []byte("[")) {
			if err := json.Unmarshal(doc, &docs); err != nil {
				return fmt.Errorf("document %d: %w", l.number, err)
			}
		}
		for _, d := range docs {
			if err := l.add(d); err != nil {
				return err
			}
		}
	}
}

// envelope is what every document has.
type envelope struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// add sorts one document in. Kinds that are no evidence are passed over.
func (l *loader) add(doc []byte) error {
	if text := bytes.TrimSpace(doc); len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil
	}
	var env envelope
	if err := json.Unmarshal(doc, &env); err != nil {
		return fmt.Errorf("document %d is no Kubernetes object: %w", l.number, err)
	}
	if env.Kind == "" {
		return fmt.Errorf("document %d has no kind", l.number)
	}
	if item, ok := strings.CutSuffix(env.Kind, "List"); ok {
		return l.addList(env, item)
	}
	if err := l.addObject(env.APIVersion, env.Kind, doc); err != nil {
		return fmt.Errorf("document %d (%s): %w", l.number, env.Kind, err)
	}
	return nil
}

// addList takes a v1 List or a typed list, whose items carry no kind.
func (l *loader) addList(env envelope, kind string) error {
	if res, ok := resourceOf(kind, env.APIVersion); ok {
		l.seen[res] = true
	}
	for i, item := range env.Items {
		var own envelope
		if err := json.Unmarshal(item, &own); err != nil {
			return fmt.Errorf("document %d, item %d is no Kubernetes object: %w", l.number, i, err)
		}
		if own.Kind == "" {
			own.Kind, own.APIVersion = kind, env.APIVersion
		}
		if err := l.addObject(own.APIVersion, own.Kind, item); err != nil {
			return fmt.Errorf("document %d, item %d (%s): %w", l.number, i, own.Kind, err)
		}
	}
	return nil
}

func (l *loader) addObject(apiVersion, kind string, doc []byte) error {
	if res, ok := resourceOf(kind, apiVersion); ok {
		l.seen[res] = true
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	switch kind {
	case Kind:
		return l.addHeader(apiVersion, doc)
	case "PodLog":
		return l.addPodLog(doc)
	case "HostFiles":
		return appendDecoded(&l.e.HostFiles, doc)
	case "Pod":
		return appendDecoded(&l.e.Pods, doc)
	case "Event":
		if group == eventsv1.GroupName {
			return l.addNewEvent(doc)
		}
		return appendDecoded(&l.e.Events, doc)
	case "DaemonSet":
		return appendDecoded(&l.e.DaemonSets, doc)
	case "ControllerRevision":
		return appendDecoded(&l.e.ControllerRevisions, doc)
	case "Node":
		return appendDecoded(&l.e.Nodes, doc)
	case "NetworkAttachmentDefinition":
		return appendDecoded(&l.e.Networks, doc)
	case "ConfigMap":
		return l.addConfigMap(doc)
	case "CustomResourceDefinition":
		return addUnstructured(&l.e.CRDs, doc)
	case "Application":
		if group == "argoproj.io" {
			return addUnstructured(&l.e.Applications, doc)
		}
	}
	return nil
}

// resourceOf gives the resource of a kind that can be evidence.
func resourceOf(kind, apiVersion string) (Resource, bool) {
	switch kind {
	case "Pod":
		return Pods, true
	case "Event":
		return Events, true
	case "DaemonSet":
		return DaemonSets, true
	case "ControllerRevision":
		return ControllerRevisions, true
	case "Node":
		return Nodes, true
	case "NetworkAttachmentDefinition":
		return Networks, true
	case "ConfigMap":
		return ConfigMaps, true
	case "CustomResourceDefinition":
		return CRDs, true
	case "Application":
		return Applications, strings.HasPrefix(apiVersion, "argoproj.io/")
	}
	return "", false
}

func (l *loader) addHeader(apiVersion string, doc []byte) error {
	if apiVersion != APIVersion {
		return fmt.Errorf("apiVersion %q is not %s", apiVersion, APIVersion)
	}
	if l.head != nil {
		return errors.New("there is more than one Evidence document")
	}
	l.head = &header{}
	return json.Unmarshal(doc, l.head)
}

// appendDecoded decodes a document and adds it to a slice.
func appendDecoded[T corev1.Pod | corev1.Event | corev1.Node | appsv1.DaemonSet | appsv1.ControllerRevision | network | HostFiles](list *[]T, doc []byte) error {
	var obj T
	if err := json.Unmarshal(doc, &obj); err != nil {
		return err
	}
	*list = append(*list, obj)
	return nil
}
