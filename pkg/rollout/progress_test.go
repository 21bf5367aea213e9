package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

func TestProgress(t *testing.T) {
	stack := &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "panic: no config\ngoroutine 1 [running]:"}
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	tests := []struct {
		name    string
		change  func(*Observation)
		phase   Phase
		cause   verdict.Cause
		message string
	}{
		{"rolled out", func(*Observation) {}, Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a"},
		{
			"not there", func(o *Observation) { o.DaemonSet = nil }, Waiting, verdict.RolloutInProgress,
			"the Multus DaemonSet is not there",
		},
		{
			"being deleted", onDaemonSet(func(ds *appsv1.DaemonSet) { ds.DeletionTimestamp = new(metav1.NewTime(noon)) }),
			Blocked, verdict.RolloutStuck, "DaemonSet kube-system/kube-multus-ds is being deleted",
		},
		{
			"changed, and its controller has not seen it", onDaemonSet(func(ds *appsv1.DaemonSet) { ds.Generation = 4 }),
			Waiting, verdict.RolloutInProgress, "DaemonSet kube-system/kube-multus-ds: its controller has seen generation 3 of 4",
		},
		{
			"wants no Pod, which kubectl calls rolled out", onDaemonSet(func(ds *appsv1.DaemonSet) {
				ds.Status.DesiredNumberScheduled = 0
				ds.Spec.Template.Spec.NodeSelector = map[string]string{"vlan50": "yes", "arch": "arm"}
			}),
			Blocked, verdict.RolloutZeroDesired, "DaemonSet kube-system/kube-multus-ds wants no Pod on any node (nodeSelector arch=arm,vlan50=yes)",
		},
		{
			"the node is not there", func(o *Observation) { o.Node, o.NodeMissing = nil, true },
			Blocked, verdict.Unscheduled, "there is no node node-a, which the canary asks for",
		},
		{
			"the node is NotReady", func(o *Observation) { o.Node.Status.Conditions[0].Status = corev1.ConditionUnknown },
			Waiting, verdict.RolloutBlockedNodeNotReady, "node node-a is NotReady",
		},
		{"the node may not be read", func(o *Observation) { o.Node = nil }, Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a"},
		{
			"no daemon Pod on the node", func(o *Observation) { o.Pods = o.Pods[:1] },
			Waiting, verdict.RolloutInProgress, "DaemonSet kube-system/kube-multus-ds has no Pod on node node-a yet",
		},
		{
			"the Pod on the node is another DaemonSet's", onA(func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "other" }),
			Waiting, verdict.RolloutInProgress, "DaemonSet kube-system/kube-multus-ds has no Pod on node node-a yet",
		},
		{
			"the Pod is going", onA(func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(noon)) }),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is terminating",
		},
		{
			"the old Pod is still there beside the new one", func(o *Observation) {
				old := daemon(o.DaemonSet, "multus-0", "node-a")
				old.DeletionTimestamp = new(metav1.NewTime(noon))
				o.Pods = append(o.Pods, old)
			},
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-0 is terminating",
		},
		{
			"the Pod is of the old revision", onA(func(pod *corev1.Pod) { pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2" }),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is of revision rev2, the newest is rev3",
		},
		{
			"a rollback brought an older revision up again", func(o *Observation) { o.Revisions[1].Revision = 4 },
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is of revision rev3, the newest is rev2",
		},
		{
			"OnDelete, and the Pod is of the old revision", func(o *Observation) {
				o.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				o.Pods[1].Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
			},
			Blocked, verdict.RolloutOnDelete, "daemon Pod multus-a is of revision rev2, the newest is rev3; its update strategy is OnDelete, so the Pod stays until somebody deletes it",
		},
		{
			"OnDelete, and the Pod was deleted already", onDaemonSet(func(ds *appsv1.DaemonSet) {
				ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				ds.Status.UpdatedNumberScheduled = 1
			}),
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"another DaemonSet's revision is newer", func(o *Observation) {
				other := o.DaemonSet.DeepCopy()
				other.UID = "other"
				o.Revisions = append(o.Revisions, revision(other, "rev9", 9))
			},
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"the newest revision is not known yet", onDaemonSet(func(ds *appsv1.DaemonSet) { ds.Status.UpdatedNumberScheduled = 0 }),
			Waiting, verdict.RolloutInProgress, "DaemonSet kube-system/kube-multus-ds: Updated: 0/2",
		},
		{
			"another node is not updated yet", onDaemonSet(func(ds *appsv1.DaemonSet) { ds.Status.UpdatedNumberScheduled = 1 }),
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"revisions may not be read, all updated", func(o *Observation) { o.Revisions = nil },
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"revisions may not be read, one not updated", func(o *Observation) {
				o.Revisions, o.DaemonSet.Status.UpdatedNumberScheduled = nil, 1
			},
			Waiting, verdict.RolloutInProgress, "DaemonSet kube-system/kube-multus-ds: Updated: 1/2",
		},
		{
			"OnDelete, revisions may not be read, one not updated", func(o *Observation) {
				o.Revisions, o.DaemonSet.Status.UpdatedNumberScheduled = nil, 1
				o.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			},
			Blocked, verdict.RolloutOnDelete, "DaemonSet kube-system/kube-multus-ds: Updated: 1/2; its update strategy is OnDelete, so the Pod stays until somebody deletes it",
		},
		{
			"crash loop", onA(waits("CrashLoopBackOff", "back-off", 2, stack)),
			Blocked, verdict.RolloutStuck, "container kube-multus of daemon Pod multus-a crash-loops: exit code 2, 2 restarts: panic: no config",
		},
		{
			"one restart is a passing thing", onA(waits("CrashLoopBackOff", "back-off", 1, stack)),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (kube-multus: CrashLoopBackOff)",
		},
		{
			"killed for memory again and again", onA(waits("CrashLoopBackOff", "back-off", 3, killed)),
			Blocked, verdict.DaemonOOM, "container kube-multus of daemon Pod multus-a was killed for memory (OOMKilled) and restarted 3 times",
		},
		{
			"just killed for memory, not restarted yet", onA(func(pod *corev1.Pod) {
				unready(pod)
				pod.Status.ContainerStatuses[0].RestartCount = 2
				pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: killed}
			}),
			Blocked, verdict.DaemonOOM, "container kube-multus of daemon Pod multus-a was killed for memory (OOMKilled) and restarted 2 times",
		},
		{
			"killed for memory once, after a long run and old restarts", onA(func(pod *corev1.Pod) {
				unready(pod)
				pod.Status.ContainerStatuses[0].RestartCount = 5
				pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: longRun(killed)}
			}),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (kube-multus: exit code 137)",
		},
		{
			"its image could not be pulled once", onA(waits("ErrImagePull", "connection reset", 0, nil)),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (kube-multus: ErrImagePull)",
		},
		{
			"restarted often, and runs again", onA(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount = 9 }),
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"image cannot be had", onA(waits("ImagePullBackOff", `Back-off pulling image "multus"`, 0, nil)),
			Blocked, verdict.ImagePull, `container kube-multus of daemon Pod multus-a cannot have its image: ImagePullBackOff Back-off pulling image "multus"`,
		},
		{
			"installer fails", onA(func(pod *corev1.Pod) {
				unready(pod)
				pod.Status.InitContainerStatuses[0] = waiting("install-multus", "CrashLoopBackOff", "", 4, &corev1.ContainerStateTerminated{ExitCode: 1})
			}),
			Blocked, verdict.MultusInstallFailed, "init container install-multus of daemon Pod multus-a crash-loops: exit code 1, 4 restarts",
		},
		{
			"crash loop on another node", func(o *Observation) { waits("CrashLoopBackOff", "", 5, stack)(o.Pods[0]) },
			Done, "", "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a",
		},
		{
			"starting", onA(func(pod *corev1.Pod) {
				unready(pod)
				pod.Status.Phase, pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = corev1.PodPending, nil, nil
			}),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (Pending)",
		},
		{
			"installer failed once", onA(func(pod *corev1.Pod) {
				unready(pod)
				pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
			}),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (install-multus: exit code 1)",
		},
		{
			"no Ready condition yet", onA(func(pod *corev1.Pod) { pod.Status.Conditions = nil }),
			Waiting, verdict.RolloutInProgress, "daemon Pod multus-a is not Ready (Running)",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := healthy()
			test.change(&o)
			got := Progress(o)
			want := State{Phase: test.phase, Cause: test.cause, Message: test.message, Daemons: got.Daemons}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Phase == Done && (len(got.Daemons) != 1 || got.Daemons[0].Name != "multus-a") {
				t.Errorf("daemons: %v", got.Daemons)
			}
		})
	}
}

