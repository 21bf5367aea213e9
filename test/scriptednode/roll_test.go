package scriptednode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type podOption func(*corev1.Pod)

func rollPod(name, hash string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: hash}}}
	setCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}, noon)
	for _, option := range options {
		option(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) {
	setCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, noon)
}

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

// The story of one roll, and the ways it does not get on: what the controller
// does next and what the DaemonSet's status says meanwhile.
func TestRoll(t *testing.T) {
	type answer struct {
		Create, Remove                                          []string
		Desired, Current, Updated, Ready, Available, Misplanned int32
	}
	onDelete := func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }
	slow := func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 30 }
	for name, row := range map[string]struct {
		change func(*appsv1.DaemonSet)
		wanted []string
		pods   map[string]*corev1.Pod
		want   answer
	}{
		"at rest": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "new")},
			want: answer{Desired: 1, Current: 1, Updated: 1, Ready: 1, Available: 1},
		},
		"template changed": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old")},
			want: answer{Remove: []string{"p"}, Desired: 1, Current: 1, Ready: 1, Available: 1},
		},
		"old Pod is going": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old", terminating)},
			want: answer{Desired: 1, Current: 1, Ready: 1, Available: 1},
		},
		"old Pod is gone": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{},
			want: answer{Create: []string{"a"}, Desired: 1},
		},
		"new Pod starts": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "new", unready)},
			want: answer{Desired: 1, Current: 1, Updated: 1},
		},
		"ready and not yet available": {
			change: slow, wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "new")},
			want: answer{Desired: 1, Current: 1, Updated: 1, Ready: 1},
		},
		"old Pod is not ready anyway": {
			wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old", unready)},
			want: answer{Remove: []string{"p"}, Desired: 1, Current: 1},
		},
		"OnDelete keeps the old Pod": {
			change: onDelete, wanted: []string{"a"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old")},
			want: answer{Desired: 1, Current: 1, Ready: 1, Available: 1},
		},
		"no node is wanted": {
			pods: map[string]*corev1.Pod{"a": rollPod("p", "new")},
			want: answer{Remove: []string{"p"}, Misplanned: 1},
		},
		"another node is away and holds the roll": {
			wanted: []string{"a", "b"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old"), "b": rollPod("q", "old", unready, terminating)},
			want: answer{Desired: 2, Current: 2, Ready: 1, Available: 1},
		},
		"two nodes roll one after the other": {
			wanted: []string{"a", "b"}, pods: map[string]*corev1.Pod{"a": rollPod("p", "old"), "b": rollPod("q", "old")},
			want: answer{Remove: []string{"p"}, Desired: 2, Current: 2, Ready: 2, Available: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			ds.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
			if row.change != nil {
				row.change(ds)
			}
			now := noon.Add(10 * time.Second)
			plan := planRoll(ds, row.pods, row.wanted, "new", now)
			status, wait := setStatus(ds, row.pods, row.wanted, "new", now)
			got := answer{
				Create: plan.create, Desired: status.DesiredNumberScheduled, Current: status.CurrentNumberScheduled,
				Updated: status.UpdatedNumberScheduled, Ready: status.NumberReady, Available: status.NumberAvailable,
				Misplanned: status.NumberMisscheduled,
			}
			for _, pod := range plan.remove {
				got.Remove = append(got.Remove, pod.Name)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
			if status.ObservedGeneration != 7 || status.NumberUnavailable != got.Desired-got.Available {
				t.Errorf("status %+v", status)
			}
			if (wait > 0) != (got.Ready > got.Available) {
				t.Errorf("wait %s with %d ready and %d available", wait, got.Ready, got.Available)
			}
		})
	}
}

func TestTemplateHash(t *testing.T) {
	template := Reference().daemonSetObject().Spec.Template
	first, err := templateHash(&template)
	if err != nil {
		t.Fatal(err)
	}
	template.Annotations = map[string]string{restartedAt: "now"}
	second, err := templateHash(&template)
	if err != nil {
		t.Fatal(err)
	}
	if first == second || first == "" {
		t.Errorf("a restart must change the hash: %q, %q", first, second)
	}
}
