package evidence

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const canaryYAML = `apiVersion: v1
kind: Pod
metadata:
  namespace: downloads
  name: vlan50-canary
  uid: u1
  annotations: {k8s.v1.cni.cncf.io/networks: vlan50}
`

const daemonSetYAML = `apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kube-system, name: kube-multus-ds, labels: {app: multus}}
`

func load(t *testing.T, text string, o Options) Evidence {
	t.Helper()
	e, err := Load(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLoadForms(t *testing.T) {
	event := "apiVersion: v1\nkind: Event\nmetadata: {name: e1}\nreason: Started\n"
	asJSON := func(text string) string {
		out, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(canaryYAML), "\n", "\n  ") +
		"\n- " + strings.ReplaceAll(strings.TrimSpace(event), "\n", "\n  ") + "\n"
	for name, text := range map[string]string{
		"documents":                   canaryYAML + "---\n" + event,
		"documents with blank ones":   "---\n---\n" + canaryYAML + "---\n\n---\n# nothing\n---\n" + event + "---\n",
		"a v1 List":                   list,
		"a v1 List as JSON":           asJSON(list),
		"JSON objects one by one":     asJSON(canaryYAML) + "\n" + asJSON(event),
		"a JSON array":                "[" + asJSON(canaryYAML) + "," + asJSON(event) + "]",
		"other kinds in between":      canaryYAML + "---\nkind: Secret\napiVersion: v1\ndata: {a: Yg==}\n---\n" + event,
		"Windows line ends":           strings.ReplaceAll(canaryYAML+"---\n"+event, "\n", "\r\n"),
		"a header that names nothing": "apiVersion: vlan50.dev/v1alpha1\nkind: Evidence\n---\n" + canaryYAML + "---\n" + event,
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, text, Options{})
			if len(e.Pods) != 1 || len(e.Events) != 1 || e.Events[0].Reason != "Started" {
				t.Fatalf("%d Pods, %d events", len(e.Pods), len(e.Events))
			}
			if want := (Ref{Namespace: "downloads", Name: "vlan50-canary"}); e.Canary != want {
				t.Errorf("canary %v, want %v", e.Canary, want)
			}
			if !e.Looked(Pods) || !e.Looked(Events) || e.Looked(Nodes) {
				t.Errorf("collected %v", e.Collected)
			}
		})
	}
}

func TestLoadTypedListSaysWhatWasLookedAt(t *testing.T) {
	e := load(t, canaryYAML+"---\napiVersion: v1\nkind: EventList\nitems: []\n---\napiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: node-a}\n", Options{})
	if !e.Looked(Events) || len(e.Events) != 0 {
		t.Error("an empty EventList must count as looked at")
	}
	if len(e.Nodes) != 1 || e.Nodes[0].Name != "node-a" {
		t.Errorf("nodes %v: items of a typed list carry no kind", e.Nodes)
	}
}

func TestLoadHeaderSaysWhatWasLookedAt(t *testing.T) {
	head := "apiVersion: vlan50.dev/v1alpha1\nkind: Evidence\ncollectedAt: '2026-01-15T12:00:00Z'\ncanary: {namespace: downloads, name: other, uid: u9}\ncollected: [events]\n---\n"
	e := load(t, canaryYAML+"---\n"+head, Options{})
	if e.Looked(Pods) || !e.Looked(Events) {
		t.Errorf("collected %v, want what the header lists", e.Collected)
	}
	if e.Canary.UID != "u9" || !e.CollectedAt.Equal(time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("canary %v at %v", e.Canary, e.CollectedAt)
	}
	over := load(t, canaryYAML+"---\n"+head, Options{Canary: Ref{Name: "vlan50-canary"}, Collected: []Resource{Nodes}})
	if want := (Ref{Namespace: "downloads", Name: "vlan50-canary"}); over.Canary != want || !over.Looked(Nodes) {
		t.Errorf("canary %v, collected %v: another name must not keep the UID", over.Canary, over.Collected)
	}
}

func TestLoadDerives(t *testing.T) {
	e := load(t, canaryYAML+"status: {containerStatuses: [{name: c, state: {terminated: {exitCode: 0, finishedAt: '2026-01-15T11:00:00Z'}}}]}\n---\n"+daemonSetYAML, Options{})
	if e.DaemonSet.String() != "kube-system/kube-multus-ds" {
		t.Errorf("DaemonSet %v", e.DaemonSet)
	}
	if want := time.Date(2026, 1, 15, 11, 0, 0, 0, time.UTC); !e.CollectedAt.Equal(want) {
		t.Errorf("collected at %v, want the newest time there is, %v", e.CollectedAt, want)
	}
	two := canaryYAML + "---\n" + strings.ReplaceAll(canaryYAML, "vlan50-canary", "other")
	if _, err := Load(strings.NewReader(two), Options{}); !errors.Is(err, ErrNoCanary) || !strings.Contains(err.Error(), "downloads/other") {
		t.Errorf("two candidates gave %v", err)
	}
	owned := canaryYAML + "  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: x, controller: true}]\n"
	if _, err := Load(strings.NewReader(owned), Options{}); !errors.Is(err, ErrNoCanary) {
		t.Errorf("a Pod of a controller was taken for the canary: %v", err)
	}
}

