//go:build integration

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// statusScene is one situation that status must tell apart.
type statusScene struct {
	name    string // of the golden files
	site    string // short, so that no cell is cut
	options scriptednode.Options
	// arrange brings the situation about.
	arrange func(*statusSite)

	state v1alpha1.State
	code  int // with --exit-code
}

func statusScenes() []statusScene {
	return []statusScene{
		{name: "healthy", site: "healthy", arrange: statusPassed, state: v1alpha1.StateFreshPass, code: 0},
		{
			name: "stale-daemonset", site: "ds", state: v1alpha1.StateStale, code: 4,
			arrange: func(s *statusSite) { statusPassed(s); s.restartDaemonSet() },
		},
		{
			name: "stale-network", site: "nad", state: v1alpha1.StateStale, code: 4,
			arrange: func(s *statusSite) { statusPassed(s); s.editNetwork() },
		},
		{
			name: "failed-synced", site: "failed", state: v1alpha1.StateFreshFail, code: 3,
			options: scriptednode.Options{Plan: scriptednode.Plan{scriptednode.GuardFailed(1, "no reply from 192.0.2.1")}},
			arrange: func(s *statusSite) {
				s.retest("-f", s.manifest).expect(s.t, 3, "fail", "l2-unreachable")
				s.application("Synced", "Degraded")
			},
		},
		{name: "no-canary", site: "none", arrange: func(*statusSite) {}, state: v1alpha1.StateNoCanary, code: 4},
		{
			name: "terminating", site: "going", state: v1alpha1.StateStale, code: 4,
			options: scriptednode.Options{Plan: scriptednode.Plan{stuckScript()}},
			arrange: statusTerminating,
		},
		{
			name: "two-claim", site: "two", state: v1alpha1.StateConflict, code: 4,
			options: scriptednode.Options{
				Plan: scriptednode.Plan{scriptednode.PassRunning()},
				Pods: func(*corev1.Pod) scriptednode.Script { return scriptednode.Unscheduled() },
			},
			arrange: func(s *statusSite) { statusPassed(s); s.rival() },
		},
		{
			name: "crash-loop", site: "crash", state: v1alpha1.StateStale, code: 4,
			options: scriptednode.Options{Pace: slowBackoff()},
			arrange: func(s *statusSite) { statusPassed(s); s.crashDaemon() },
		},
		{
			name: "zero-desired", site: "zero", state: v1alpha1.StateStale, code: 4,
			arrange: func(s *statusSite) { statusPassed(s); s.selectNoNode() },
		},
		{
			name: "kube-system-forbidden", site: "forbid", state: v1alpha1.StateUnknown, code: 4,
			arrange: func(s *statusSite) { statusPassed(s); s.actAs("st-onlooker", onlooker(s.Namespace)) },
		},
	}
}

// TestStatusScenes holds each situation against golden files, text and JSON.
func TestStatusScenes(t *testing.T) {
	t.Parallel()
	installApplications(t)
	for _, scene := range statusScenes() {
		t.Run(scene.name, func(t *testing.T) {
			t.Parallel()
			s := newStatusSite(t, scene.site, scene.options)
			scene.arrange(s)
			out := s.run("status", "-o", "json", "--exit-code")
			document := out.status(t)
			if document.Status.State != scene.state || out.code != scene.code {
				t.Errorf("got state %s and exit code %d, want %s and %d", document.Status.State, out.code, scene.state, scene.code)
			}
			s.golden(scene.name+".json", s.normalJSON(out.stdout))
			text := s.run("status")
			if text.code != 0 {
				t.Errorf("plain status gave exit code %d: %s", text.code, text.stderr)
			}
			s.golden(scene.name+".txt", s.normalText(text.stdout))
			checkScreen(t, text.stdout)
		})
	}
}

// checkScreen: 100 columns but for commands, which stay whole to be copied, and
// no control code where there is no terminal.
func checkScreen(t *testing.T, screen string) {
	t.Helper()
	for line := range strings.SplitSeq(screen, "\n") {
		if n := len([]rune(line)); n > 100 && !strings.HasPrefix(strings.TrimSpace(line), "kubectl ") {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\r\a") {
			t.Errorf("control codes without a terminal: %q", line)
		}
	}
}

