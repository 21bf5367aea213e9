package scriptednode_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// eventForm is what tells one recorder's events from another's.
type eventForm struct {
	Reason, Message, Type, Component, Host, Reporter, Path string
	Count                                                  int32
	EventTime, FirstTime                                   bool
}

func formOf(e corev1.Event) eventForm {
	return eventForm{
		Reason: e.Reason, Message: e.Message, Type: e.Type, Component: e.Source.Component, Host: e.Source.Host,
		Reporter: e.ReportingController, Path: e.InvolvedObject.FieldPath, Count: e.Count,
		EventTime: !e.EventTime.IsZero(), FirstTime: !e.FirstTimestamp.IsZero(),
	}
}

func TestPassLeavesWhatARealNodeLeaves(t *testing.T) {
	t.Parallel()
	p := play(t, "pass", scriptednode.Options{})
	created := p.create()
	pod := p.until("pass", phase(corev1.PodSucceeded))
	p.event(pod, "Started", func(e corev1.Event) bool { return strings.Contains(e.InvolvedObject.FieldPath, "{canary}") })

	multus := func(message string) eventForm {
		return eventForm{Reason: "AddedInterface", Message: message, Type: "Normal", Component: "multus", Reporter: "multus", Count: 1, FirstTime: true}
	}
	kubelet := func(reason, message, path string) eventForm {
		return eventForm{
			Reason: reason, Message: message, Type: "Normal", Component: "kubelet", Host: p.site.Node, Reporter: "kubelet",
			Path: path, Count: 1, FirstTime: true,
		}
	}
	want := []eventForm{
		{
			Reason: "Scheduled", Message: "Successfully assigned " + p.site.CanaryName().String() + " to " + p.site.Node, Type: "Normal",
			Reporter: "default-scheduler", EventTime: true,
		},
		multus("Add eth0 [10.42.0.2/24] from cbr0"),
		multus("Add net1 [192.0.2.100/24] from " + p.site.Namespace + "/vlan50"),
	}
	for _, path := range []string{"spec.initContainers{egress-guard}", "spec.containers{canary}"} {
		want = append(want,
			kubelet("Pulled", `Container image "busybox:1.36" already present on machine and can be accessed by the pod`, path),
			kubelet("Created", "Container created", path),
			kubelet("Started", "Container started", path))
	}
	var got []eventForm
	for _, e := range p.events(created) {
		got = append(got, formOf(e))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	var status []nadv1.NetworkStatus
	if err := json.Unmarshal([]byte(pod.Annotations[nadv1.NetworkStatusAnnot]), &status); err != nil {
		t.Fatal(err)
	}
	if len(status) != 2 || !status[0].Default || status[1].Name != p.site.Namespace+"/vlan50" || status[1].IPs[0] != "192.0.2.100" {
		t.Errorf("network-status %+v", status)
	}
	guard := pod.Status.InitContainerStatuses[0].State.Terminated
	if guard == nil || guard.ExitCode != 0 || guard.Message != "net1 has 192.0.2.100" {
		t.Errorf("guard %+v", guard)
	}
}

// outcome is what a script leaves of the canary.
type outcome struct {
	phase   corev1.PodPhase
	reason  string // an event that must come
	text    string // in its message
	multus  bool   // AddedInterface for net1
	eth0    bool   // AddedInterface for eth0
	message string // the guard's termination message
}

func TestScripts(t *testing.T) {
	t.Parallel()
	site := scriptednode.Reference()
	for name, row := range map[string]struct {
		script scriptednode.Script
		want   outcome
	}{
		"pass-running": {scriptednode.PassRunning(), outcome{phase: corev1.PodRunning, eth0: true, multus: true}},
		"conf-window": {
			scriptednode.ConfWindow(),
			outcome{phase: corev1.PodFailed, message: "timed out waiting for net1"},
		},
		"missing-plugin": {
			scriptednode.MissingPlugin("macvlan"),
			outcome{
				phase: corev1.PodPending, reason: "FailedCreatePodSandBox", eth0: true,
				text: `:vlan50]: error adding container to network "vlan50": failed to find plugin "macvlan" in path [/var/lib/rancher/k3s/data/cni]`,
			},
		},
		"primary-plugin": {
			scriptednode.PrimaryPluginUnresolved(),
			outcome{
				phase: corev1.PodPending, reason: "FailedCreatePodSandBox",
				text: `:cbr0]: error adding container to network "cbr0": plugin type="flannel" failed (add): failed to find plugin "flannel" in path [/opt/cni/bin]`,
			},
		},
		"meta-plugin": {
			scriptednode.MetaPluginMissing(),
			outcome{phase: corev1.PodPending, reason: "FailedCreatePodSandBox", text: `failed (add): failed to find plugin "multus-shim" in path`},
		},
		"nad": {
			scriptednode.NADNotFound(site),
			outcome{
				phase: corev1.PodPending, reason: "NoNetworkFound",
				text: `cannot find a network-attachment-definition (vlan50) in namespace (downloads): networkattachmentdefinition.k8s.cni.cncf.io "vlan50" not found`,
			},
		},
		"daemon-comes-back": {
			scriptednode.DaemonUnreachable(2),
			outcome{
				phase: corev1.PodSucceeded, reason: "FailedCreatePodSandBox", eth0: true, multus: true,
				text: "CmdAdd (shim): timed out waiting for the condition", message: "net1 has 192.0.2.100",
			},
		},
		"guard-failed": {
			scriptednode.GuardFailed(3, "gateway 192.0.2.1 does not answer"),
			outcome{phase: corev1.PodFailed, eth0: true, multus: true, message: "gateway 192.0.2.1 does not answer"},
		},
		"duplicate": {
			scriptednode.DuplicateAddress(site),
			outcome{phase: corev1.PodFailed, eth0: true, multus: true, message: "duplicate address 192.0.2.100"},
		},
		"image-pull": {
			scriptednode.ImagePull(),
			outcome{phase: corev1.PodPending, reason: "BackOff", text: `Back-off pulling image "busybox:1.36"`, eth0: true, multus: true},
		},
		"mount": {
			scriptednode.MountFailed("guard", "rpc error: no such share"),
			outcome{phase: corev1.PodPending, reason: "FailedMount", text: `MountVolume.SetUp failed for volume "guard" : rpc error: no such share`},
		},
		"unscheduled": {
			scriptednode.Unscheduled(),
			outcome{phase: corev1.PodPending, reason: "FailedScheduling", text: "0/1 nodes are available"},
		},
		"late-success": {
			scriptednode.LateSuccess(2),
			outcome{
				phase: corev1.PodSucceeded, reason: "FailedCreatePodSandBox", eth0: true, multus: true,
				text: "failed to find plugin", message: "net1 has 192.0.2.100",
			},
		},
		"never": {scriptednode.NeverFinishes(), outcome{phase: corev1.PodPending, reason: "Scheduled", text: "Successfully assigned"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "s-"+name, scriptednode.Options{Plan: scriptednode.Plan{row.script}})
			created := p.create()
			if row.want.reason != "" {
				p.event(created, row.want.reason, func(e corev1.Event) bool { return strings.Contains(e.Message, row.want.text) })
			}
			pod := p.until("phase "+string(row.want.phase), phase(row.want.phase))
			got := outcome{phase: pod.Status.Phase, reason: row.want.reason, text: row.want.text}
			for _, e := range p.events(created) {
				got.eth0 = got.eth0 || e.Reason == "AddedInterface" && strings.HasPrefix(e.Message, "Add eth0 [10.42.0.")
				got.multus = got.multus || e.Reason == "AddedInterface" && strings.HasPrefix(e.Message, "Add net1 [192.0.2.100/24]")
			}
			if guard := pod.Status.InitContainerStatuses; terminalPhase(pod) && guard[0].State.Terminated != nil {
				got.message = guard[0].State.Terminated.Message
			}
			if got != row.want {
				t.Errorf("got %+v\nwant %+v", got, row.want)
			}
			if _, annotated := pod.Annotations[nadv1.NetworkStatusAnnot]; annotated != row.want.multus {
				t.Errorf("network-status there: %t", annotated)
			}
		})
	}
}

