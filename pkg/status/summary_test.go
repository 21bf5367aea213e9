package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// lineOf is the line of a subject; empty where there is none.
func lineOf(lines []v1alpha1.StatusLine, subject string) v1alpha1.StatusLine {
	for _, line := range lines {
		if line.Subject == subject {
			return line
		}
	}
	return v1alpha1.StatusLine{}
}

func wantLine(t *testing.T, lines []v1alpha1.StatusLine, subject string, mark v1alpha1.Mark, text string) {
	t.Helper()
	if got := lineOf(lines, subject); got.Mark != mark || !strings.Contains(got.Text, text) {
		t.Errorf("%s: got %s %q, want %s %q", subject, got.Mark, got.Text, mark, text)
	}
}

// daemons changes the daemon Pods everywhere.
func (w *world) daemons(change func(*corev1.Pod)) {
	w.share(func(e *evidence.Evidence) {
		for i := range e.Pods {
			if e.Pods[i].Namespace == "kube-system" {
				change(&e.Pods[i])
			}
		}
	})
}

func crashing(pod *corev1.Pod) {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: "kube-multus", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: ago(time.Minute)}},
	}
}

// young is a daemon whose container started ten seconds ago.
func young(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].State.Running.StartedAt = ago(10 * time.Second)
	pod.Status.Conditions[0].LastTransitionTime = ago(9 * time.Second)
}

func TestMultus(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change  func(*world)
		subject string
		mark    v1alpha1.Mark
		text    string
		ready   bool
		next    string // the beginning of the next command
	}{
		"all is well": {func(*world) {}, "attach", v1alpha1.MarkOK, "node-a would be attached", true, "kubectl vlan50 status --watch"},
		"the daemon crash-loops": {
			func(w *world) { w.daemons(crashing) }, "rollout", v1alpha1.MarkBad, "crash-loops: exit code 1, 4 restarts", false,
			"kubectl logs -n kube-system kube-multus-ds-node-a -c kube-multus --previous",
		},
		"the daemon crash-loops and runs for the moment": {
			func(w *world) {
				w.daemons(func(p *corev1.Pod) {
					steady := *p.Status.ContainerStatuses[0].DeepCopy()
					ready := p.Status.Conditions[0].Status
					crashing(p)
					young := &p.Status.ContainerStatuses[0]
					young.State, young.ContainerID, young.Ready = steady.State, steady.ContainerID, true
					young.State.Running.StartedAt = ago(10 * time.Second)
					p.Status.Conditions[0].Status = ready
				})
				// That its conf was written does not help.
				w.Logs["daemon-node-a"] = logOf("containerd://node-a", true)
			},
			"rollout", v1alpha1.MarkBad, "crash-loops, and runs for the moment: exit code 1, 4 restarts", false,
			"kubectl logs -n kube-system kube-multus-ds-node-a -c kube-multus --previous",
		},
		"its image cannot be had": {
			func(w *world) {
				w.daemons(func(p *corev1.Pod) {
					crashing(p)
					p.Status.ContainerStatuses[0].State.Waiting.Reason = "ImagePullBackOff"
				})
			},
			"rollout", v1alpha1.MarkBad, "cannot have its image", false, "kubectl describe pod -n kube-system kube-multus-ds-node-a",
		},
		"no Pod is wanted": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.DaemonSets[0].Status.DesiredNumberScheduled = 0 })
			},
			"rollout", v1alpha1.MarkBad, "wants no Pod on any node", false, "kubectl edit daemonset -n kube-system kube-multus-ds",
		},
		"an old Pod stays under OnDelete": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) {
					e.DaemonSets[0].Spec.UpdateStrategy.Type = "OnDelete"
					e.ControllerRevisions = append(e.ControllerRevisions, *revision(2, "bbbb"))
				})
			},
			"rollout", v1alpha1.MarkBad, "OnDelete", false, "kubectl delete pod -n kube-system kube-multus-ds-node-a",
		},
		"the node is NotReady": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown })
			},
			"attach", v1alpha1.MarkWarn, "node node-a is NotReady", false, "kubectl describe node node-a",
		},
		"the new daemon has not written its conf": {
			func(w *world) {
				w.daemons(young)
				w.Logs["daemon-node-a"] = logOf("containerd://node-a", false)
			},
			"attach", v1alpha1.MarkWarn, "has not written its CNI conf yet", false, "kubectl vlan50 status --watch --until ready",
		},
		"the new daemon has written its conf": {
			func(w *world) {
				w.daemons(young)
				w.Logs["daemon-node-a"] = logOf("containerd://node-a", true)
			},
			"attach", v1alpha1.MarkOK, "would be attached", true, "kubectl vlan50 status --watch",
		},
		"two digests run": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) {
					other := *daemon("node-b", "aaaa")
					other.Status.ContainerStatuses[0].ImageID = "multus@sha256:ef01"
					e.Pods = append(e.Pods, other)
				})
			},
			"image", v1alpha1.MarkWarn, "2 different digests: sha256:abcd, sha256:ef01", true, "kubectl vlan50 status --watch",
		},
		"there is no DaemonSet": {
			func(w *world) { w.share(func(e *evidence.Evidence) { e.DaemonSets = nil }) },
			"rollout", v1alpha1.MarkBad, "there is no DaemonSet kube-system/kube-multus-ds", false, "kubectl get daemonsets -A",
		},
		"its Pods may not be read": {
			func(w *world) {
				w.share(func(e *evidence.Evidence) { e.Collected[evidence.Pods] = false })
			},
			"rollout", v1alpha1.MarkUnknown, "its Pods are not known", false, "kubectl vlan50 status --watch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			row.change(w)
			s := Summarize(w.Data, now(), Settings{}).Status
			wantLine(t, s.Multus.Lines, row.subject, row.mark, row.text)
			if s.Ready != row.ready {
				t.Errorf("ready is %v", s.Ready)
			}
			if !strings.HasPrefix(s.Next.Command, row.next) || s.Next.Reason == "" {
				t.Errorf("next is %q (%s), want %q", s.Next.Command, s.Next.Reason, row.next)
			}
		})
	}
}

