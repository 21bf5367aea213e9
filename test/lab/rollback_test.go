//go:build lab && linux

package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// During and after a rollback an ordinary Pod can be started at every moment.
func TestRollbackBreaksNoPod(t *testing.T) {
	ctx, l := fullSite(t)
	conf, err := l.ReadNode(node.MultusConf)
	must(t, err)
	home := t.TempDir()
	pods := startPods(ctx, t, l, canaryImage(t, l))
	done := rollBack(ctx, t, l, home, "--yes")
	done.expect(t, 0, "done")
	failed := pods.end(ctx, t, l)
	t.Logf("%d ordinary Pods were started, %d failed", len(pods.started), len(failed))
	for _, text := range failed {
		t.Error(text)
	}
	checkGone(ctx, t, l)
	if kept := backups(ctx, t, l); len(kept) != 1 {
		t.Errorf("backups: %v", kept)
	}
	rollBack(ctx, t, l, home).expect(t, 0, "clean")

	t.Run("undo", func(t *testing.T) {
		rollBack(ctx, t, l, home, "--undo", "--yes").expect(t, 0, "done")
		after, err := l.ReadNode(node.MultusConf)
		if err != nil || after != conf {
			t.Errorf("not byte for byte: %q, %q (%v)", conf, after, err)
		}
		must(t, l.ApplyFiles(ctx, done.document.Status.Manifests))
		// The canary's manifest is where a retest looks for it.
		retestFrom(ctx, t, l, home).expect(t, "pass", "ok")
		checkObjects(ctx, t, l)
	})
}

// What a site can be like when somebody calls for a rollback.
func TestRollbackOnANode(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	for _, s := range []rollbackScene{
		{name: "conf left by a killed daemon without DaemonSet", arrange: leaveConfAlone},
		{name: "conf left behind, and confs of another tool's in the standard place", arrange: func(ctx context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			leaveConfAlone(ctx, t, l)
			const other = "/etc/cni/net.d/10-other.conflist"
			must(t, l.InNode(ctx, "mkdir", "-p", filepath.Dir(other)))
			t.Cleanup(func() { must(t, l.RemoveNode(other)) })
			must(t, l.WriteNode(other, node.FlannelConf))
		}},
		{name: "conf emptied", arrange: func(ctx context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			must(t, l.WriteNode(node.MultusConf, ""))
			// The kubelet calls the node NotReady then, and it must be mended all the same.
			kubectl(ctx, t, l, "wait", "--for=condition=Ready=False", "--timeout=1m", "node/"+node.Name)
		}},
		{name: "no other conf", arrange: func(_ context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			must(t, l.RemoveNode(node.PrimaryConf))
		}, refused: []string{"no other CNI conf"}},
		{name: "the other conf is broken", arrange: func(_ context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			must(t, l.WriteNode(node.PrimaryConf, "{"))
		}, refused: []string{"10-flannel.conflist", "cannot be used"}},
		{name: "the DaemonSet mounts another folder than the runtime reads", arrange: otherFolder, refused: []string{"/etc/cni/net.d", "--cni-conf-dir"}, nothingKept: true},
		{name: "the folder that the runtime reads is named", arrange: otherFolder, args: []string{"--cni-conf-dir", node.ConfDir}, nothingKept: true},
		{name: "the conf dir is not root's", arrange: func(ctx context.Context, t *testing.T, l *lab.Lab) {
			t.Helper()
			must(t, l.InNode(ctx, "chown", "998:998", node.ConfDir))
			t.Cleanup(func() { must(t, l.InNode(context.Background(), "chown", "0:0", node.ConfDir)) })
		}, refused: []string{"belongs to user 998", "--node-access=manual"}},
		{name: "the daemon writes its conf again in mid-run", arrange: rewriteSoon, told: "the Multus conf has come back; removing it again"},
		{name: "its plugins are removed", args: []string{"--remove-binaries"}, gone: []string{"multus-shim"}, stay: []string{"macvlan", "static", "flannel"}},
		{name: "a consumer is attached", arrange: attachConsumer, refused: []string{"Pod downloads/consumer", "--also KIND/NAMESPACE/NAME"}},
		{name: "a network of another namespace", arrange: addForeignNetwork, stays: []string{definition}, says: []string{"stays", "default/vlan20"}},
		{name: "Pod Security forbids the node Pod", arrange: forbidHostPath, refused: []string{"pod-security.kubernetes.io/enforce=baseline", "--node-access=manual"}},
		{name: "the image is not on the node", args: []string{"--node-image", "lab.invalid/none:1"}, refused: []string{"lab.invalid/none:1", "--node-image", "--node-access=manual"}},
	} {
		t.Run(s.name, s.run)
	}
}