// Where the canary may run anywhere, every node counts.
func TestProgressOnAnyNode(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*Observation)
		phase   Phase
		message string
	}{
		{"all ready", func(*Observation) {}, Done, "DaemonSet kube-system/kube-multus-ds is rolled out"},
		{"one not Ready", func(o *Observation) { unready(o.Pods[0]) }, Waiting, "daemon Pod multus-b is not Ready (Running)"},
		{
			"the last node's Pod is between old and new", func(o *Observation) { o.Pods = o.Pods[:1] },
			Waiting, "DaemonSet kube-system/kube-multus-ds has 1 of 2 Pods, and the canary may run on any node",
		},
		{"no Pod at all", func(o *Observation) { o.Pods = nil }, Waiting, "DaemonSet kube-system/kube-multus-ds has no Pod yet"},
		{
			"one not counted as updated", onDaemonSet(func(ds *appsv1.DaemonSet) { ds.Status.UpdatedNumberScheduled = 1 }),
			Waiting, "DaemonSet kube-system/kube-multus-ds: Updated: 1/2",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := healthy()
			o.Node, o.NodeName = nil, ""
			test.change(&o)
			got := Progress(o)
			if got.Phase != test.phase || got.Message != test.message {
				t.Errorf("got %s, %q; want %s, %q", got.Phase, got.Message, test.phase, test.message)
			}
			if got.Phase == Done && len(got.Daemons) != 2 {
				t.Errorf("daemons: %v", got.Daemons)
			}
		})
	}
}

