//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/typed/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// attempt is what a canary meets, and what must be said of it.
type attemptCase struct {
	name    string
	script  scriptednode.Script
	prepare func(s *site)
	args    []string
	code    int
	verdict string
	cause   string
	says    string // in the message
}

// Each core cause, end to end: one canary after the other on one site.
func TestCauses(t *testing.T) {
	t.Parallel()
	t.Run("attach", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "causes-attach", scriptednode.Options{})
		s.retestEach(t,
			attemptCase{"all well", scriptednode.Pass(), nil, nil, 0, "pass", "ok", ""},
			attemptCase{"main container runs on", scriptednode.PassRunning(), nil, nil, 0, "pass", "ok", ""},
			attemptCase{"plugin missing", scriptednode.MissingPlugin("macvlan"), nil, nil, 3, "fail", "delegate-plugin-missing", "macvlan"},
			attemptCase{"primary plugin unresolved", scriptednode.PrimaryPluginUnresolved(), nil, nil, 3, "fail", "primary-plugin-unresolved", "flannel"},
			attemptCase{"shim missing", scriptednode.MetaPluginMissing(), nil, nil, 3, "fail", "meta-plugin-missing", "multus-shim"},
			attemptCase{"parent missing", scriptednode.Delegate("Link not found"), nil, nil, 3, "fail", "master-link-missing", ""},
			attemptCase{"late success", scriptednode.LateSuccess(1), nil, nil, 0, "pass", "late-success", ""},
			attemptCase{"no such network", scriptednode.Pass(), (*site).deleteNetwork, nil, 3, "fail", "nad-not-found", "vlan50"},
		)
	})
	t.Run("inside", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, "causes-inside", scriptednode.Options{})
		s.retestEach(t,
			attemptCase{"guard fails", scriptednode.GuardFailed(7, "broke off in step 3"), nil, nil, 3, "fail", "guard-failed", "7"},
			attemptCase{"duplicate address", scriptednode.DuplicateAddress(s.Site), nil, nil, 3, "fail", "duplicate-address", s.Address.Addr().String()},
			attemptCase{"main container fails", scriptednode.Script{Name: "main-fails", Steps: []scriptednode.Step{
				{Do: scriptednode.Sandbox{}}, {Do: scriptednode.Guard{}}, {Do: scriptednode.Main{Exit: 9, Message: "gave up"}},
			}}, nil, nil, 3, "fail", "guard-failed", "9"},
			attemptCase{"daemon silent for a moment", scriptednode.DaemonUnreachable(1), nil, nil, 0, "pass", "late-success", ""},
			attemptCase{"conf removed by hand", scriptednode.Pass(), func(s *site) { s.node.RemoveConf() }, nil, 3, "fail", "multus-not-in-chain", ""},
		)
	})
}

// What kubelet tries again for ever: told at the deadline, or after a while.
func TestCausesThatMayPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]attemptCase{
		"image-missing": {"image missing", scriptednode.ImagePull(), nil, nil, 4, "inconclusive", "image-pull", scriptednode.Reference().Images.Canary},
		"no-room":       {"no room", scriptednode.Unscheduled(), nil, []string{"--timeout", "12s"}, 4, "inconclusive", "unscheduled", "Insufficient memory"},
		"daemon-silent": {"daemon silent", scriptednode.DaemonUnreachable(0), nil, []string{"--timeout", "12s"}, 4, "inconclusive", "daemon-unreachable", "deadline"},
		"volume-missing": {
			"volume missing", scriptednode.MountFailed("guard", `configmap "egress-guard" not found`), nil,
			[]string{"--timeout", "12s"},
			4, "inconclusive", "volume-mount", "egress-guard",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t, "may-pass-"+name, scriptednode.Options{}).retestEach(t, c)
		})
	}
}

func (s *site) deleteNetwork() {
	s.t.Helper()
	check(s.t, s.networks().Delete(s.t.Context(), s.Network, metav1.DeleteOptions{}))
}

func (s *site) retestEach(t *testing.T, cases ...attemptCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.prepare != nil {
				c.prepare(s)
			}
			s.node.Play(c.script)
			out := s.retest(append([]string{"-f", s.manifest}, c.args...)...)
			document := out.expect(t, c.code, c.verdict, c.cause)
			if !strings.Contains(document.Status.Message, c.says) {
				t.Errorf("the message does not say %q: %s", c.says, document.Status.Message)
			}
			s.checkDocument(t, out)
		})
	}
}

