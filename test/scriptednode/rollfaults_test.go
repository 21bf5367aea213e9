package scriptednode_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// container is the first of the statuses; a Pod that is not started has none.
func container(statuses []corev1.ContainerStatus) corev1.ContainerStatus {
	if len(statuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return statuses[0]
}

// In each of these the roll does not get on, each in its own way.
func TestRollsThatDoNotGetOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		daemon scriptednode.Daemon
		want   func(*corev1.Pod) bool
	}{
		"crash": {scriptednode.Daemon{Fault: scriptednode.DaemonCrashes}, func(pod *corev1.Pod) bool {
			c := container(pod.Status.ContainerStatuses)
			return c.RestartCount > 0 && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" && c.LastTerminationState.Terminated.ExitCode == 1
		}},
		"oom": {scriptednode.Daemon{Fault: scriptednode.DaemonOOMKilled}, func(pod *corev1.Pod) bool {
			c := container(pod.Status.ContainerStatuses)
			return c.RestartCount > 0 && c.LastTerminationState.Terminated != nil &&
				c.LastTerminationState.Terminated.Reason == "OOMKilled" && c.LastTerminationState.Terminated.ExitCode == 137
		}},
		"installer": {scriptednode.Daemon{Fault: scriptednode.InstallerFails}, func(pod *corev1.Pod) bool {
			c := container(pod.Status.InitContainerStatuses)
			return pod.Status.Phase == corev1.PodPending && c.RestartCount > 0 && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" &&
				strings.Contains(c.LastTerminationState.Terminated.Message, "Text file busy")
		}},
		"unready": {scriptednode.Daemon{Fault: scriptednode.DaemonUnready}, func(pod *corev1.Pod) bool {
			return container(pod.Status.ContainerStatuses).State.Running != nil && !readyPod(pod)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "roll-"+name, scriptednode.Options{})
			p.restart(row.daemon)
			p.daemon("fault", row.want)
			ds := p.set("status", func(ds *appsv1.DaemonSet) bool {
				return ds.Status.ObservedGeneration == ds.Generation && ds.Status.UpdatedNumberScheduled == 1 && ds.Status.NumberUnavailable == 1
			})
			if rolledOut(ds) {
				t.Errorf("status %+v", ds.Status)
			}
			// Healed: the next start of the same Pod gets on.
			p.node.SetDaemon(scriptednode.Daemon{})
			if row.daemon.Fault == scriptednode.DaemonUnready && !p.node.KillDaemon("Error") {
				t.Fatal("no daemon")
			}
			// Not "rolled out": without probes a crashing container is Ready for a moment.
			p.eventually("conf", func() (bool, error) { return p.node.ConfPresent(), nil })
			p.create()
			p.until("pass", phase(corev1.PodSucceeded))
		})
	}
}

func TestKilledDaemonRestartsInItsPod(t *testing.T) {
	t.Parallel()
	p := play(t, "kill", scriptednode.Options{})
	before := p.daemon("daemon", readyPod)
	if !p.node.KillDaemon("OOMKilled") {
		t.Fatal("no daemon")
	}
	after := p.daemon("restarted", func(pod *corev1.Pod) bool {
		return container(pod.Status.ContainerStatuses).RestartCount == 1 && readyPod(pod)
	})
	last := after.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if after.UID != before.UID || last == nil || last.Reason != "OOMKilled" || !p.node.ConfPresent() {
		t.Errorf("UID %s and %s, last %+v, conf %t", before.UID, after.UID, last, p.node.ConfPresent())
	}
	if removed := p.node.Journal().Of(scriptednode.ConfRemoved); len(removed) > 0 {
		t.Errorf("conf removed: %v", removed)
	}
	previous, err := p.client.CoreV1().Pods(after.Namespace).GetLogs(after.Name, &corev1.PodLogOptions{Container: "kube-multus", Previous: true}).DoRaw(p.ctx)
	if err != nil || !strings.Contains(string(previous), "multus-daemon started") {
		t.Errorf("log before the restart: %v: %s", err, previous)
	}
}