func terminalPhase(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func TestAttemptsFollowThePlan(t *testing.T) {
	t.Parallel()
	p := play(t, "plan", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.GuardFailed(1, "no"), scriptednode.Pass()}})
	first := p.create()
	p.until("first attempt", phase(corev1.PodFailed))
	p.remove(first)
	p.until("first attempt gone", gone)
	second := p.create()
	p.until("second attempt", phase(corev1.PodSucceeded))
	if first.UID == second.UID {
		t.Error("one UID for two attempts")
	}
	if overlaps := p.node.Journal().Overlaps(); len(overlaps) > 0 {
		t.Errorf("address held twice: %+v", overlaps)
	}
}

func TestSandboxWithoutConfIsPlain(t *testing.T) {
	t.Parallel()
	p := play(t, "noconf", scriptednode.Options{ConfAbsent: true, Plan: scriptednode.Plan{scriptednode.MissingPlugin("macvlan")}})
	created := p.create()
	pod := p.until("false failure", phase(corev1.PodFailed))
	for _, e := range p.events(created) {
		if e.Source.Component == "multus" || e.Reason == "FailedCreatePodSandBox" {
			t.Errorf("Multus was not in the chain, and yet: %s", e.Message)
		}
	}
	if pod.Annotations[nadv1.NetworkStatusAnnot] != "" || pod.Status.PodIP == "" {
		t.Errorf("annotations %v, address %q", pod.Annotations, pod.Status.PodIP)
	}
	if plain := p.node.Journal().Of(scriptednode.SandboxPlain); len(plain) != 1 || plain[0].UID != created.UID {
		t.Errorf("plain sandboxes: %v", plain)
	}
}

