package scriptednode_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

func TestGracefulDeletion(t *testing.T) {
	t.Parallel()
	pace := scriptednode.Fast()
	pace.Teardown = 300 * time.Millisecond
	p := play(t, "delete", scriptednode.Options{Pace: pace, Plan: scriptednode.Plan{scriptednode.PassRunning()}})
	first := p.create()
	p.until("running", phase(corev1.PodRunning))
	start := time.Now()
	p.remove(first)
	again, err := p.site.CanaryPod()
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CoreV1().Pods(first.Namespace).Create(p.ctx, again, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) || !strings.Contains(fmt.Sprint(err), "object is being deleted") {
		t.Errorf("created beside a Pod that is going: %v", err)
	}
	p.until("gone", gone)
	if took := time.Since(start); took < pace.Teardown {
		t.Errorf("gone after %s", took)
	}
	p.create()
	p.until("next one runs", phase(corev1.PodRunning))
	if overlaps := p.node.Journal().Overlaps(); len(overlaps) > 0 {
		t.Errorf("address held twice: %+v", overlaps)
	}
}

func TestStuckTeardown(t *testing.T) {
	t.Parallel()
	p := play(t, "stuck", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.Stuck(scriptednode.PassRunning(), "netplugin failed")}})
	created := p.create()
	p.until("running", phase(corev1.PodRunning))
	p.remove(created)
	e := p.event(created, "FailedKillPod", func(e corev1.Event) bool { return e.Count > 1 })
	if !strings.HasPrefix(e.Message, `error killing pod: failed to "KillPodSandbox" for "`+string(created.UID)+`" with KillPodSandboxError: "rpc error:`) {
		t.Errorf("message %s", e.Message)
	}
	if pod := p.until("still there", func(pod *corev1.Pod) bool { return pod != nil }); pod.DeletionTimestamp == nil {
		t.Error("not terminating")
	}
	p.node.Unstick()
	p.until("gone", gone)
}

// The journal convicts a force deletion: the object is gone, the address is not.
func TestForceDeletionIsFoundOut(t *testing.T) {
	t.Parallel()
	pace := scriptednode.Fast()
	pace.Teardown = time.Second
	p := play(t, "force", scriptednode.Options{Pace: pace, Plan: scriptednode.Plan{scriptednode.PassRunning()}})
	first := p.create()
	p.until("running", phase(corev1.PodRunning))
	err := p.client.CoreV1().Pods(first.Namespace).Delete(p.ctx, first.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		t.Fatal(err)
	}
	second := p.create()
	p.until("running", phase(corev1.PodRunning))
	overlaps := p.node.Journal().Overlaps()
	if len(overlaps) != 1 || overlaps[0].First != first.UID || overlaps[0].Second != second.UID {
		t.Errorf("overlaps %+v", overlaps)
	}
}

// remove deletes a Pod the way kubectl does.
func (p *played) remove(pod *corev1.Pod) {
	p.t.Helper()
	if err := p.client.CoreV1().Pods(pod.Namespace).Delete(p.ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID))); err != nil {
		p.t.Fatal(err)
	}
}
