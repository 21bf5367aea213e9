package evidence

import (
	"encoding/json"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type network = nadv1.NetworkAttachmentDefinition

// podLogDoc is the form of a PodLog document.
type podLogDoc struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   Ref    `json:"metadata"`
	Container  string `json:"container"`
	Previous   bool   `json:"previous,omitempty"`
	Log        string `json:"log"`
}

func (l *loader) addPodLog(doc []byte) error {
	var d podLogDoc
	if err := json.Unmarshal(doc, &d); err != nil {
		return err
	}
	l.e.PodLogs = append(l.e.PodLogs, PodLog{
		Pod: d.Metadata, Container: d.Container, Previous: d.Previous, Log: d.Log,
	})
	return nil
}

func (l *loader) addNewEvent(doc []byte) error {
	var ev eventsv1.Event
	if err := json.Unmarshal(doc, &ev); err != nil {
		return err
	}
	l.e.Events = append(l.e.Events, CoreEvent(&ev))
	return nil
}

// CoreEvent turns an events.k8s.io/v1 event into the core/v1 form; the two are
// one object in two API groups (k8s.io/kubernetes/pkg/apis/events/v1/conversion.go).
func CoreEvent(ev *eventsv1.Event) corev1.Event {
	out := corev1.Event{
		ObjectMeta:          ev.ObjectMeta,
		InvolvedObject:      ev.Regarding,
		Related:             ev.Related,
		Reason:              ev.Reason,
		Message:             ev.Note,
		Type:                ev.Type,
		Action:              ev.Action,
		Source:              ev.DeprecatedSource,
		FirstTimestamp:      ev.DeprecatedFirstTimestamp,
		LastTimestamp:       ev.DeprecatedLastTimestamp,
		Count:               ev.DeprecatedCount,
		EventTime:           ev.EventTime,
		ReportingController: ev.ReportingController,
		ReportingInstance:   ev.ReportingInstance,
	}
	if ev.Series != nil {
		out.Series = &corev1.EventSeries{Count: ev.Series.Count, LastObservedTime: ev.Series.LastObservedTime}
	}
	return out
}

// addConfigMap keeps the metadata alone: contents are never evidence.
func (l *loader) addConfigMap(doc []byte) error {
	var cm metav1.PartialObjectMetadata
	if err := json.Unmarshal(doc, &cm); err != nil {
		return err
	}
	l.e.ConfigMaps = append(l.e.ConfigMaps, cm)
	return nil
}

func addUnstructured(list *[]unstructured.Unstructured, doc []byte) error {
	var obj unstructured.Unstructured
	if err := obj.UnmarshalJSON(doc); err != nil {
		return err
	}
	*list = append(*list, obj)
	return nil
}
