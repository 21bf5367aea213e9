//go:build integration

package integration

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// The API server dies and comes back in mid-run: the run takes it up again.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), filepath.Join(t.TempDir(), "server"), io.Discard)
	check(t, err)
	t.Cleanup(server.Stop)
	config, err := server.Config()
	check(t, err)
	check(t, scriptednode.InstallCRD(t.Context(), config))
	s := siteOn(t, server, "outage", scriptednode.Options{})

	t.Run("at the gate", func(t *testing.T) {
		s.createCanary(corev1.PodSucceeded)
		s.shutGate()
		run := s.start("canary", "retest", "-o", "json")
		run.waitFor("has not written its CNI conf")
		check(t, server.Restart(t.Context()))
		s.openGate()
		run.wait().expect(t, 0, "pass", "ok")
		s.unlocked()
	})
	t.Run("while the old canary ends", func(t *testing.T) {
		s.removeCanary()
		s.node.Play(scriptednode.Stuck(scriptednode.PassRunning(), "device or resource busy"), scriptednode.Pass())
		s.createCanary(corev1.PodRunning)
		run := s.start("canary", "retest", "-o", "json")
		run.waitFor("device or resource busy")
		check(t, server.Restart(t.Context()))
		s.node.Unstick()
		run.wait().expect(t, 0, "pass", "ok")
		s.unlocked()
	})
	t.Run("while the new one is observed", func(t *testing.T) {
		s.node.Play(scriptednode.Script{Name: "slow", Steps: []scriptednode.Step{
			{Do: scriptednode.Sandbox{}}, {Do: scriptednode.Guard{For: 2 * time.Second}}, {Do: scriptednode.Main{}},
		}})
		run := s.start("canary", "retest", "-o", "json")
		run.waitFor("its guard or main container is running")
		check(t, server.Restart(t.Context()))
		document := run.wait().expect(t, 0, "pass", "ok")
		if pod := s.pod(); pod.UID != document.UID {
			t.Errorf("judged UID %s, there is %s", document.UID, pod.UID)
		}
		s.unlocked()
	})
	t.Run("while Multus writes the network-status", func(t *testing.T) {
		s.node.Play(scriptednode.Script{Name: "slow sandbox", Steps: []scriptednode.Step{
			{Do: scriptednode.Event{Type: corev1.EventTypeNormal, Reason: "NextIsSandbox", Message: "the sandbox comes in two seconds"}},
			{After: 2 * time.Second, Do: scriptednode.Sandbox{}},
			{Do: scriptednode.Guard{}},
			{Do: scriptednode.Main{}},
		}})
		failed := len(s.node.Journal().Of(scriptednode.SandboxFailed))
		run := s.start("canary", "retest", "-o", "json")
		eventually(t, "the node comes to the sandbox", func() bool {
			events, err := s.client.CoreV1().Events(s.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NextIsSandbox"})
			return err == nil && len(events.Items) > 0
		})
		server.Kill()
		eventually(t, "a CNI ADD has failed", func() bool { return len(s.node.Journal().Of(scriptednode.SandboxFailed)) > failed })
		check(t, server.Restart(t.Context()))
		document := run.wait().expect(t, 0, "pass", "late-success")
		for _, text := range []string{"error setting the networks status", "connection refused"} {
			if !strings.Contains(fmt.Sprint(document.Status.Evidence), text) {
				t.Errorf("the evidence does not tell of %q: %+v", text, document.Status.Evidence)
			}
		}
		s.unlocked()
	})
	t.Run("gone for good", func(t *testing.T) {
		s.node.Play(scriptednode.NeverFinishes())
		run := s.start("canary", "retest", "-o", "json", "--timeout", "15s")
		run.waitFor("waits for its sandbox")
		server.Kill()
		run.wait().expect(t, 4, "inconclusive", "attempt-in-progress")
	})
}