func TestOnDeleteKeepsTheOldDaemon(t *testing.T) {
	t.Parallel()
	p := play(t, "ondelete", scriptednode.Options{}, func(s *scriptednode.Site) { s.UpdateStrategy = appsv1.OnDeleteDaemonSetStrategyType })
	before := p.daemon("daemon", readyPod)
	p.restart(scriptednode.Daemon{})
	p.set("observed", func(ds *appsv1.DaemonSet) bool {
		return ds.Status.ObservedGeneration == 2 && ds.Status.UpdatedNumberScheduled == 0 && ds.Status.NumberAvailable == 1
	})
	if now := p.daemon("daemon", readyPod); now.UID != before.UID || now.DeletionTimestamp != nil {
		t.Errorf("daemon Pod %s is not the old one", now.Name)
	}
	p.revisions(2)
}

func TestSelectorThatMatchesNothing(t *testing.T) {
	t.Parallel()
	p := play(t, "zero", scriptednode.Options{}, func(s *scriptednode.Site) { s.NodeSelector = map[string]string{"multus": "here"} })
	ds := p.set("nothing desired", func(ds *appsv1.DaemonSet) bool { return ds.Status.ObservedGeneration == 1 })
	pods, err := p.daemonPods()
	if err != nil || len(pods) > 0 || ds.Status.DesiredNumberScheduled != 0 {
		t.Errorf("%v, %d Pods, status %+v", err, len(pods), ds.Status)
	}
}

func TestAnotherNodeHoldsTheRoll(t *testing.T) {
	t.Parallel()
	p := play(t, "peer", scriptednode.Options{}, func(s *scriptednode.Site) { s.Peers = []scriptednode.Peer{{Name: s.Node + "-b"}} })
	p.set("one of two", func(ds *appsv1.DaemonSet) bool {
		return ds.Status.DesiredNumberScheduled == 2 && ds.Status.NumberAvailable == 1
	})
	p.restart(scriptednode.Daemon{})
	p.set("old Pod of the peer is asked to go", func(ds *appsv1.DaemonSet) bool {
		return ds.Status.ObservedGeneration == 2 && ds.Status.UpdatedNumberScheduled == 0 && ds.Status.NumberUnavailable == 1
	})
	pods, err := p.daemonPods()
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if mine := pod.Spec.NodeName == p.site.Node; mine && pod.DeletionTimestamp != nil || !mine && pod.DeletionTimestamp == nil {
			t.Errorf("%s on %s: deletion %v", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp)
		}
	}
}

func TestDeletedDaemonSetTakesItsConfAlong(t *testing.T) {
	t.Parallel()
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "gone-"+name, scriptednode.Options{})
			sets := p.client.AppsV1().DaemonSets(p.site.DaemonSet.Namespace)
			if err := sets.Delete(p.ctx, p.site.DaemonSet.Name, metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
				t.Fatal(err)
			}
			p.eventually("daemon Pod gone", func() (bool, error) {
				pods, err := p.daemonPods()
				return err == nil && len(pods) == 0, err
			})
			if p.node.ConfPresent() {
				t.Error("conf is still there")
			}
			p.create()
			p.until("plain sandbox", phase(corev1.PodFailed))
			p.revisions(0)
		})
	}
}

func TestStoppedKubelet(t *testing.T) {
	t.Parallel()
	p := play(t, "silent", scriptednode.Options{})
	if err := p.node.SetReady(p.ctx, false); err != nil {
		t.Fatal(err)
	}
	p.set("daemon not available", func(ds *appsv1.DaemonSet) bool { return ds.Status.NumberUnavailable == 1 })
	p.create()
	pod := p.until("bound or not, not started", func(pod *corev1.Pod) bool { return pod != nil })
	if len(pod.Status.InitContainerStatuses) > 0 {
		t.Errorf("a stopped kubelet reports %+v", pod.Status)
	}
	if err := p.node.SetReady(p.ctx, true); err != nil {
		t.Fatal(err)
	}
	p.until("pass", phase(corev1.PodSucceeded))
	p.set("available", rolledOut)
}