// checkDocument checks what every judged attempt must have.
func (s *site) checkDocument(t *testing.T, out outcome) {
	t.Helper()
	document := out.verdict(t)
	status := document.Status
	if len(status.Evidence) == 0 || status.Configuration == nil {
		t.Errorf("evidence or configuration is missing: %s", out.stdout)
	}
	for _, line := range status.Evidence {
		if line.Source == "" || line.Text == "" {
			t.Errorf("a line of evidence without source or text: %+v", line)
		}
	}
	if strings.Contains(status.Next, "<") {
		t.Errorf("the next step has a gap that was not filled: %s", status.Next)
	}
	attempt := status.Attempt
	if attempt.CreatedAt == nil || attempt.DecidedAt == nil || attempt.DecidedAt.Before(attempt.CreatedAt) || attempt.CreatedAt.Time.Before(attempt.StartedAt.Time) {
		t.Errorf("the attempt's times are out of order: %+v", attempt)
	}
	pod := s.pod()
	if pod == nil || pod.UID != document.UID {
		t.Fatalf("UID %s was judged, there is %v", document.UID, pod)
	}
	for key, want := range map[string]string{"vlan50.dev/verdict": status.Verdict, "vlan50.dev/cause": status.Cause} {
		if got := pod.Annotations[key]; got != want {
			t.Errorf("the Pod's annotation %s is %q, want %q", key, got, want)
		}
	}
}

// The daemon rolls after the gate was passed and before the canary is there: its
// sandbox is made by the primary network alone, and that says nothing about
// the network.
func TestCanaryCreatedInTheConfWindow(t *testing.T) {
	t.Parallel()
	s := newSite(t, "conf-window", scriptednode.Options{})
	p := s.behindProxy()
	p.on(1, s.creates(), first(func() {
		check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{ConfAfterReady: never}))
		eventually(t, "the conf is gone", func() bool { return !s.node.ConfPresent() })
	}))
	out := s.retest("-f", s.manifest)
	document := out.verdict(t)
	if !slices.Contains(s.plain(), document.UID) {
		t.Fatalf("the sandbox was not made in the window")
	}
	if cause := document.Status.Cause; out.code != 4 || (cause != "multus-not-in-chain" && cause != "stale-attempt") {
		t.Errorf("exit code %d, %s (%s): %s", out.code, document.Status.Verdict, cause, document.Status.Message)
	}
}

// Nothing that a verdict rests on may change during the attempt.
func TestCrossCheck(t *testing.T) {
	t.Parallel()
	slow := scriptednode.Script{Name: "slow", Steps: []scriptednode.Step{
		{Do: scriptednode.Sandbox{}}, {Do: scriptednode.Guard{For: 1500 * time.Millisecond}}, {Do: scriptednode.Main{}},
	}}
	s := newSite(t, "cross-check", scriptednode.Options{Plan: scriptednode.Plan{slow}})
	for _, row := range []struct {
		name   string
		change func()
		says   string
	}{
		{"network edited", s.editNetwork, "NetworkAttachmentDefinition"},
		{"network recreated", s.recreateNetwork, "deleted and created again"},
		{"guard script edited", s.editGuard, "ConfigMap " + s.Guard},
		{"daemon killed", s.killDaemon, "restart"},
		{"DaemonSet edited", s.editDaemonSet, "DaemonSet"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := s.behindProxy()
			made := len(s.node.Journal().Of(scriptednode.SandboxMade))
			p.on(1, s.creates(), then(func() {
				// A daemon that goes before the sandbox is made is another story.
				eventually(t, "the sandbox is made", func() bool { return len(s.node.Journal().Of(scriptednode.SandboxMade)) > made })
				row.change()
			}))
			status := s.retest("-f", s.manifest).expect(t, 4, "inconclusive", "stale-attempt").Status
			if !strings.Contains(status.Message, row.says) {
				t.Errorf("the message does not say %q: %s", row.says, status.Message)
			}
			p.allPlayed(t)
		})
	}
}

func (s *site) editNetwork() {
	patch := []byte(`{"spec":{"config":"{\"cniVersion\":\"0.3.1\",\"type\":\"macvlan\",\"master\":\"other\",\"ipam\":{\"type\":\"static\"}}"}}`)
	_, err := s.networks().Patch(s.t.Context(), s.Network, types.MergePatchType, patch, metav1.PatchOptions{})
	check(s.t, err)
}

func (s *site) recreateNetwork() {
	network, err := s.networks().Get(s.t.Context(), s.Network, metav1.GetOptions{})
	check(s.t, err)
	s.deleteNetwork()
	network.ObjectMeta = metav1.ObjectMeta{Name: network.Name, Namespace: network.Namespace}
	_, err = s.networks().Create(s.t.Context(), network, metav1.CreateOptions{})
	check(s.t, err)
}