// rollbackScene is a state of the site, and how a rollback must end in it.
type rollbackScene struct {
	name    string
	arrange func(context.Context, *testing.T, *lab.Lab)
	args    []string
	// refused are parts of the refusal; without any it must be done.
	refused []string
	// stays are the objects that do not go.
	stays []string
	says  []string
	// gone and stay are plugins of the node.
	gone, stay []string
	// told is a part of the progress.
	told string
	// nothingKept: no conf of Multus' was there.
	nothingKept bool
}

func (s rollbackScene) run(t *testing.T) {
	ctx, l := fullSite(t)
	if s.arrange != nil {
		s.arrange(ctx, t, l)
	}
	u := rollBack(ctx, t, l, t.TempDir(), append([]string{"--yes"}, s.args...)...)
	if len(s.refused) > 0 {
		u.expectRefusal(t, s.refused...)
		if s.nothingKept {
			checkObjects(ctx, t, l)
			noPods(ctx, t, l)
		} else {
			checkUntouched(ctx, t, l)
		}
		return
	}
	u.expect(t, 0, "done")
	for _, text := range s.says {
		if !strings.Contains(u.document.Status.Message, text) {
			t.Errorf("the result does not say %q: %s", text, u.document.Status.Message)
		}
	}
	if !strings.Contains(u.stderr, s.told) {
		t.Errorf("it did not tell %q:\n%s", s.told, u.stderr)
	}
	for _, name := range s.gone {
		if err := l.InNode(ctx, "test", "!", "-e", node.BinDir+"/"+name); err != nil {
			t.Errorf("the plugin %s is left (%v)", name, err)
		}
	}
	for _, name := range s.stay {
		if err := l.InNode(ctx, "test", "-e", node.BinDir+"/"+name); err != nil {
			t.Errorf("the plugin %s was removed (%v)", name, err)
		}
	}
	checkGone(ctx, t, l, s.stays...)
	if s.nothingKept {
		must(t, l.InNode(ctx, "test", "!", "-e", node.ConfDir+"/"+rollback.BackupDir))
	} else if kept := backups(ctx, t, l); len(kept) == 0 {
		t.Error("no backup")
	}
	for _, n := range u.document.Status.Nodes {
		for _, kept := range n.Backups {
			if content, err := l.ReadNode(kept.Path); err != nil || rollback.Checksum([]byte(content)) != kept.SHA256 {
				t.Errorf("the result names %s, which is not what it says (%v)", kept.Path, err)
			}
		}
	}
}

// otherFolder lets the DaemonSet mount the standard folder, where on k3s no conf is.
func otherFolder(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	must(t, changeSite(wrongConfDir)(ctx, l))
}

// A finalizer holds the network: the run names it, waits, ends in time, and the
// next one finishes.
func TestRollbackWaitsForAFinalizer(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	ctx, l := fullSite(t)
	patch := func(finalizers string) {
		kubectl(ctx, t, l, "patch", "network-attachment-definitions.k8s.cni.cncf.io", "--namespace", lab.Namespace, lab.NetworkName,
			"--type", "merge", "--patch", `{"metadata":{"finalizers":`+finalizers+`}}`)
	}
	patch(`["example.com/hold"]`)
	u := rollBack(ctx, t, l, t.TempDir(), "--yes", "--timeout", "40s")
	u.expect(t, 4, "unfinished")
	for _, text := range []string{"NetworkAttachmentDefinition downloads/vlan50", "held by finalizer example.com/hold"} {
		if !strings.Contains(u.document.Status.Message, text) {
			t.Errorf("the result does not say %q: %s", text, u.document.Status.Message)
		}
	}
	noPods(ctx, t, l)
	patch("null")
	rollBack(ctx, t, l, t.TempDir(), "--yes").expect(t, 0, "done")
	checkGone(ctx, t, l)
}

