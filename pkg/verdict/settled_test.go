package verdict

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

const apiAway = `error setting the networks status: SetPodNetworkStatusAnnotation: failed to update the pod probe in out of cluster comm: ` +
	`status update failed for pod /: Get "https://10.0.0.1:443/api/v1/namespaces/lab/pods/probe": dial tcp 10.0.0.1:443: connect: connection refused`

func once(message string) change {
	return event(10*time.Second, "FailedCreatePodSandBox", message, "kubelet")
}

func TestSettled(t *testing.T) {
	macvlan := containerd(thin(delegate(bySecondary, `failed to find plugin "macvlan" in path [/opt/cni/bin]`)[0]))
	settling := containerd(thin(delegate(bySecondary, `failed to settle addresses for "net1": link net1 has address 2001:db8::100 in DADFAILED state`)[0]))
	for _, row := range []struct {
		name    string
		after   time.Duration // since the canary was created
		settled bool
		cause   Cause
		changes []change
	}{
		{"a missing plugin seen once", 15 * time.Second, false, DelegatePluginMissing, []change{once(macvlan)}},
		{"a missing plugin seen once, 30 s ago", 40 * time.Second, true, DelegatePluginMissing, []change{once(macvlan)}},
		{"a missing plugin seen twice", 26 * time.Second, true, DelegatePluginMissing, []change{failing(macvlan)}},
		{"one event with a count of two", 15 * time.Second, true, DelegatePluginMissing, []change{eventOf(testUID, 10*time.Second, 2, "FailedCreatePodSandBox", macvlan, "kubelet")}},
		{"two other faults before it", 26 * time.Second, false, DelegatePluginMissing, []change{
			event(2*time.Second, "FailedCreatePodSandBox", containerd(shim(refused)), "kubelet"),
			event(4*time.Second, "FailedCreatePodSandBox", containerd(shim(refused)), "kubelet"),
			event(25*time.Second, "FailedCreatePodSandBox", macvlan, "kubelet"),
		}},
		{"the API server away for two tries", 40 * time.Second, false, APIServerUnreachable, []change{
			event(2*time.Second, "FailedCreatePodSandBox", containerd(thin(own(apiAway)[0])), "kubelet"),
			event(34*time.Second, "FailedCreatePodSandBox", containerd(thin(own(apiAway)[0])), "kubelet"),
		}},
		{"the API server away once, long ago", 3 * time.Minute, false, APIServerUnreachable, []change{once(containerd(thin(own(apiAway)[0])))}},
		{"the API server away for a minute", 70 * time.Second, true, APIServerUnreachable, []change{
			event(2*time.Second, "FailedCreatePodSandBox", containerd(thin(own(apiAway)[0])), "kubelet"),
			event(62*time.Second, "FailedCreatePodSandBox", containerd(thin(own(apiAway)[0])), "kubelet"),
		}},
		{"a duplicate address that the kernel found once", 15 * time.Second, false, DuplicateAddress, []change{once(settling)}},
		{"a duplicate address that the kernel found twice", 26 * time.Second, true, DuplicateAddress, []change{failing(settling)}},
		{"one fault among others that were combined", 3 * time.Minute, false, MasterLinkMissing, []change{
			event(2*time.Second, "FailedCreatePodSandBox", containerd(shim(refused)), "kubelet"),
			func(e *evidence.Evidence) {
				eventOf(testUID, 10*time.Second, 9, "FailedCreatePodSandBox", multus.CombinedPrefix+containerd(thin(delegate(bySecondary, "Link not found")[0])), "kubelet")(e)
				e.Events[len(e.Events)-1].LastTimestamp = at(170 * time.Second)
			},
		}},
		{"no daemon, however often", 4 * time.Minute, false, DaemonUnreachable, []change{failing(containerd(shim(noSocket)))}},
		{"words not known, however often", 4 * time.Minute, false, SandboxFailed, []change{failing("Failed to create pod sandbox: huh")}},
		{"a rollout", 4 * time.Minute, false, RolloutInProgress, []change{counts(3, 1, 3, 3)}},
		{"a refused conf", time.Minute, true, MultusConfigRejected, []change{failing(crio(shim(refused))), daemonStatus(waits("CrashLoopBackOff", ""), ended(2, "Error", "x", 0), 4)}},
		{"guard failed, attachment shown", 61 * time.Second, true, GuardFailed, []change{attached(), guardSays("x")}},
		{"guard failed just now, nothing shown yet", 61 * time.Second, false, MultusNotInChain, []change{ran("net1 missing")}},
		{"guard failed, nothing shown in time", 64 * time.Second, true, MultusNotInChain, []change{ran("net1 missing")}},
		{"guard failed just now by a clock that is ahead", 50 * time.Second, true, MultusNotInChain, []change{ran("net1 missing")}},
		{"guard runs without Multus", 16 * time.Second, true, MultusNotInChain, []change{started(5 * time.Second), guardRuns(5 * time.Second)}},
		{"guard runs, too early to tell", 12 * time.Second, false, AttemptInProgress, []change{started(5 * time.Second), guardRuns(5 * time.Second)}},
		{"passed, all shown", 121 * time.Second, true, OK, []change{attached(), done()}},
		{"passed, the event may still come", 121 * time.Second, false, OKNoMultusEvents, []change{status(statusJSON), started(5 * time.Second), done()}},
		{"passed, the event never came", 124 * time.Second, true, OKNoMultusEvents, []change{status(statusJSON), started(5 * time.Second), done()}},
		{"main container started a second ago", 121 * time.Second, false, OK, []change{attached(), mainRuns(120 * time.Second)}},
		{"main container runs on", 126 * time.Second, true, OK, []change{attached(), mainRuns(120 * time.Second)}},
		{"main container runs by a clock that is ahead", 100 * time.Second, true, OK, []change{attached(), mainRuns(120 * time.Second)}},
		{"ended in an earlier sandbox's name", 5 * time.Minute, true, StaleNetworkStatus, []change{eth0(1), net1(2), event(20*time.Second, "SandboxChanged", "x", "kubelet"), started(40 * time.Second), done()}},
		{"no node at first", 10 * time.Second, false, Unscheduled, []change{unbound("0/3 nodes are available")}},
		{"no node for half a minute", 31 * time.Second, true, Unscheduled, []change{unbound("0/3 nodes are available")}},
		{"no word of a scheduler yet", 40 * time.Second, false, AttemptInProgress, []change{unbound(""), func(e *evidence.Evidence) { e.Events = nil }}},
		{"no word of a scheduler for a minute", time.Minute, true, Unscheduled, []change{unbound(""), func(e *evidence.Evidence) { e.Events = nil }}},
		{"a pull that failed once, told by an event alone", 20 * time.Second, false, ImagePull, []change{attachedOnly(), event(10*time.Second, "Failed", "Error: ErrImagePull", "kubelet")}},
		{"a pull that failed once", 20 * time.Second, false, ImagePull, []change{attached(), initWaits("ErrImagePull", "x"), event(10*time.Second, "Failed", "Failed to pull image", "kubelet"), event(10*time.Second, "Failed", "Error: ErrImagePull", "kubelet")}},
		{"a pull that fails on", 45 * time.Second, true, ImagePull, []change{attached(), initWaits("ImagePullBackOff", "x"), event(10*time.Second, "Failed", "Failed to pull image", "kubelet")}},
		{"an image that is never pulled", 6 * time.Second, true, ImagePull, []change{attached(), initWaits("ErrImageNeverPull", "x")}},
		{"an old Pod that is going", 4 * time.Minute, false, OldPodTerminating, []change{attached(), done(), deleting(30)}},
		{"nothing yet", 2 * time.Second, false, AttemptInProgress, nil},
		{"a fault from before the NAD was created anew", time.Minute, false, StaleAttempt, []change{failing(macvlan), func(e *evidence.Evidence) { e.Networks[0].CreationTimestamp = at(40 * time.Second) }}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Decide(build(row.changes...), start.Add(row.after))
			if got.Cause != row.cause || got.Settled != row.settled {
				t.Errorf("got %s settled %v, want %s settled %v\n%s", got.Cause, got.Settled, row.cause, row.settled, got.Message)
			}
		})
	}
}

