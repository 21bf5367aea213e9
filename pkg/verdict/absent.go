package verdict

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// absent is rule 1.
func absent(s *scene) *finding {
	if s.pod != nil {
		return nil
	}
	if !s.e.Looked(evidence.Pods) {
		return &finding{cause: EvidenceIncomplete, message: s.who() + " was not looked for"}
	}
	for _, why := range []func(*scene) *finding{crdTerminating, namesake, (*scene).rolloutFault, deletedWhileAdding} {
		if f := why(s); f != nil {
			return f
		}
	}
	return &finding{cause: NoAttempt, message: s.who() + " is not there"}
}

// crdTerminating: without its CRD no NetworkAttachmentDefinition can be had.
func crdTerminating(s *scene) *finding {
	for i := range s.e.CRDs {
		crd := &s.e.CRDs[i]
		if !strings.HasSuffix(crd.GetName(), ".k8s.cni.cncf.io") || crd.GetDeletionTimestamp() == nil && !hasCondition(crd, "Terminating") {
			continue
		}
		text := "CustomResourceDefinition " + crd.GetName() + " is being deleted"
		if f := crd.GetFinalizers(); len(f) > 0 {
			text += "; held by finalizers " + strings.Join(f, ", ")
		}
		line := Line{Source: "crd", Text: text}
		if at := crd.GetDeletionTimestamp(); at != nil {
			line.Time = at.Time
		}
		return &finding{cause: CRDTerminating, lines: []Line{line}, message: text}
	}
	return nil
}

func hasCondition(obj *unstructured.Unstructured, typ string) bool {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return false // a status of another form tells nothing
	}
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == typ && m["status"] == "True"
	})
}

// namesake: a Pod of the canary's name and another UID.
func namesake(s *scene) *finding {
	other := s.e.Namesake()
	if other == nil {
		return nil
	}
	if other.DeletionTimestamp != nil {
		if f := s.namesakeBlocked(other); f != nil {
			return f
		}
		return &finding{
			cause:   OldPodTerminating,
			lines:   []Line{{Time: other.DeletionTimestamp.Time, Source: sourcePod, Text: "Pod of UID " + string(other.UID) + ": deletionTimestamp is set" + finalizersText(other)}},
			message: fmt.Sprintf("%s: another Pod of this name (UID %s) is being deleted and still there", s.who(), other.UID),
		}
	}
	return &finding{
		cause:   StaleAttempt,
		lines:   []Line{{Time: other.CreationTimestamp.Time, Source: sourcePod, Text: "the Pod of this name has UID " + string(other.UID)}},
		message: fmt.Sprintf("the attempt of UID %s is gone; the Pod of this name has UID %s", s.e.Canary.UID, other.UID),
	}
}

// namesakeBlocked reads why the other Pod cannot be torn down: its events are
// not judged, they say what is waited for.
func (s *scene) namesakeBlocked(other *corev1.Pod) *finding {
	var newest *corev1.Event
	f := &finding{cause: TeardownBlocked}
	for i := range s.e.Events {
		ev := &s.e.Events[i]
		if ev.Reason != "FailedKillPod" || ev.InvolvedObject.UID != other.UID {
			continue
		}
		f.since(ev)
		if newest == nil || compareEvents(newest, ev) < 0 {
			newest = ev
		}
	}
	if newest == nil {
		return nil
	}
	f.lines = []Line{eventLine(newest)}
	f.message = fmt.Sprintf("%s: the previous Pod of this name (UID %s) cannot be torn down: %s", s.who(), other.UID, killText(newest.Message))
	return f
}

// deletedWhileAdding: events of a Pod of this name that is gone. They are read
// to be recognised, never to be judged.
func deletedWhileAdding(s *scene) *finding {
	var newest *corev1.Event
	for i := range s.e.Events {
		ev := &s.e.Events[i]
		if ev.InvolvedObject.Kind != "Pod" || ev.InvolvedObject.Name != s.e.Canary.Name || ev.InvolvedObject.Namespace != s.e.Canary.Namespace {
			continue
		}
		if s.uid != "" && ev.InvolvedObject.UID != s.uid || !isAttaching(ev) {
			continue
		}
		if newest == nil || compareEvents(newest, ev) < 0 {
			newest = ev
		}
	}
	if newest == nil {
		return nil
	}
	return &finding{
		cause: PodDeletedDuringAdd, lines: []Line{eventLine(newest)},
		message: fmt.Sprintf("%s is not there; the events are of UID %s, which was deleted while it was being attached", s.who(), newest.InvolvedObject.UID),
	}
}

func isAttaching(ev *corev1.Event) bool {
	switch ev.Reason {
	case multus.ReasonAddedInterface, multus.ReasonNoNetworkFound, "FailedCreatePodSandBox", "FailedKillPod":
		return true
	}
	return false
}