// Whatever step a run is killed after, the next one reaches the same end. The
// steps are the plan's own, so that none is missing.
func TestRollbackKilledAfterEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	l := open(t)
	must(t, l.Restore(t.Context()))
	stdout, stderr, _ := runTool(t.Context(), t, l, t.TempDir(), "rollback", "--dry-run=client", "--output", "json")
	var plan v1alpha1.RollbackPlan
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || len(plan.Status.Steps) == 0 {
		t.Fatalf("no plan: %v\n%s", err, stderr)
	}
	for _, step := range plan.Status.Steps {
		t.Run(fmt.Sprintf("%02d %s", step.Number, step.Action), func(t *testing.T) {
			ctx, l := fullSite(t)
			home := t.TempDir()
			code := end(ctx, t, l, home, fmt.Sprintf("step %d of %d done", step.Number, len(plan.Status.Steps)), syscall.SIGKILL)
			// After the last step the end may come first.
			if code != -1 && step.Number < len(plan.Status.Steps) {
				t.Errorf("it was not killed: exit code %d", code)
			}
			u := rollBack(ctx, t, l, home, "--yes")
			if u.code != 0 || u.document.Status.Outcome != "done" && u.document.Status.Outcome != "clean" {
				t.Errorf("the second run: exit code %d, outcome %q\n%s", u.code, u.document.Status.Outcome, u.stderr)
			}
			checkGone(ctx, t, l)
			if kept := backups(ctx, t, l); len(kept) != 1 {
				t.Errorf("backups: %v", kept)
			}
		})
	}
}

// The Pods of the tool's never outlive it, and may do no more than they need.
func TestRollbackPods(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	for _, row := range []struct {
		name   string
		when   string
		signal syscall.Signal
		code   int
	}{
		{"Ctrl-C while it looks at the node", "waiting for the Pod vlan50-rollback-node", syscall.SIGINT, 130},
		{"SIGTERM during the probe", "waiting for an ordinary Pod", syscall.SIGTERM, 143},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, l := fullSite(t)
			if code := end(ctx, t, l, t.TempDir(), row.when, row.signal); code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			noPods(ctx, t, l)
		})
	}
	t.Run("the API server goes away", func(t *testing.T) {
		ctx, l := fullSite(t)
		run := begin(ctx, t, l, t.TempDir())
		run.waitFor(t, "waiting for an ordinary Pod")
		must(t, l.KillService(ctx, node.APIServer))
		must(t, l.StartService(ctx, node.APIServer))
		if code := run.wait(t); code != 0 {
			t.Errorf("exit code %d\n%s", code, run.said())
		}
		noPods(ctx, t, l)
		checkGone(ctx, t, l)
	})
	for name, row := range map[string]struct {
		args []string
		// mounts are all that may be mounted, and all that must be in the end.
		mounts []string
	}{
		"rights":                           {nil, []string{node.ConfDir}},
		"rights where plugins are removed": {[]string{"--remove-binaries"}, []string{node.ConfDir, node.BinDir}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, l := fullSite(t)
			clients, err := l.Clients()
			must(t, err)
			watcher, err := clients.Kube.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{LabelSelector: rollback.PodLabel})
			must(t, err)
			defer watcher.Stop()
			rollBack(ctx, t, l, t.TempDir(), append(row.args, "--yes")...).expect(t, 0, "done")
			var mounted []string
			probes := 0
			for _, pod := range podsSeen(watcher) {
				if pod.Labels[rollback.PodLabel] == rollback.ProbeRole {
					probes++
					checkRights(t, pod, nil)
					continue
				}
				for _, path := range checkRights(t, pod, row.mounts) {
					if !slices.Contains(mounted, path) {
						mounted = append(mounted, path)
					}
				}
			}
			if probes < 2 || len(mounted) != len(row.mounts) {
				t.Errorf("%d probes, mounts %v; want two and %v", probes, mounted, row.mounts)
			}
		})
	}
}

