package scriptednode_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// Not parallel: goroutines of other tests would be taken for its own.
func TestStopLeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("a node with a canary in each stage", func(t *testing.T) {
		p := play(t, "leak", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.MissingPlugin("macvlan")}})
		p.event(p.create(), "FailedCreatePodSandBox", nil)
		pod := p.daemon("daemon", readyPod)
		stream, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "kube-multus", Follow: true}).Stream(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		p.restart(scriptednode.Daemon{ConfAfterReady: time.Hour})
		p.eventually("a daemon that has not written its conf", func() (bool, error) {
			return len(p.node.Journal().Of(scriptednode.DaemonReady)) == 1, nil
		})
	})
	goleak.VerifyNone(t, before,
		// The API server process is waited for by the package that started it.
		goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"),
		goleak.IgnoreAnyFunction("github.com/vlan50/kubectl-vlan50/test/apiserver.(*Server).start.func1"),
		// client-go keeps connections for the next client.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

// A server of its own: a restart would disturb the other tests.
func TestNodeGoesOnAfterAnAPIServerRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	server, err := apiserver.Start(t.Context(), dir, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	config, err := server.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := scriptednode.InstallCRD(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, ctx: t.Context(), config: config, site: scriptednode.Named("again"), client: kubernetes.NewForConfigOrDie(config)}
	if err := p.site.Apply(p.ctx, config); err != nil {
		t.Fatal(err)
	}
	p.start(scriptednode.Options{Plan: scriptednode.Plan{scriptednode.LateSuccess(3)}})

	created := p.create()
	p.event(created, "FailedCreatePodSandBox", nil)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := p.until("pass", phase(corev1.PodSucceeded))
	if pod.UID != created.UID {
		t.Errorf("UID %s became %s", created.UID, pod.UID)
	}
	p.event(created, "AddedInterface", func(e corev1.Event) bool { return strings.HasPrefix(e.Message, "Add net1") })
	p.restart(scriptednode.Daemon{})
	p.set("rolled out", rolledOut)
	p.remove(created)
	p.until("gone", gone)
	if config, err = server.Config(); err != nil || config.Host != p.config.Host {
		t.Errorf("the server moved to %s, %v", config.Host, err)
	}
}
