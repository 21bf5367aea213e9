//go:build lab && linux

package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// undone is one run of the tool's rollback.
type undone struct {
	code           int
	stdout, stderr string
	document       v1alpha1.RollbackResult
}

// rollBack runs the tool with a home of the test's own.
func rollBack(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) undone {
	t.Helper()
	var u undone
	u.stdout, u.stderr, u.code = runTool(ctx, t, l, home, append([]string{"rollback", "--output", "json"}, args...)...)
	if u.stdout != "" {
		if err := json.Unmarshal([]byte(u.stdout), &u.document); err != nil {
			t.Fatalf("the tool did not print one JSON document: %v\n%s", err, u.stdout)
		}
	}
	return u
}

func (u undone) expect(t *testing.T, code int, end string) {
	t.Helper()
	if u.code != code || u.document.Status.Outcome != end {
		t.Errorf("exit code %d, outcome %q; want %d, %q\n%s\n%s", u.code, u.document.Status.Outcome, code, end, u.document.Status.Message, u.stderr)
	}
}

func (u undone) expectRefusal(t *testing.T, texts ...string) {
	t.Helper()
	if u.code != 5 || u.stdout != "" {
		t.Errorf("exit code %d, want 5\n%s\n%s", u.code, u.stdout, u.stderr)
	}
	for _, text := range append(texts, "nothing was changed") {
		if !strings.Contains(u.stderr, text) {
			t.Errorf("it does not say %q:\n%s", text, u.stderr)
		}
	}
}

// backups are the kept confs, each proven by the sum beside it.
func backups(ctx context.Context, t *testing.T, l *lab.Lab) []string {
	t.Helper()
	out, err := l.NodeCommand(ctx, "sh", "-c", "cd "+node.ConfDir+"/"+rollback.BackupDir+" && sha256sum -c *.sha256").CombinedOutput()
	if err != nil {
		t.Errorf("the backup does not hold: %v\n%s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// remade puts the whole site back, which a rollback has taken away.
func remade(t *testing.T, l *lab.Lab) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), scenarioWithin)
	defer cancel()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(l.CanaryManifest()), "[1-5]0-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The first time makes the kind of the networks, the second the network.
	for range 2 {
		for _, file := range files {
			if _, applyErr := l.Kubectl(ctx, "apply", "-f", file); applyErr != nil {
				err = applyErr
				time.Sleep(time.Second)
			} else {
				err = nil
			}
		}
	}
	if err := errors.Join(err, l.Reset(ctx)); err != nil {
		t.Errorf("the lab is not as it was found: %v", err)
	}
	if err := l.InNode(ctx, "rm", "-rf", node.ConfDir+"/"+rollback.BackupDir); err != nil {
		t.Error(err)
	}
}

// starter starts an ordinary Pod on the node every second until it is stopped.
type starter struct {
	stop    context.CancelFunc
	done    chan struct{}
	started []string
	failed  []string
}

// startPods begins; image is one that is on the node.
func startPods(ctx context.Context, t *testing.T, l *lab.Lab, image string) *starter {
	t.Helper()
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	s := &starter{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for i := 0; run.Err() == nil; i++ {
			name := fmt.Sprintf("ordinary-%d", i)
			if _, err := clients.Kube.CoreV1().Pods("default").Create(ctx, ordinary(name, image), metav1.CreateOptions{}); err != nil {
				s.failed = append(s.failed, fmt.Sprintf("%s: %v", name, err))
			}
			s.started = append(s.started, name)
			select {
			case <-run.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return s
}

func ordinary(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"ordinary": "true"}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"true"}}},
		},
	}
}

// end waits for the Pods and gives those that failed because of CNI.
func (s *starter) end(ctx context.Context, t *testing.T, l *lab.Lab) []string {
	t.Helper()
	s.stop()
	<-s.done
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for _, name := range s.started {
		for {
			pod, err := clients.Kube.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase == corev1.PodSucceeded {
				break
			}
			if time.Now().After(deadline) {
				s.failed = append(s.failed, name+" did not run to its end")
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	events, err := clients.Kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if slices.Contains(s.started, event.InvolvedObject.Name) {
			s.failed = append(s.failed, event.InvolvedObject.Name+": "+event.Message)
		}
	}
	if _, err := l.Kubectl(ctx, "delete", "pods", "--namespace", "default", "--selector", "ordinary=true", "--wait"); err != nil {
		t.Error(err)
	}
	return s.failed
}

// canaryImage is an image that the node has.
func canaryImage(t *testing.T, l *lab.Lab) string {
	t.Helper()
	data, err := os.ReadFile(l.CanaryManifest())
	if err != nil {
		t.Fatal(err)
	}
	pod := new(corev1.Pod)
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.Containers[0].Image
}

// checkGone checks that no object and no conf of Multus is left, and no Pod of
// the tool's.
func checkGone(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	_, dsErr := clients.Kube.AppsV1().DaemonSets(lab.SystemNamespace).Get(ctx, lab.DaemonSetName, metav1.GetOptions{})
	_, roleErr := clients.Kube.RbacV1().ClusterRoles().Get(ctx, "multus", metav1.GetOptions{})
	_, bindingErr := clients.Kube.RbacV1().ClusterRoleBindings().Get(ctx, "multus", metav1.GetOptions{})
	_, accountErr := clients.Kube.CoreV1().ServiceAccounts(lab.SystemNamespace).Get(ctx, "multus", metav1.GetOptions{})
	_, configErr := clients.Kube.CoreV1().ConfigMaps(lab.SystemNamespace).Get(ctx, lab.DaemonConfig, metav1.GetOptions{})
	_, guardErr := clients.Kube.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, lab.GuardName, metav1.GetOptions{})
	_, canaryErr := clients.Kube.CoreV1().Pods(lab.Namespace).Get(ctx, lab.CanaryName, metav1.GetOptions{})
	_, networkErr := clients.Networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions(lab.Namespace).Get(ctx, lab.NetworkName, metav1.GetOptions{})
	for name, err := range map[string]error{
		"DaemonSet": dsErr, "ClusterRole": roleErr, "ClusterRoleBinding": bindingErr, "ServiceAccount": accountErr,
		"daemon configuration": configErr, "guard script": guardErr, "canary": canaryErr, "network": networkErr,
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s is left (%v)", name, err)
		}
	}
	if _, err := l.ReadNode(node.MultusConf); err == nil {
		t.Error("the Multus conf is left")
	}
	noPods(ctx, t, l)
}