// podsSeen are all Pods that a watch has seen made, once it is quiet.
func podsSeen(watcher watch.Interface) []*corev1.Pod {
	var pods []*corev1.Pod
	for {
		select {
		case event, open := <-watcher.ResultChan():
			if !open {
				return pods
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added {
				pods = append(pods, pod)
			}
		case <-time.After(2 * time.Second):
			return pods
		}
	}
}

// checkRights: no token, no privilege, no capability, no mount but those that it
// may have. It gives those it has.
func checkRights(t *testing.T, pod *corev1.Pod, may []string) (mounted []string) {
	t.Helper()
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath == nil {
			t.Errorf("Pod %s has volume %s", pod.Name, volume.Name)
			continue
		}
		mounted = append(mounted, volume.HostPath.Path)
		if !slices.Contains(may, volume.HostPath.Path) {
			t.Errorf("Pod %s mounts %s of the node, and may mount %v", pod.Name, volume.HostPath.Path, may)
		}
	}
	if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Errorf("Pod %s has a token", pod.Name)
	}
	for _, container := range pod.Spec.Containers {
		rights := container.SecurityContext
		if rights == nil || rights.Privileged != nil && *rights.Privileged || rights.AllowPrivilegeEscalation == nil || *rights.AllowPrivilegeEscalation ||
			rights.Capabilities == nil || len(rights.Capabilities.Add) > 0 || !slices.Contains(rights.Capabilities.Drop, "ALL") {
			t.Errorf("Pod %s may do too much: %+v", pod.Name, rights)
		}
	}
	return mounted
}

// attachConsumer starts a Pod that uses the network.
func attachConsumer(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	pod := ordinary("consumer", canaryImage(t, l))
	pod.Namespace = lab.Namespace
	pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": `[{"name": "vlan50", "ips": ["198.51.100.101/24"]}]`}
	pod.Spec.Containers[0].Command = []string{"sleep", "600"}
	clients, err := l.Clients()
	must(t, err)
	_, err = clients.Kube.CoreV1().Pods(lab.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
	afterwards(t, l, "delete", "pod", "--namespace", lab.Namespace, pod.Name, "--wait")
	kubectl(ctx, t, l, "wait", "--for=condition=Ready", "--timeout=1m", "pod", "--namespace", lab.Namespace, pod.Name)
}

func addForeignNetwork(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	afterwards(t, l, "delete", "network-attachment-definitions.k8s.cni.cncf.io", "--namespace", "default", "vlan20", "--ignore-not-found")
	apply(ctx, t, l, `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan20, namespace: default}
spec: {config: '{"cniVersion": "0.3.1", "type": "bridge"}'}
`)
}

func forbidHostPath(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	label := []string{"label", "namespace", lab.SystemNamespace, "--overwrite"}
	afterwards(t, l, append(label, "pod-security.kubernetes.io/enforce-")...)
	kubectl(ctx, t, l, append(label, "pod-security.kubernetes.io/enforce=baseline")...)
}

// leaveConfAlone kills the daemon's node side and deletes its DaemonSet by
// force, so that the conf stays behind.
func leaveConfAlone(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	conf, err := l.ReadNode(node.MultusConf)
	must(t, err)
	must(t, l.KillDaemon())
	kubectl(ctx, t, l, "delete", "daemonset", "--namespace", lab.SystemNamespace, lab.DaemonSetName, "--wait")
	kubectl(ctx, t, l, "wait", "--for=delete", "pod", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--timeout", "1m")
	// Where the kubelet was quicker to start it again than the deletion, it has
	// taken its conf away.
	must(t, l.WriteNode(node.MultusConf, conf))
}

// rewriteSoon writes the primary conf once the Multus conf has gone, as k3s does
// when it is restarted: the daemon writes its own again.
func rewriteSoon(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	go func() {
		for ctx.Err() == nil {
			if _, err := l.ReadNode(node.MultusConf); err != nil {
				_ = l.WriteNode(node.PrimaryConf, node.FlannelConf)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}