// mainRuns has the guard done and the main container running and ready.
func mainRuns(since time.Duration) change {
	return func(e *evidence.Evidence) {
		done()(e)
		canary(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].State, p.Status.ContainerStatuses[i].Ready = runs(since), true
			}
		})(e)
	}
}

func guardRuns(since time.Duration) change {
	return canary(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State = runs(since) })
}

// TestLateSuccessStory walks one canary through a daemon that comes late, judged
// at every step as a live run does.
func TestLateSuccessStory(t *testing.T) {
	e := build()
	for _, step := range []struct {
		after time.Duration
		do    change
		cause Cause
		// settled must be false until the end: nothing may cut the story short.
		settled bool
	}{
		{time.Second, func(*evidence.Evidence) {}, AttemptInProgress, false},
		{3 * time.Second, event(3*time.Second, "FailedCreatePodSandBox", containerd(shim(refused)), "kubelet"), DaemonUnreachable, false},
		{16 * time.Second, event(16*time.Second, "FailedCreatePodSandBox", containerd(shim(noSocket)), "kubelet"), DaemonUnreachable, false},
		{30 * time.Second, eth0(30 * time.Second), DaemonUnreachable, false},
		{31 * time.Second, net1(31 * time.Second), DaemonUnreachable, false},
		{32 * time.Second, status(statusJSON), DaemonUnreachable, false},
		{33 * time.Second, sandboxReady(), AttemptInProgress, false},
		{35 * time.Second, started(34 * time.Second), AttemptInProgress, false},
		{36 * time.Second, guardRuns(34 * time.Second), AttemptInProgress, false},
		{120 * time.Second, done(), LateSuccess, true},
	} {
		step.do(&e)
		got := Decide(e, start.Add(step.after))
		if got.Cause != step.cause || got.Settled != step.settled {
			t.Fatalf("after %v: got %s settled %v, want %s settled %v", step.after, got.Cause, got.Settled, step.cause, step.settled)
		}
	}
	final := Decide(e, start.Add(2*time.Minute))
	if final.SandboxFailures != 2 || final.Interface != ifName || len(final.Addresses) != 1 || final.Addresses[0] != address {
		t.Errorf("verdict %+v", final)
	}
}

func TestVerdictSaysWhatWasAttachedOnlyWhereShown(t *testing.T) {
	got := Decide(build(ran("net1 missing")), now)
	if got.Interface != "" || got.Network != "" || got.Addresses != nil {
		t.Errorf("nothing was attached, but the verdict says %s %s %v", got.Network, got.Interface, got.Addresses)
	}
	got = Decide(build(attached(), guardSays("no reply from 198.51.100.1")), now)
	if got.Interface != ifName || got.Network != "lab/storage" || got.Node != testNode {
		t.Errorf("the verdict says %q %q %q", got.Network, got.Interface, got.Node)
	}
}

// A pass says what it does not prove.
func TestPassWithoutAGuard(t *testing.T) {
	got := Decide(build(attached(), done(), canary(func(p *corev1.Pod) {
		p.Spec.InitContainers, p.Status.InitContainerStatuses = nil, nil
	})), start.Add(2*time.Minute))
	if got.Outcome != Pass || !strings.Contains(got.Message, "no guard (init container) has tested") {
		t.Errorf("%s/%s: %s", got.Outcome, got.Cause, got.Message)
	}
}
