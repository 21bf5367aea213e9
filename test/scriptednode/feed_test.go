package scriptednode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// After a lost connection the reflector only knows what is there now: a UID
// that is missing from it is gone, though its name may be there again.
func TestFeedKnowsObjectsByUID(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "canary", UID: uid}}
	}
	var told []string
	feed := newFeed(
		func(pod *corev1.Pod) { told = append(told, "seen "+string(pod.UID)) },
		func(pod *corev1.Pod) { told = append(told, "gone "+string(pod.UID)) })
	for _, err := range []error{
		feed.Replace([]any{pod("a")}, "1"),
		feed.Update(pod("a")),
		feed.Replace([]any{pod("b")}, "9"),
		feed.Delete(pod("b")),
		feed.Add(pod("c")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"seen a", "seen a", "gone a", "seen b", "gone b", "seen c"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	select {
	case <-feed.synced:
	default:
		t.Error("not synced after the first list")
	}
	if feed.Add(&corev1.Node{}) == nil || feed.Delete(&corev1.Node{}) == nil {
		t.Error("took an object of another kind")
	}
}