func TestLoadErrorsNameTheDocument(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"not YAML":         {canaryYAML + "---\n\t- x: [\n", "document 2 is not YAML"},
		"not JSON":         {`{"kind": "Pod"`, "document 1 is not JSON"},
		"no kind":          {"a: b\n", "document 1 has no kind"},
		"a bare string":    {"hello\n", "document 1 is no Kubernetes object"},
		"wrong field type": {"kind: Pod\nmetadata: {name: [a]}\n", "document 1 (Pod)"},
		"two headers":      {"apiVersion: vlan50.dev/v1alpha1\nkind: Evidence\n---\napiVersion: vlan50.dev/v1alpha1\nkind: Evidence\n", "more than one"},
		"other version":    {"apiVersion: vlan50.dev/v9\nkind: Evidence\n", `"vlan50.dev/v9"`},
		"nothing at all":   {"", "no bare Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(strings.NewReader(row.text), Options{})
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, row.want)
			}
		})
	}
}

func TestLoadFS(t *testing.T) {
	folder := fstest.MapFS{
		"pods.yaml":       {Data: []byte(canaryYAML)},
		"deep/ds.yml":     {Data: []byte(daemonSetYAML)},
		"notes.txt":       {Data: []byte("not: [yaml")},
		"more/event.json": {Data: []byte(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"}}`)},
	}
	e, err := LoadFS(folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Pods) != 1 || len(e.DaemonSets) != 1 || len(e.Events) != 1 {
		t.Errorf("%d Pods, %d DaemonSets, %d events", len(e.Pods), len(e.DaemonSets), len(e.Events))
	}
	if _, err := LoadFS(fstest.MapFS{"a.txt": {}}, Options{}); err == nil {
		t.Error("a folder without evidence gave no error")
	}
	folder["bad.yaml"] = &fstest.MapFile{Data: []byte("kind: [")}
	if _, err := LoadFS(folder, Options{}); err == nil || !strings.Contains(err.Error(), "bad.yaml") {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestNewStyleEventsAreConverted(t *testing.T) {
	seen := metav1.NewMicroTime(time.Date(2026, 1, 15, 11, 57, 1, 5000, time.UTC))
	got := CoreEvent(&eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, EventTime: seen, ReportingController: "multus", Reason: "AddedInterface",
		Note: "Add net1 []", Type: "Normal", Regarding: corev1.ObjectReference{UID: "u1"},
		Series: &eventsv1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(seen.Add(time.Minute))},
	})
	if got.Message != "Add net1 []" || got.InvolvedObject.UID != "u1" || EventComponent(&got) != "multus" {
		t.Errorf("event %+v", got)
	}
	if EventCount(&got) != 4 || !EventTime(&got).Equal(seen.Add(time.Minute)) || !EventFirstTime(&got).Equal(seen.Time) {
		t.Errorf("count %d, last %v, first %v", EventCount(&got), EventTime(&got), EventFirstTime(&got))
	}
	e := load(t, canaryYAML+"---\napiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: e}\nnote: hello\nregarding: {uid: u1}\ndeprecatedCount: 3\n", Options{})
	if len(e.Events) != 1 || e.Events[0].Message != "hello" || EventCount(&e.Events[0]) != 3 {
		t.Errorf("events %+v", e.Events)
	}
}

func TestEventTimeFallbacks(t *testing.T) {
	at := func(s int) metav1.Time { return metav1.NewTime(time.Unix(int64(s), 0)) }
	micro := func(s int) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(int64(s), 0)) }
	for name, row := range map[string]struct {
		ev          corev1.Event
		last, first int64
		count       int
	}{
		"old style":               {corev1.Event{FirstTimestamp: at(1), LastTimestamp: at(5), Count: 3}, 5, 1, 3},
		"new style, once":         {corev1.Event{EventTime: micro(2)}, 2, 2, 1},
		"new style, a series":     {corev1.Event{EventTime: micro(2), Series: &corev1.EventSeries{Count: 7, LastObservedTime: micro(9)}}, 9, 2, 7},
		"only created":            {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(4)}}, 4, 4, 1},
		"only a first timestamp":  {corev1.Event{FirstTimestamp: at(3)}, 3, 3, 1},
		"series without its time": {corev1.Event{LastTimestamp: at(6), Series: &corev1.EventSeries{Count: 2}}, 6, 6, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EventTime(&row.ev).Unix(); got != row.last {
				t.Errorf("last %d, want %d", got, row.last)
			}
			if got := EventFirstTime(&row.ev).Unix(); got != row.first {
				t.Errorf("first %d, want %d", got, row.first)
			}
			if got := EventCount(&row.ev); got != row.count {
				t.Errorf("count %d, want %d", got, row.count)
			}
		})
	}
}