func (s *site) editGuard() {
	_, err := s.client.CoreV1().ConfigMaps(s.Namespace).Patch(s.t.Context(), s.Guard, types.MergePatchType,
		[]byte(`{"data":{"guard.sh":"exit 0"}}`), metav1.PatchOptions{})
	check(s.t, err)
}

// killDaemon returns when the API knows that the daemon runs again.
func (s *site) killDaemon() {
	before := s.daemonRestarts()
	s.node.KillDaemon("Error")
	eventually(s.t, "the daemon runs again", func() bool { return s.daemonRestarts() > before })
}

func (s *site) daemonRestarts() int32 {
	s.t.Helper()
	statuses := s.daemonPod().Status.ContainerStatuses
	if len(statuses) == 0 || statuses[0].State.Running == nil {
		return 0
	}
	return statuses[0].RestartCount
}

func (s *site) editDaemonSet() {
	check(s.t, s.node.RestartDaemonSet(s.t.Context(), scriptednode.Daemon{}))
}

// Two Pods must never ask for one address at once.
func TestAddressHeldByAnotherPod(t *testing.T) {
	t.Parallel()
	s := newSite(t, "overlap", scriptednode.Options{})
	other, err := s.CanaryPod()
	check(t, err)
	other.Name = "neighbour"
	pods := s.client.CoreV1().Pods(s.Namespace)
	_, err = pods.Create(t.Context(), other, metav1.CreateOptions{})
	check(t, err)

	s.retest("-f", s.manifest).expectError(t, 5, s.Namespace+"/neighbour", s.Address.Addr().String(), "nothing was changed")
	if pod := s.pod(); pod != nil {
		t.Errorf("a canary is there: %s", pod.UID)
	}

	t.Run("taken while the old canary ends", func(t *testing.T) {
		check(t, pods.Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
		s.gone(other.Name)
		s.node.Play(scriptednode.PassRunning())
		s.createCanary(corev1.PodRunning)
		p := s.behindProxy()
		p.on(1, afterDeletion(s, scans), first(func() {
			_, err := pods.Create(t.Context(), other, metav1.CreateOptions{})
			check(t, err)
		}))
		s.retest("-f", s.manifest).expectError(t, 5, s.Namespace+"/neighbour", "run this again", "manifest")
		if pod := s.pod(); pod != nil {
			t.Errorf("a canary is there: %s", pod.UID)
		}
		p.allPlayed(t)
	})
	t.Run("free again", func(t *testing.T) {
		check(t, pods.Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
		s.gone(other.Name)
		s.retest().expect(t, 0, "pass", "ok")
	})
}

// Whether another namespace's network is the same wire is looked up with the
// published rights; without them nobody is taken to be on another one.
func TestAddressHeldInAnotherNamespace(t *testing.T) {
	t.Parallel()
	s := newSite(t, "abroad", scriptednode.Options{})
	old := s.createCanary(corev1.PodSucceeded)
	abroad := s.Namespace + "-media"
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: abroad}}, metav1.CreateOptions{})
	check(t, err)
	config, err := s.server.Config()
	check(t, err)
	client, err := nadclient.NewForConfig(config)
	check(t, err)
	ours, err := client.NetworkAttachmentDefinitions(s.Namespace).Get(t.Context(), s.Network, metav1.GetOptions{})
	check(t, err)
	theirs := &nadv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: abroad, Name: "lan"}, Spec: ours.Spec}
	_, err = client.NetworkAttachmentDefinitions(abroad).Create(t.Context(), theirs, metav1.CreateOptions{})
	check(t, err)
	player, err := s.CanaryPod()
	check(t, err)
	player.Namespace, player.Name = abroad, "player"
	player.Spec.NodeName, player.Spec.NodeSelector = "", map[string]string{corev1.LabelHostname: "nowhere"}
	player.Annotations = map[string]string{nadv1.NetworkAttachmentAnnot: fmt.Sprintf(`[{"name":"lan","ips":[%q]}]`, s.Address)}
	_, err = s.client.CoreV1().Pods(abroad).Create(t.Context(), player, metav1.CreateOptions{})
	check(t, err)

	for i, row := range []struct {
		name string
		lack func(right) bool
		says string
	}{
		{"published rights", func(right) bool { return false }, "on master " + s.Master},
		{"no right to networks", func(r right) bool { return r.place == anywhere && r.resource == "network-attachment-definitions" }, "this user may not get NetworkAttachmentDefinition " + abroad + "/lan"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.asUser(fmt.Sprintf("abroad-%d", i), without(s.published(), row.lack))
			s.retest().expectError(t, 5, abroad+"/player", row.says, "nothing was changed")
			s.untouched(old)
		})
	}
}