func logOf(instance string, ready bool) rollout.DaemonLog {
	log := rollout.DaemonLog{Container: instance, Read: true}
	log.Feed("2026-09-01T11:59:51Z [verbose] multus-daemon started")
	if ready {
		log.Feed("2026-09-01T11:59:55Z [verbose] API readiness check done!")
		log.Feed("2026-09-01T11:59:55Z [verbose] Generated MultusCNI config: {}")
		log.Feed("2026-09-01T11:59:56Z [verbose] started to watch file /host/etc/cni/net.d/10-flannel.conflist")
	}
	return log
}

// TestMultusNodes: several nodes side by side, the canary's first.
func TestMultusNodes(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.share(func(e *evidence.Evidence) {
		broken := *daemon("node-0", "aaaa")
		crashing(&broken)
		e.Pods = append(e.Pods, broken, *daemon("node-b", "aaaa"))
		e.DaemonSets[0].Status.DesiredNumberScheduled = 3
	})
	w.Logs["daemon-node-a"] = logOf("containerd://node-a", true)
	s := Summarize(w.Data, now(), Settings{}).Status
	var got []string
	for _, n := range s.Multus.Nodes {
		got = append(got, n.Node+" "+string(n.Mark)+" "+n.AttachReadyBy)
	}
	if want := "node-a ok log,node-0 bad ,node-b ok age"; strings.Join(got, ",") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ","), want)
	}
	if !s.Ready {
		t.Error("the canary's node is ready, whatever the others are")
	}
	if last := s.Multus.Nodes[1].LastRestart; last == nil || last.Reason != "Error" || s.Multus.Nodes[1].Restarts != 4 {
		t.Errorf("the last restart is missing: %+v", s.Multus.Nodes[1])
	}
	if since := s.Multus.Nodes[0].AttachReadySince; since == nil || since.Format(time.TimeOnly) != "11:59:56" {
		t.Errorf("attach ready since %v, the log says 11:59:56", since)
	}
	if since := s.Multus.Nodes[2].AttachReadySince; since == nil || since.Format(time.TimeOnly) != "11:03:00" {
		t.Errorf("attach ready since %v, by age it is 11:03:00", since)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config  string
		change  func(*world)
		subject string
		mark    v1alpha1.Mark
		text    string
	}{
		"complete":             {config: macvlan, subject: "network", mark: v1alpha1.MarkOK, text: "macvlan on enp1s0.50, mode bridge, IPAM static"},
		"a list of plugins":    {config: `{"cniVersion":"1.0.0","name":"x","plugins":[` + macvlan + `]}`, subject: "network", mark: v1alpha1.MarkOK, text: "macvlan on enp1s0.50"},
		"no JSON":              {config: `{`, subject: "network", mark: v1alpha1.MarkBad, text: "cannot be used"},
		"empty":                {config: ``, subject: "network", mark: v1alpha1.MarkWarn, text: "spec.config is empty: Multus takes a file of that name"},
		"no prefix is given":   {config: `{"cniVersion":"1.0.0","type":"macvlan","master":"x","ipam":{"type":"static","addresses":[{"address":"192.0.2.9"}]}}`, change: asking(`vlan50`), subject: "config", mark: v1alpha1.MarkBad, text: `static address "192.0.2.9" is not in CIDR notation`},
		"no cniVersion":        {config: `{"type":"macvlan","master":"x","capabilities":{"ips":true},"ipam":{"type":"static"}}`, subject: "config", mark: v1alpha1.MarkWarn, text: "no cniVersion"},
		"no master":            {config: `{"cniVersion":"1.0.0","type":"macvlan","capabilities":{"ips":true},"ipam":{"type":"static"}}`, subject: "config", mark: v1alpha1.MarkWarn, text: "no master"},
		"no IPAM":              {config: `{"cniVersion":"1.0.0","type":"macvlan","master":"x"}`, subject: "config", mark: v1alpha1.MarkBad, text: "no IPAM: the address that the canary asks for is not set"},
		"no capability ips":    {config: `{"cniVersion":"1.0.0","type":"macvlan","master":"x","ipam":{"type":"static"}}`, subject: "config", mark: v1alpha1.MarkWarn, text: "no capability ips"},
		"nobody asks for one":  {config: macvlan, change: asking(`downloads/vlan50`), subject: "config", mark: v1alpha1.MarkBad, text: "static without addresses, and the canary asks for none"},
		"no prefix is asked":   {config: macvlan, change: asking(`[{"name":"vlan50","ips":["192.0.2.100"]}]`), subject: "config", mark: v1alpha1.MarkBad, text: `"192.0.2.100" has no prefix length`},
		"the network is gone":  {config: macvlan, change: func(w *world) { w.Networks[0].Definition, w.Networks[0].Absent = nil, true }, subject: "network", mark: v1alpha1.MarkBad, text: "there is no NetworkAttachmentDefinition downloads/vlan50"},
		"the CRD is healthy":   {config: macvlan, subject: "CRD", mark: v1alpha1.MarkOK, text: "is established"},
		"the CRD is not there": {config: macvlan, change: func(w *world) { w.CRD = CRDRead{Absent: true} }, subject: "CRD", mark: v1alpha1.MarkBad, text: "is not installed"},
		"the CRD's names are taken": {
			config: macvlan, change: func(w *world) { w.CRD.Object = crd("Established") },
			subject: "CRD", mark: v1alpha1.MarkBad, text: "NamesAccepted is not True",
		},
		"the CRD is going": {
			config: macvlan, change: func(w *world) { w.CRD.Object.SetDeletionTimestamp(new(ago(0))) },
			subject: "CRD", mark: v1alpha1.MarkBad, text: "is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			w.Networks[0].Definition = definition(row.config)
			if row.change != nil {
				row.change(w)
			}
			s := Summarize(w.Data, now(), Settings{}).Status
			wantLine(t, s.Network.Lines, row.subject, row.mark, row.text)
		})
	}
}

