package canary

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namesake refuses to go on beside a Pod that somebody else has created.
func (r *Retest) namesake(pod *corev1.Pod) error {
	return refusef("another Pod %s (UID %s) was created by %s at %s while this run recreated the canary: it is left alone and not judged; find out who creates it, then run this again (%s)",
		r.Canary, pod.UID, manager(pod), pod.CreationTimestamp.UTC().Format(time.RFC3339), r.state)
}

// manager names the client that created a Pod: the field manager that wrote its
// spec first.
func manager(pod *corev1.Pod) string {
	var oldest *metav1.ManagedFieldsEntry
	for i := range pod.ManagedFields {
		entry := &pod.ManagedFields[i]
		if entry.Subresource == "" && (oldest == nil || entry.Time.Before(oldest.Time)) {
			oldest = entry
		}
	}
	if oldest == nil || oldest.Manager == "" {
		return "an unknown client"
	}
	return "field manager " + oldest.Manager
}
