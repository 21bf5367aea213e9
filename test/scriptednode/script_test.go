package scriptednode

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPlanGivesEachAttemptItsScript(t *testing.T) {
	plan := Plan{MissingPlugin("macvlan"), ConfWindow(), Pass()}
	for attempt, want := range map[int]string{0: "missing-plugin", 1: "missing-plugin", 2: "conf-window", 3: "pass", 4: "pass", 99: "pass"} {
		if got := plan.For(attempt).Name; got != want {
			t.Errorf("attempt %d: %s, want %s", attempt, got, want)
		}
	}
	if got := Plan(nil).For(3).Name; got != "pass" {
		t.Errorf("empty plan: %s", got)
	}
}

func TestOnlyAnUnschedulableFirstStepLeavesThePodUnbound(t *testing.T) {
	for name, row := range map[string]struct {
		script Script
		want   bool
	}{
		"unscheduled":          {Unscheduled(), true},
		"pass":                 {Pass(), false},
		"no steps":             {NeverFinishes(), false},
		"stuck keeps the rest": {Stuck(Unscheduled(), "no"), true},
	} {
		if _, got := row.script.unbound(); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestManifestIsWhatTheSiteSays(t *testing.T) {
	site := Named("x")
	pod, err := site.CanaryPod()
	if err != nil {
		t.Fatal(err)
	}
	networks, err := requestedNetworks(pod)
	if err != nil || len(networks) != 1 {
		t.Fatalf("networks %v, %v", networks, err)
	}
	if got := requestedAddresses(networks); len(got) != 1 || got[0] != site.Address {
		t.Errorf("addresses %v", got)
	}
	if pod.Namespace != "downloads-x" || pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.NodeSelector[corev1.LabelHostname] != "node-a-x" {
		t.Errorf("%s/%s: %+v", pod.Namespace, pod.Name, pod.Spec)
	}
	if text := string(site.CanaryManifest()); strings.ContainsAny(text, "\t") || strings.Contains(text, "{canary}") {
		t.Errorf("not a manifest that a person would write:\n%s", text)
	}
}

// What the shim meets while it waits for the daemon.
func TestWaitDaemon(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration // the daemon comes; 0: never
		stop  time.Duration // the wait is given up by its caller; 0: never
		want  bool
		took  time.Duration
		err   error
	}{
		"daemon comes in time":  {after: 3 * time.Second, want: true, took: 3 * time.Second},
		"daemon comes too late": {after: 61 * time.Second, took: time.Minute},
		"daemon never comes":    {took: time.Minute},
		"node is stopped":       {stop: time.Second, took: time.Second, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := newCNIState()
				if row.after > 0 {
					time.AfterFunc(row.after, func() { c.setDaemon(&daemonProcess{}) })
				}
				if row.stop > 0 {
					time.AfterFunc(row.stop, cancel)
				}
				start := time.Now()
				daemon, err := c.waitDaemon(ctx, time.Minute)
				if (daemon != nil) != row.want || !errors.Is(err, row.err) || time.Since(start) != row.took {
					t.Errorf("daemon %t, error %v, after %s", daemon != nil, err, time.Since(start))
				}
			})
		})
	}
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(true)
		g.open()
		g.shut()
		g.shut()
		passed := make(chan time.Duration)
		start := time.Now()
		go func() {
			if err := g.wait(t.Context()); err != nil {
				t.Error(err)
			}
			passed <- time.Since(start)
		}()
		time.AfterFunc(time.Minute, g.open)
		if took := <-passed; took != time.Minute || !g.passable() {
			t.Errorf("passed after %s", took)
		}
	})
}