func TestSavedEvidenceIsReadAgain(t *testing.T) {
	e := load(t, canaryYAML+"---\n"+daemonSetYAML+`---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {namespace: kube-system, name: r1}
revision: 1
---
apiVersion: v1
kind: Event
metadata: {name: e1}
message: "two\nlines \e[31m"
eventTime: '2026-01-15T11:57:01.000005Z'
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {namespace: downloads, name: vlan50}
spec: {config: '{"type":"macvlan"}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: downloads, name: guard, resourceVersion: "7"}
data: {script: exit 0}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
status: {conditions: [{type: Terminating, status: "True"}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: multus}
status: {health: {status: Progressing}}
---
apiVersion: vlan50.dev/v1alpha1
kind: PodLog
metadata: {namespace: downloads, name: vlan50-canary, uid: u1}
container: guard
log: "a\nb\n"
---
apiVersion: vlan50.dev/v1alpha1
kind: HostFiles
node: node-a
dir: /etc/cni/net.d
files: [{name: 00-multus.conf, size: 0}]
`, Options{})
	var saved bytes.Buffer
	if err := Save(&saved, e); err != nil {
		t.Fatal(err)
	}
	again := load(t, saved.String(), Options{})
	if diff := cmp.Diff(Redact(e), again); diff != "" {
		t.Errorf("read again (-saved +read):\n%s", diff)
	}
	if strings.Contains(saved.String(), "exit 0") {
		t.Error("a ConfigMap's content was saved")
	}
	if strings.ContainsRune(saved.String(), 0x1b) {
		t.Error("an escape sequence was saved raw")
	}
}

func TestRedact(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"
	spec := corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}},
			{Name: "guard", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		},
		Containers: []corev1.Container{{
			Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x"}, {Name: "guard"}},
			Env:  []corev1.EnvVar{{Name: "DB_PASSWORD", Value: "hunter2"}, {Name: "GATEWAY", Value: "192.0.2.1"}},
			Args: []string{"--api-token=abc", "--password", "hunter3", "--gateway=192.0.2.1"},
		}},
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{\"env\":\"hunter2\"}", "k8s.v1.cni.cncf.io/networks": "vlan50"},
	}, Spec: spec}
	before := pod.DeepCopy()
	got := Redact(Evidence{Pods: []corev1.Pod{pod}, PodLogs: []PodLog{{Log: "using " + jwt + "\nAuthorization: Bearer 0123456789abcdef0123\nexit"}}})
	if diff := cmp.Diff(before, &pod); diff != "" {
		t.Errorf("the evidence given was changed:\n%s", diff)
	}
	var saved bytes.Buffer
	if err := Save(&saved, got); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "hunter3", "=abc", jwt, "0123456789abcdef0123", "kube-api-access", "managedFields", "last-applied"} {
		if strings.Contains(saved.String(), secret) {
			t.Errorf("%q was saved", secret)
		}
	}
	for _, kept := range []string{"192.0.2.1", "--gateway=192.0.2.1", "name: guard", "vlan50", "exit"} {
		if !strings.Contains(saved.String(), kept) {
			t.Errorf("%q was not kept:\n%s", kept, saved.String())
		}
	}
}

func TestRedactedTextStaysJSON(t *testing.T) {
	const conf = `{"type":"x","token":"0123456789abcdef0123","password" : "0123456789abcdef0123"}`
	if got, want := redactText(conf), `{"type":"x","token":"REDACTED","password" : "REDACTED"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCanaryPodIsOfItsUID(t *testing.T) {
	old := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "downloads", Name: "vlan50-canary", UID: "old"}}
	e := Evidence{Canary: Ref{Namespace: "downloads", Name: "vlan50-canary", UID: types.UID("new")}, Pods: []corev1.Pod{old}}
	if got := e.CanaryPod(); got != nil {
		t.Errorf("UID new gave Pod %s", got.UID)
	}
	if got := e.Namesake(); got == nil || got.UID != "old" {
		t.Errorf("namesake %v", got)
	}
}

// A guard that stands beside a token in one volume is still known, the token is not.
func TestRedactKeepsWhatStandsBesideAToken(t *testing.T) {
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	guard := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "guard"}}}
	pod := corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "own", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token, guard}}}},
	}}}
	got := redactPod(pod)
	if names := ConfigMapsOf(&got.Spec); len(names) != 1 || names[0] != "guard" {
		t.Errorf("ConfigMaps %v", names)
	}
	if sources := got.Spec.Volumes[0].Projected.Sources; len(sources) != 1 || sources[0].ServiceAccountToken != nil {
		t.Errorf("sources %+v", sources)
	}
}