func TestConfWithoutDaemonFailsUntilItIsBack(t *testing.T) {
	t.Parallel()
	p := play(t, "nodaemon", scriptednode.Options{})
	if !p.node.HoldDaemon() {
		t.Fatal("no daemon to hold")
	}
	created := p.create()
	p.event(created, "FailedCreatePodSandBox", func(e corev1.Event) bool {
		return strings.HasSuffix(e.Message, "CmdAdd (shim): timed out waiting for the condition")
	})
	p.node.ReleaseDaemon()
	p.until("pass", phase(corev1.PodSucceeded))
}

func TestMissingObjectsAreMissedLikeOnANode(t *testing.T) {
	t.Parallel()
	p := play(t, "missing", scriptednode.Options{})
	networks := nadclient.NewForConfigOrDie(p.config).K8sCniCncfIoV1().NetworkAttachmentDefinitions(p.site.Namespace)
	maps := p.client.CoreV1().ConfigMaps(p.site.Namespace)
	network, err := networks.Get(p.ctx, p.site.Network, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := maps.Get(p.ctx, p.site.Guard, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		networks.Delete(p.ctx, p.site.Network, metav1.DeleteOptions{}),
		maps.Delete(p.ctx, p.site.Guard, metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	created := p.create()
	p.event(created, "FailedMount", func(e corev1.Event) bool {
		return e.Message == `MountVolume.SetUp failed for volume "guard" : configmap "egress-guard" not found`
	})
	guard.ResourceVersion, network.ResourceVersion = "", ""
	if _, err := maps.Create(p.ctx, guard, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.event(created, "NoNetworkFound", nil)
	p.event(created, "FailedCreatePodSandBox", nil)
	if _, err := networks.Create(p.ctx, network, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.until("pass", phase(corev1.PodSucceeded))
}

// From the tenth distinct message on, client-go's recorder folds events.
func TestManyFailuresAreCombined(t *testing.T) {
	t.Parallel()
	pace := scriptednode.Fast()
	pace.Retry, pace.Sandbox = time.Millisecond, time.Millisecond
	p := play(t, "combined", scriptednode.Options{Pace: pace, Plan: scriptednode.Plan{scriptednode.MissingPlugin("macvlan")}})
	e := p.event(p.create(), "FailedCreatePodSandBox", func(e corev1.Event) bool {
		return e.Count > 1 && strings.HasPrefix(e.Message, "(combined from similar events): Failed to create pod sandbox: ")
	})
	if e.Source.Host != p.site.Node {
		t.Errorf("source %+v", e.Source)
	}
}

// With one sandbox id the failures are one event with a count.
func TestSameFailureIsCounted(t *testing.T) {
	t.Parallel()
	script := scriptednode.Script{Steps: []scriptednode.Step{{Do: scriptednode.Sandbox{
		Fault: &scriptednode.Fault{Layer: scriptednode.LayerRuntime, Text: "x"}, Same: true,
	}}}}
	p := play(t, "counted", scriptednode.Options{Plan: scriptednode.Plan{script}})
	created := p.create()
	p.event(created, "FailedCreatePodSandBox", func(e corev1.Event) bool { return e.Count >= 3 })
	failures := 0
	for _, e := range p.events(created) {
		if e.Reason == "FailedCreatePodSandBox" {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d events, want one with a count", failures)
	}
}

func TestCustomSteps(t *testing.T) {
	t.Parallel()
	script := scriptednode.Script{Name: "custom", Steps: []scriptednode.Step{
		{Do: scriptednode.Event{Type: corev1.EventTypeWarning, Reason: "NetworkNotReady", Message: "network is not ready"}},
		{After: 10 * time.Millisecond, Do: scriptednode.Status{Change: func(s *corev1.PodStatus) { s.Message = "set by the test" }}},
	}}
	p := play(t, "custom", scriptednode.Options{Plan: scriptednode.Plan{script}})
	p.event(p.create(), "NetworkNotReady", nil)
	p.until("status", func(pod *corev1.Pod) bool { return pod.Status.Message == "set by the test" })
}

func TestNoNodeFitsTheSelector(t *testing.T) {
	t.Parallel()
	p := play(t, "selector", scriptednode.Options{})
	pod, err := p.site.CanaryPod()
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.NodeSelector = map[string]string{"disk": "fast"}
	if pod, err = p.client.CoreV1().Pods(pod.Namespace).Create(p.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e := p.event(pod, "FailedScheduling", nil)
	if e.EventTime.IsZero() || e.Count != 0 || !e.LastTimestamp.IsZero() || e.Source != (corev1.EventSource{}) {
		t.Errorf("not the scheduler's form: %+v", e)
	}
	p.until("condition", func(pod *corev1.Pod) bool {
		c := pod.Status.Conditions
		return len(c) == 1 && c[0].Type == corev1.PodScheduled && c[0].Reason == corev1.PodReasonUnschedulable
	})
	// A Pod without a node is ended by the API server alone.
	p.remove(pod)
	p.until("gone", gone)
}
