package scriptednode_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// daemonPods are the Pods of the site's DaemonSet.
func (p *played) daemonPods() ([]corev1.Pod, error) {
	list, err := p.client.CoreV1().Pods(p.site.DaemonSet.Namespace).List(p.ctx, metav1.ListOptions{LabelSelector: "site=" + p.site.Labels["site"]})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// daemon waits until the one Pod of the DaemonSet is as done wants it.
func (p *played) daemon(what string, done func(*corev1.Pod) bool) *corev1.Pod {
	p.t.Helper()
	var found *corev1.Pod
	p.eventually(what, func() (bool, error) {
		pods, err := p.daemonPods()
		if err != nil || len(pods) != 1 {
			return false, fmt.Errorf("%d daemon Pods, %w", len(pods), err)
		}
		found = &pods[0]
		return done(found), nil
	})
	return found
}

// set waits until the DaemonSet is as done wants it.
func (p *played) set(what string, done func(*appsv1.DaemonSet) bool) *appsv1.DaemonSet {
	p.t.Helper()
	var found *appsv1.DaemonSet
	p.eventually(what, func() (bool, error) {
		ds, err := p.client.AppsV1().DaemonSets(p.site.DaemonSet.Namespace).Get(p.ctx, p.site.DaemonSet.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		found = ds
		return done(ds), fmt.Errorf("generation %d, status %+v", ds.Generation, ds.Status)
	})
	return found
}

// rolledOut is the rule of kubectl rollout status.
func rolledOut(ds *appsv1.DaemonSet) bool {
	s := ds.Status
	return s.ObservedGeneration >= ds.Generation && s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled
}

func (p *played) restart(d scriptednode.Daemon) {
	p.t.Helper()
	if err := p.node.RestartDaemonSet(p.ctx, d); err != nil {
		p.t.Fatal(err)
	}
}

func readyPod(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// The window the whole project is about: rollout status is content while the
// conf is not there, and a sandbox made then knows nothing of Multus.
func TestRestartOpensTheConfWindow(t *testing.T) {
	t.Parallel()
	p := play(t, "window", scriptednode.Options{})
	before := p.daemon("daemon runs", readyPod)
	old := p.set("at rest", rolledOut)
	p.restart(scriptednode.Daemon{ConfAfterReady: time.Hour}) // until the test ends the window
	p.set("rolled out", func(ds *appsv1.DaemonSet) bool { return ds.Generation > old.Generation && rolledOut(ds) })
	if p.node.ConfPresent() {
		t.Error("conf is there though rollout status was only just content")
	}
	canary := p.create()
	p.until("false failure", phase(corev1.PodFailed))
	p.remove(canary)
	p.until("gone", gone)
	p.node.SetDaemon(scriptednode.Daemon{})
	p.node.KillDaemon("Error")
	p.eventually("conf is back", func() (bool, error) { return p.node.ConfPresent(), nil })
	p.create()
	p.until("pass", phase(corev1.PodSucceeded))

	after := p.daemon("new daemon", readyPod)
	if after.UID == before.UID || after.Name == before.Name || after.Labels["controller-revision-hash"] == before.Labels["controller-revision-hash"] {
		t.Errorf("daemon Pod %s %s is not a new one of a new revision", after.Name, after.UID)
	}
	journal := p.node.Journal()
	removed, ready, written := journal.Of(scriptednode.ConfRemoved), journal.Of(scriptednode.DaemonReady), journal.Of(scriptednode.ConfWritten)
	if len(removed) != 1 || len(ready) != 2 || len(written) != 1 || removed[0].At.After(ready[0].At) {
		t.Errorf("removed %v, ready %v, written %v", removed, ready, written)
	}
	if plain := journal.Of(scriptednode.SandboxPlain); len(plain) != 1 || plain[0].UID != canary.UID {
		t.Errorf("plain sandboxes %v", plain)
	}
	p.revisions(2)
}

// revisions checks the DaemonSet's history.
func (p *played) revisions(want int) {
	p.t.Helper()
	list, err := p.client.AppsV1().ControllerRevisions(p.site.DaemonSet.Namespace).List(p.ctx, metav1.ListOptions{LabelSelector: "site=" + p.site.Labels["site"]})
	if err != nil {
		p.t.Fatal(err)
	}
	numbers := map[int64]bool{}
	for _, revision := range list.Items {
		numbers[revision.Revision] = true
		if owner := metav1.GetControllerOf(&revision); owner == nil || owner.Name != p.site.DaemonSet.Name {
			p.t.Errorf("revision %s has no owner", revision.Name)
		}
	}
	if len(numbers) != want {
		p.t.Errorf("revisions %v, want %d", numbers, want)
	}
}

func TestDaemonLogTellsTheConf(t *testing.T) {
	t.Parallel()
	const window = 200 * time.Millisecond
	p := play(t, "log", scriptednode.Options{})
	p.restart(scriptednode.Daemon{ConfAfterReady: window})
	pod := p.daemon("new daemon", func(pod *corev1.Pod) bool {
		return readyPod(pod) && pod.Annotations["kubectl.kubernetes.io/restartedAt"] != ""
	})
	stream, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "kube-multus", Follow: true}).Stream(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var log strings.Builder
	for !strings.Contains(log.String(), "started to watch file") {
		buffer := make([]byte, 256)
		n, err := stream.Read(buffer)
		if err != nil {
			t.Fatalf("%v after:\n%s", err, log.String())
		}
		log.Write(buffer[:n])
	}
	if !p.node.ConfPresent() {
		t.Error("the last line is printed after the conf is written")
	}
	ready, written := p.node.Journal().Of(scriptednode.DaemonReady), p.node.Journal().Of(scriptednode.ConfWritten)
	if took := written[0].At.Sub(ready[0].At); took < window {
		t.Errorf("conf written %s after Ready", took)
	}
	for _, want := range []string{
		" [verbose] multus-daemon started\n", " [verbose] API readiness check done!\n",
		` [verbose] Generated MultusCNI config: {"binDir":"/var/lib/rancher/k3s/data/cni",`,
		" [verbose] started to watch file /host/etc/cni/net.d/10-flannel.conflist",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in\n%s", want, log.String())
		}
	}
	// A follower sees the daemon's last words and then the end.
	if err := p.client.CoreV1().Pods(pod.Namespace).Delete(p.ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stream)
	if err != nil || !strings.Contains(string(rest), "[verbose] caught terminated, stopping...") || !strings.HasSuffix(string(rest), "[verbose] multus daemon is exited\n") {
		t.Errorf("%v after:\n%s", err, rest)
	}
	requests := p.node.LogRequests()
	if len(requests) != 1 || requests[0].UID != pod.UID || requests[0].Query.Get("follow") != "true" || requests[0].Code != 200 {
		t.Errorf("requests %+v", requests)
	}
}

func TestOtherLogLevelPrintsNothing(t *testing.T) {
	t.Parallel()
	p := play(t, "quiet", scriptednode.Options{})
	p.restart(scriptednode.Daemon{LogLevel: "error"})
	p.eventually("conf written", func() (bool, error) { return len(p.node.Journal().Of(scriptednode.ConfWritten)) == 1, nil })
	pod := p.daemon("daemon", readyPod)
	log, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "kube-multus"}).DoRaw(p.ctx)
	if err != nil || len(log) > 0 {
		t.Errorf("%v: %s", err, log)
	}
	p.node.RefuseLogs("runtime is down")
	if _, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "kube-multus"}).DoRaw(p.ctx); !apierrors.IsInternalError(err) {
		t.Errorf("refused log: %v", err)
	}
}

func TestDaemonThatRanForLong(t *testing.T) {
	t.Parallel()
	p := play(t, "old", scriptednode.Options{})
	pod := p.daemon("daemon", readyPod)
	started := pod.Status.ContainerStatuses[0].State.Running.StartedAt
	if age := time.Since(started.Time); age < 59*time.Minute {
		t.Errorf("runs for %s", age)
	}
	log, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "kube-multus", SinceTime: &started}).DoRaw(p.ctx)
	if err != nil || !strings.Contains(string(log), "started to watch file") {
		t.Errorf("%v: %s", err, log)
	}
}