// One rollout from restart to done, step by step.
func TestProgressOfARestart(t *testing.T) {
	o := healthy()
	step := func(want Phase, message string, change func()) {
		t.Helper()
		change()
		if got := Progress(o); got.Phase != want || got.Message != message {
			t.Errorf("got %s, %q; want %s, %q", got.Phase, got.Message, want, message)
		}
	}
	step(Done, "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a", func() {})
	step(Waiting, "DaemonSet kube-system/kube-multus-ds: its controller has seen generation 3 of 4", func() { o.DaemonSet.Generation = 4 })
	step(Waiting, "DaemonSet kube-system/kube-multus-ds: Updated: 0/2", func() {
		o.DaemonSet.Status.ObservedGeneration, o.DaemonSet.Status.UpdatedNumberScheduled = 4, 0
	})
	step(Waiting, "daemon Pod multus-a is of revision rev3, the newest is rev4", func() {
		o.Revisions = append(o.Revisions, revision(o.DaemonSet, "rev4", 4))
	})
	step(Waiting, "daemon Pod multus-a is terminating", func() { o.Pods[1].DeletionTimestamp = new(metav1.NewTime(noon)) })
	step(Waiting, "DaemonSet kube-system/kube-multus-ds has no Pod on node node-a yet", func() { o.Pods = o.Pods[:1] })
	step(Waiting, "daemon Pod multus-c is not Ready (kube-multus: PodInitializing)", func() {
		pod := daemon(o.DaemonSet, "multus-c", "node-a")
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev4"
		waits("PodInitializing", "", 0, nil)(pod)
		o.Pods = append(o.Pods, pod)
		o.DaemonSet.Status.UpdatedNumberScheduled = 1
	})
	step(Done, "DaemonSet kube-system/kube-multus-ds is rolled out on node node-a", func() {
		pod := daemon(o.DaemonSet, "multus-c", "node-a")
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev4"
		o.Pods[1] = pod
	})
}

// longRun is an end after days.
func longRun(t *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	long := t.DeepCopy()
	long.FinishedAt = metav1.Now()
	long.StartedAt = metav1.NewTime(long.FinishedAt.AddDate(0, 0, -3))
	return long
}