func asking(annotation string) func(*world) {
	return func(w *world) {
		w.change(func(p *corev1.Pod) { p.Annotations["k8s.v1.cni.cncf.io/networks"] = annotation })
	}
}

func TestCanaryMissing(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.noCanary()
	s := Summarize(w.Data, now(), Settings{Flags: []string{"--context", "home"}}).Status
	if s.State != v1alpha1.StateNoCanary || s.Next.Command != "kubectl vlan50 canary retest -f canary.yaml --context home" {
		t.Errorf("got %s, next %q", s.State, s.Next.Command)
	}
	wantLine(t, s.Canaries[0].Lines, "Pod", v1alpha1.MarkBad, "there is no Pod downloads/vlan50-canary")
	w.Canaries[0].Unreadable = true
	s = Summarize(w.Data, now(), Settings{ClusterFlags: []string{"--context", "home"}}).Status
	if s.State != v1alpha1.StateUnknown || s.Next.Command != "kubectl auth can-i get pods -n downloads --context home" {
		t.Errorf("an unreadable canary is not a missing one: got %s, next %q", s.State, s.Next.Command)
	}
}

// TestHeldCanary: no retest ends the waiting for a finalizer.
func TestHeldCanary(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.change(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = new(ago(time.Minute)), []string{"example.com/hold"}
	})
	s := Summarize(w.Data, now(), Settings{}).Status
	if s.Next.Command != "kubectl get pod -n downloads vlan50-canary -o yaml" || !strings.Contains(s.Next.Reason, "example.com/hold") {
		t.Errorf("next is %q (%s)", s.Next.Command, s.Next.Reason)
	}
}

