//go:build lab && linux

package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	stdout, stderr, code := runTool(ctx, t, l, home, append([]string{"rollback", "--output", "json"}, withImage(ctx, t, l, home, args)...)...)
	return newUndone(t, stdout, stderr, code)
}

// withImage names an image that is on the node where neither a DaemonSet tells of one
// nor a run from the same home: the lab has no registry to pull the usual one from.
func withImage(ctx context.Context, t *testing.T, l *lab.Lab, home string, args []string) []string {
	t.Helper()
	_, err := l.Kubectl(ctx, "get", "daemonset", "--namespace", lab.SystemNamespace, lab.DaemonSetName)
	known, globErr := filepath.Glob(filepath.Join(home, "state", "*", "*", "rollback", "nodes", "*", "node-image"))
	must(t, globErr)
	if err == nil || len(known) > 0 || slices.Contains(args, "--node-image") {
		return args
	}
	return append(slices.Clip(args), "--node-image", canaryImage(t, l))
}

func newUndone(t *testing.T, stdout, stderr string, code int) undone {
	t.Helper()
	u := undone{code: code, stdout: stdout, stderr: stderr}
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &u.document); err != nil {
			t.Fatalf("the tool did not print one JSON document: %v\n%s", err, stdout)
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

// fullSite is the reference site with a canary that has run. It is put back after
// the test, whatever a rollback has left of it.
func fullSite(t *testing.T) (context.Context, *lab.Lab) {
	t.Helper()
	l := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if t.Failed() {
			result{}.explain(context.Background(), t, l)
		}
		remade(t, l)
	})
	must(t, l.Restore(ctx))
	return ctx, l
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
	if err := errors.Join(l.ApplyFiles(ctx, files...), l.Reset(ctx)); err != nil {
		t.Errorf("the lab is not as it was found: %v", err)
	}
	if err := l.InNode(ctx, "rm", "-rf", node.ConfDir+"/"+rollback.BackupDir); err != nil {
		t.Error(err)
	}
}

// starter starts an ordinary Pod on the node every second until it is stopped,
// and some after that.
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
		for i, after := 0, 5; after > 0; i++ {
			if run.Err() != nil {
				after--
			}
			name := fmt.Sprintf("ordinary-%d", i)
			if _, err := clients.Kube.CoreV1().Pods("default").Create(ctx, ordinary(name, image), metav1.CreateOptions{}); err != nil {
				s.failed = append(s.failed, fmt.Sprintf("%s: %v", name, err))
			}
			s.started = append(s.started, name)
			select {
			case <-ctx.Done():
				return
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
	return canaryPod(t, l).Spec.Containers[0].Image
}

// definition is that of the networks, which stays where others have some.
const definition = "definition of networks"

// checkGone checks that no object and no conf of Multus is left, but for those
// named, and no Pod of the tool's.
func checkGone(ctx context.Context, t *testing.T, l *lab.Lab, stay ...string) {
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
	_, crdErr := clients.Networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions("default").List(ctx, metav1.ListOptions{})
	for name, err := range map[string]error{
		definition: crdErr, "DaemonSet": dsErr, "ClusterRole": roleErr, "ClusterRoleBinding": bindingErr, "ServiceAccount": accountErr,
		"daemon configuration": configErr, "guard script": guardErr, "canary": canaryErr, "network": networkErr,
	} {
		if apierrors.IsNotFound(err) == slices.Contains(stay, name) {
			t.Errorf("the %s: stays %t, want %t (%v)", name, err == nil, slices.Contains(stay, name), err)
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

// running is a run of the tool that goes on while the test acts.
type running struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout bytes.Buffer

	mu    sync.Mutex
	lines []string
	more  chan struct{}
	done  chan struct{}
}

// begin starts a rollback.
func begin(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) *running {
	t.Helper()
	return startTool(ctx, t, l, home, append([]string{"rollback", "--output", "json", "--yes"}, withImage(ctx, t, l, home, args)...)...)
}

// startTool starts the tool, and reads what it says.
func startTool(ctx context.Context, t *testing.T, l *lab.Lab, home string, args ...string) *running {
	t.Helper()
	cmd := toolCommand(ctx, t, l, home, args...)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	r := &running{cmd: cmd, stdin: stdin, more: make(chan struct{}, 1), done: make(chan struct{})}
	cmd.Stdout = &r.stdout
	must(t, cmd.Start())
	go func() {
		defer close(r.done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			r.mu.Lock()
			r.lines = append(r.lines, lines.Text())
			r.mu.Unlock()
			select {
			case r.more <- struct{}{}:
			default:
			}
		}
	}()
	return r
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

func (r *running) waitFor(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(r.said(), text) {
		select {
		case <-r.more:
		case <-r.done:
			if !strings.Contains(r.said(), text) {
				t.Fatalf("it ended without %q:\n%s", text, r.said())
			}
		}
	}
}

// wait gives the exit code, -1 where a signal ended it.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	<-r.done
	if _, exited := errors.AsType[*exec.ExitError](r.cmd.Wait()); !exited && r.cmd.ProcessState == nil {
		t.Fatal("the tool did not run")
	}
	return r.cmd.ProcessState.ExitCode()
}

// end runs a rollback until it says text, and sends it a signal.
func end(ctx context.Context, t *testing.T, l *lab.Lab, home, text string, signal syscall.Signal) int {
	t.Helper()
	run := begin(ctx, t, l, home)
	run.waitFor(t, text)
	// It may have ended by itself meanwhile: after the last step.
	_ = run.cmd.Process.Signal(signal)
	return run.wait(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkUntouched checks that the site is as before.
func checkUntouched(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	checkObjects(ctx, t, l)
	if _, err := l.ReadNode(node.MultusConf); err != nil {
		t.Errorf("the Multus conf is gone: %v", err)
	}
	noPods(ctx, t, l)
}

// checkObjects checks that every object of the site is there.
func checkObjects(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, args := range [][]string{
		{"daemonset", "--namespace", lab.SystemNamespace, lab.DaemonSetName},
		{"configmap", "--namespace", lab.SystemNamespace, lab.DaemonConfig},
		{"clusterrole", "multus"},
		{"pod", "--namespace", lab.Namespace, lab.CanaryName},
		{"network-attachment-definitions.k8s.cni.cncf.io", "--namespace", lab.Namespace, lab.NetworkName},
		{"configmap", "--namespace", lab.Namespace, lab.GuardName},
	} {
		kubectl(ctx, t, l, append([]string{"get"}, args...)...)
	}
}
