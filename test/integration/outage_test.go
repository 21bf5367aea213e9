//go:build integration

package integration

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	t.Run("gone for good", func(t *testing.T) {
		s.node.Play(scriptednode.NeverFinishes())
		run := s.start("canary", "retest", "-o", "json", "--timeout", "15s")
		run.waitFor("waits for its sandbox")
		server.Kill()
		run.wait().expect(t, 4, "inconclusive", "attempt-in-progress")
	})
}