// TestSeveralCanaries: the worst of them speaks for the site, and the next
// command names it.
func TestSeveralCanaries(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	other := canaryPod()
	other.Name, other.UID = "vlan50-canary-b", types.UID("44444444-4444-4444-8444-444444444444")
	other.Annotations["k8s.v1.cni.cncf.io/networks"] = `[{"name":"vlan50","ips":["192.0.2.101/24"]}]`
	w.addCanary(other)
	s := Summarize(w.Data, now(), Settings{Flags: []string{"--canary", "downloads/vlan50-canary", "--context", "home"}}).Status
	if len(s.Canaries) != 2 || s.Canaries[0].State != v1alpha1.StateFreshPass {
		t.Fatalf("got %+v", s.Canaries)
	}
	if s.State != v1alpha1.StateUnknown || !strings.Contains(s.Message, "downloads/vlan50-canary-b") {
		t.Errorf("got %s: %s", s.State, s.Message)
	}
	if want := "kubectl vlan50 canary retest --canary downloads/vlan50-canary-b --context home"; s.Next.Command != want {
		t.Errorf("next is %q, want %q", s.Next.Command, want)
	}
}

func TestAttemptUnderWay(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.change(func(p *corev1.Pod) {
		*p = *canaryPod()
		delete(p.Annotations, "k8s.v1.cni.cncf.io/network-status")
		p.CreationTimestamp, p.Status = ago(time.Second), corev1.PodStatus{Phase: corev1.PodPending}
	})
	w.evidence().Events = nil
	s := Summarize(w.Data, now(), Settings{}).Status
	if s.State != v1alpha1.StateInconclusive || s.Next.Command != "kubectl vlan50 status --watch" {
		t.Errorf("got %s (%s), next %q", s.State, s.Canaries[0].Cause, s.Next.Command)
	}
}

// TestSummaryIsStable: the same data one second later say the same, or a watch
// would tell of changes that are none.
func TestSummaryIsStable(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	a, b := Summarize(w.Data, now(), Settings{}), Summarize(w.Data, now().Add(time.Second), Settings{})
	if diff := diffDocuments(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"kube-multus-ds-x1": "kube-multus-ds-x1", "a/b": "a/b", "": "''",
		"$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`, "a b": "'a b'",
	} {
		if got := quote([]string{word}); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

func TestGapsAreInTheDocument(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.Gaps = []Gap{{Section: v1alpha1.SectionCanary, Text: "the events cannot be read (right missing: list events in namespace downloads)"}}
	s := Summarize(w.Data, now(), Settings{}).Status
	if len(s.Unreadable) != 1 || s.Unreadable[0].Section != v1alpha1.SectionCanary {
		t.Errorf("got %+v", s.Unreadable)
	}
}

// TestVerdictThatMayStillChange: what waiting may change is no verdict yet.
func TestVerdictThatMayStillChange(t *testing.T) {
	t.Parallel()
	fails := func(w *world, age time.Duration) {
		w.change(func(p *corev1.Pod) {
			p.CreationTimestamp = ago(age)
			p.Annotations = map[string]string{
				canary.AttemptAnnot: "1", "k8s.v1.cni.cncf.io/networks": p.Annotations["k8s.v1.cni.cncf.io/networks"],
			}
			p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		})
		e := w.evidence()
		failed := added(&e.Pods[0], "eth0", "", "")
		failed.FirstTimestamp, failed.LastTimestamp, failed.EventTime = ago(5*time.Second), ago(5*time.Second), metav1.MicroTime{}
		failed.Type, failed.Reason, failed.Source.Component = corev1.EventTypeWarning, "FailedCreatePodSandBox", "kubelet"
		failed.Message = `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5c": plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): CNI request failed with status 400: 'ContainerID:"5c" ERRORED: error configuring pod [downloads/vlan50-canary] networking: [downloads/vlan50-canary/x:vlan50]: error adding container to network "vlan50": Link not found'`
		e.Events = []corev1.Event{failed}
	}
	w := healthy(t)
	fails(w, 20*time.Second)
	s := Summarize(w.Data, now(), Settings{}).Status
	c := s.Canaries[0]
	if c.State != v1alpha1.StateInconclusive || c.Cause != "attempt-in-progress" || !strings.Contains(c.Message, "so far: fail") {
		t.Errorf("got %s (%s): %s", c.State, c.Cause, c.Message)
	}
	if got := strings.Join(c.Changes, "; "); !strings.Contains(got, "nothing is recorded yet") {
		t.Errorf("changes %q", got)
	}
	if !strings.HasPrefix(s.Next.Command, "kubectl vlan50 status --watch") {
		t.Errorf("next is %q", s.Next.Command)
	}
	w = healthy(t)
	fails(w, time.Hour)
	if c := Summarize(w.Data, now(), Settings{}).Status.Canaries[0]; c.Cause == "attempt-in-progress" {
		t.Errorf("a run that was killed an hour ago is waited for: %s", c.Message)
	}
}

// TestTroubleOfOthers: the canary passed, and something else needs a person.
func TestTroubleOfOthers(t *testing.T) {
	t.Parallel()
	ask := `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.50/24"]}]`
	w := healthy(t)
	w.Pods = append(w.Pods, user("one", ask, "192.0.2.50", corev1.PodRunning), user("two", ask, "192.0.2.50", corev1.PodRunning))
	s := Summarize(w.Data, now(), Settings{}).Status
	if s.State != v1alpha1.StateFreshPass || s.Next.Command != "kubectl describe pod -n media one" {
		t.Errorf("two others claim one address: %s, next is %q", s.State, s.Next.Command)
	}
	w = healthy(t)
	w.share(func(e *evidence.Evidence) {
		broken := *daemon("node-b", "aaaa")
		crashing(&broken)
		e.Pods = append(e.Pods, broken)
		e.DaemonSets[0].Status.DesiredNumberScheduled = 2
	})
	s = Summarize(w.Data, now(), Settings{}).Status
	if s.State != v1alpha1.StateFreshPass || s.Next.Command != "kubectl logs -n kube-system kube-multus-ds-node-b -c kube-multus --previous" {
		t.Errorf("the daemon of another node crash-loops: %s, next is %q", s.State, s.Next.Command)
	}
}

// Time alone makes a daemon steady that was between two crashes: the same data
// are judged anew.
func TestTimeMakesADaemonSteady(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.daemons(func(p *corev1.Pod) {
		status := &p.Status.ContainerStatuses[0]
		status.RestartCount, status.State.Running.StartedAt = 4, ago(10*time.Second)
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: ago(30 * time.Second), FinishedAt: ago(20 * time.Second)}
	})
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.Multus.Lines, "rollout", v1alpha1.MarkBad, "runs for the moment")
	later := now().Add(verdict.SteadyAfter)
	wantLine(t, Summarize(w.Data, later, Settings{}).Status.Multus.Lines, "rollout", v1alpha1.MarkOK, "done")
}