// status reads the document of status -o json.
func (o outcome) status(t *testing.T) v1alpha1.SiteStatus {
	t.Helper()
	var document v1alpha1.SiteStatus
	if err := json.Unmarshal([]byte(o.stdout), &document); err != nil {
		t.Fatalf("no status on standard output: %v\nexit code %d\nstdout: %s\nstderr: %s", err, o.code, o.stdout, o.stderr)
	}
	return document
}

func statusPassed(s *statusSite) {
	s.t.Helper()
	s.retest("-f", s.manifest).expect(s.t, 0, "pass", "ok")
}

// restartDaemonSet restarts it and waits until the new daemon is ready.
func (s *statusSite) restartDaemonSet() {
	s.t.Helper()
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{}))
	if out := s.run("status", "--until", "ready", "--timeout", "1m"); out.code != 0 {
		s.t.Fatalf("Multus did not get ready: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

func (s *statusSite) editNetwork() {
	s.t.Helper()
	_, err := s.networks().Patch(s.t.Context(), s.Network, types.MergePatchType,
		[]byte(`{"spec":{"config":"{\"cniVersion\":\"0.3.1\",\"type\":\"macvlan\",\"master\":\"`+s.Master+`\",\"ipam\":{\"type\":\"static\"}}"}}`),
		metav1.PatchOptions{})
	check(s.t, err)
}

// stuckScript passes, and its Pod cannot be taken down.
func stuckScript() scriptednode.Script {
	script := scriptednode.PassRunning()
	script.Teardown.Stuck = `plugin type="multus-shim" name="multus-cni-network" failed (delete): netplugin failed with no error message: signal: killed`
	return script
}

func statusTerminating(s *statusSite) {
	s.t.Helper()
	statusPassed(s)
	check(s.t, s.client.CoreV1().Pods(s.Namespace).Delete(s.t.Context(), s.Canary, metav1.DeleteOptions{}))
	pod := s.pod()
	s.t.Cleanup(s.node.Unstick)
	eventually(s.t, "the kubelet tells that it cannot end the Pod", func() bool {
		list, err := s.client.CoreV1().Events(s.Namespace).List(s.t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedKillPod,involvedObject.uid=" + string(pod.UID)})
		return err == nil && len(list.Items) > 0
	})
}

// rival asks, in another namespace, for the canary's address on the same wire.
func (s *statusSite) rival() {
	s.t.Helper()
	namespace := s.Namespace + "-b"
	_, err := s.client.CoreV1().Namespaces().Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	check(s.t, err)
	pod, err := s.CanaryPod()
	check(s.t, err)
	pod.Namespace, pod.Name = namespace, "proxy"
	pod.Spec.Volumes = nil
	pod.Spec.InitContainers = nil
	_, err = s.client.CoreV1().Pods(namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	check(s.t, err)
}

// slowBackoff leaves time to look at a daemon that waits for its next start.
func slowBackoff() scriptednode.Pace {
	pace := scriptednode.Fast()
	pace.Backoff = crashPause
	return pace
}

// crashDaemon makes the daemon crash at every start, and waits until it is
// between two of them.
func (s *statusSite) crashDaemon() {
	s.t.Helper()
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{Fault: scriptednode.DaemonCrashes}))
	eventually(s.t, "the daemon crash-loops", func() bool {
		for _, pod := range s.daemons() {
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount >= 2 && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
					return true
				}
			}
		}
		return false
	})
}

func (s *statusSite) selectNoNode() {
	s.t.Helper()
	_, err := s.client.AppsV1().DaemonSets(s.DaemonSet.Namespace).Patch(s.t.Context(), s.DaemonSet.Name, types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":null,"multus":"yes"}}}}}`), metav1.PatchOptions{})
	check(s.t, err)
	eventually(s.t, "the daemon is gone", func() bool {
		ds, err := s.client.AppsV1().DaemonSets(s.DaemonSet.Namespace).Get(s.t.Context(), s.DaemonSet.Name, metav1.GetOptions{})
		return err == nil && ds.Status.DesiredNumberScheduled == 0 && ds.Status.ObservedGeneration == ds.Generation && len(s.daemons()) == 0
	})
}