func noPods(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	out, err := l.Kubectl(ctx, "get", "pods", "--all-namespaces", "--selector", rollback.PodLabel, "--output", "name")
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("Pods of the tool's are left: %s %v", out, err)
	}
}

// During and after a rollback an ordinary Pod can be started at every moment.
func TestRollbackBreaksNoPod(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has the restarts and the points of the DaemonSet")
	}
	l := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	defer cancel()
	t.Cleanup(func() { remade(t, l) })
	if err := l.Restore(ctx); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	pods := startPods(ctx, t, l, canaryImage(t, l))
	rollBack(ctx, t, l, home, "--yes").expect(t, 0, "done")
	time.Sleep(5 * time.Second) // and after it
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
		before, err := l.NodeCommand(ctx, "sh", "-c", "cat "+node.ConfDir+"/"+rollback.BackupDir+"/00-multus.conf.*[!6]").Output()
		if err != nil {
			t.Fatal(err)
		}
		rollBack(ctx, t, l, home, "--undo", "--yes").expect(t, 0, "done")
		after, err := l.ReadNode(node.MultusConf)
		if err != nil || after != strings.SplitN(string(before), "\n0", 2)[0] && !strings.HasPrefix(string(before), after) {
			t.Errorf("not byte for byte: %q, %q (%v)", before, after, err)
		}
		remade(t, l)
		retest(ctx, t, l, "--filename", l.CanaryManifest()).expect(t, "pass", "ok")
	})
}

// What a node can be like when somebody calls for a rollback.
func TestRollbackOnANode(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has the restarts and the points of the DaemonSet")
	}
	for _, s := range []struct {
		name    string
		arrange func(context.Context, *lab.Lab) error
		refused []string // empty: it must be done
	}{
		{name: "conf left by a killed daemon without DaemonSet", arrange: leaveConfAlone},
		{name: "conf emptied", arrange: func(_ context.Context, l *lab.Lab) error { return l.WriteNode(node.MultusConf, "") }},
		{
			name:    "no other conf",
			arrange: func(_ context.Context, l *lab.Lab) error { return l.RemoveNode(node.PrimaryConf) },
			refused: []string{"no other CNI conf"},
		},
		{
			name:    "the other conf is broken",
			arrange: func(_ context.Context, l *lab.Lab) error { return l.WriteNode(node.PrimaryConf, "{") },
			refused: []string{"10-flannel.conflist", "cannot be used"},
		},
		{name: "the daemon writes its conf again in mid-run", arrange: rewriteSoon},
	} {
		t.Run(s.name, func(t *testing.T) {
			l := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
			defer cancel()
			t.Cleanup(func() { remade(t, l) })
			if err := l.Restore(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.arrange(ctx, l); err != nil {
				t.Fatalf("arranging: %v", err)
			}
			u := rollBack(ctx, t, l, t.TempDir(), "--yes")
			if len(s.refused) > 0 {
				u.expectRefusal(t, s.refused...)
				noPods(ctx, t, l)
				return
			}
			u.expect(t, 0, "done")
			checkGone(ctx, t, l)
			if kept := backups(ctx, t, l); len(kept) == 0 {
				t.Error("no backup")
			}
		})
	}
}

// leaveConfAlone kills the daemon's node side and deletes its DaemonSet by
// force, so that the conf stays behind.
func leaveConfAlone(ctx context.Context, l *lab.Lab) error {
	conf, err := l.ReadNode(node.MultusConf)
	if err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "delete", "daemonset", "--namespace", lab.SystemNamespace, lab.DaemonSetName, "--wait"); err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "wait", "--for=delete", "pod", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--timeout", "1m"); err != nil {
		return err
	}
	return l.WriteNode(node.MultusConf, conf)
}

// rewriteSoon writes the primary conf once the Multus conf has gone, as k3s does
// when it is restarted: the daemon writes its own again.
func rewriteSoon(ctx context.Context, l *lab.Lab) error {
	go func() {
		for ctx.Err() == nil {
			if _, err := l.ReadNode(node.MultusConf); err != nil {
				_ = l.WriteNode(node.PrimaryConf, node.FlannelConf)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return nil
}