// TestNoPassThatMisleads: a pass that stands in the record, while what it would take
// to repeat it is not there or cannot be seen.
func TestNoPassThatMisleads(t *testing.T) {
	t.Parallel()
	empty := func(w *world) {
		log := logOf("containerd://node-a", true)
		log.Feed("2026-09-01T12:10:00Z [verbose] Generated MultusCNI config: ")
		w.Logs["daemon-node-a"] = log
	}
	for name, row := range map[string]struct {
		change func(*world)
		state  v1alpha1.State
		says   string
		next   string
	}{
		"nothing is amiss": {func(*world) {}, v1alpha1.StateFreshPass, "passed", "kubectl vlan50 status --watch"},
		"the daemon has written an empty conf since": {
			empty, v1alpha1.StateStale, "wrote an empty CNI conf", "kubectl delete pod -n kube-system kube-multus-ds-node-a",
		},
		"other namespaces could not be searched": {
			func(w *world) { w.Search.Namespace = "downloads" }, v1alpha1.StateUnknown, "not all namespaces could be searched", "kubectl",
		},
		"no namespace could be searched": {
			func(w *world) { w.Search.Failed = true }, v1alpha1.StateUnknown, "not all namespaces could be searched", "kubectl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			row.change(w)
			s := Summarize(w.Data, now(), Settings{}).Status
			if s.State != row.state || !strings.Contains(s.Message, row.says) || !strings.HasPrefix(s.Next.Command, row.next) {
				t.Errorf("%s: %s; next %s", s.State, s.Message, s.Next.Command)
			}
		})
	}
}

// TestWhatAPassDoesNotProve: no guard, and not the canary that one thinks of.
func TestWhatAPassDoesNotProve(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.change(func(p *corev1.Pod) { p.Spec.InitContainers, p.Status.InitContainerStatuses = nil, nil })
	w.DefaultAbsent = true
	s := Summarize(w.Data, now(), Settings{}).Status
	wantLine(t, s.Canaries[0].Lines, "guard", v1alpha1.MarkWarn, "the attachment alone is proven")
	wantLine(t, s.Canaries[0].Lines, "default", v1alpha1.MarkNone, "there is no Pod downloads/vlan50-canary, the default")
}
