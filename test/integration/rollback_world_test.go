//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// The confs of a node of the reference site.
const (
	multusConf  = `{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus-shim","clusterNetwork":"/host/etc/cni/net.d/10-flannel.conflist"}`
	flannelConf = `{"name":"cbr0","cniVersion":"0.3.1","plugins":[{"type":"flannel"},{"type":"portmap"}]}`
)

// planes bounds how many API servers run besides the common one: each takes a
// processor for some seconds to start.
var planes = make(chan struct{}, 2)

// ownPlane is an API server of a test's own: a rollback takes cluster-wide
// objects away, and looks at everything.
func ownPlane(t *testing.T) *apiserver.Server {
	t.Helper()
	planes <- struct{}{}
	t.Cleanup(func() { <-planes })
	server, err := apiserver.Start(t.Context(), filepath.Join(t.TempDir(), "server"), os.Stderr)
	check(t, err)
	t.Cleanup(server.Stop)
	return server
}

// nodeFiles is the CNI conf dir of one scripted node, on disk. The scripts of
// node Pods are really run on it; conf and disk follow each other.
type nodeFiles struct {
	t    *testing.T
	node *scriptednode.Node
	host string // the conf dir's path on the node
	dir  string // where it really is

	mu      sync.Mutex
	jobs    []*corev1.Pod
	probes  []*corev1.Pod
	probing func(*corev1.Pod) scriptednode.Script // nil: they get Ready
	refused map[string]bool                       // images that cannot be had
	before  func(*corev1.Pod)                     // runs before each script
}

func newNodeFiles(t *testing.T, host string) *nodeFiles {
	t.Helper()
	f := &nodeFiles{t: t, host: host, dir: t.TempDir(), refused: map[string]bool{}}
	f.write("00-multus.conf", multusConf)
	f.write("10-flannel.conflist", flannelConf)
	return f
}

func (f *nodeFiles) write(name, content string) {
	f.t.Helper()
	check(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o600))
}

func (f *nodeFiles) remove(name string) {
	f.t.Helper()
	check(f.t, os.Remove(filepath.Join(f.dir, name)))
}

// read gives a file's content, and whether it is there.
func (f *nodeFiles) read(name string) (string, bool) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", false
	}
	check(f.t, err)
	return string(data), true
}

// backups are the kept copies that sha256sum vouches for.
func (f *nodeFiles) backups() []string {
	f.t.Helper()
	sums, err := filepath.Glob(filepath.Join(f.dir, rollback.BackupDir, "*.sha256"))
	check(f.t, err)
	var names []string
	for _, sum := range sums {
		verify := exec.CommandContext(f.t.Context(), "sha256sum", "--check", "--strict", filepath.Base(sum))
		verify.Dir = filepath.Dir(sum)
		if out, err := verify.CombinedOutput(); err != nil {
			f.t.Errorf("%s: %v\n%s", sum, err, out)
		}
		names = append(names, strings.TrimSuffix(filepath.Base(sum), ".sha256"))
	}
	return names
}

// pods scripts the Pods that are neither canary nor daemon.
func (f *nodeFiles) pods(pod *corev1.Pod) scriptednode.Script {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch image := pod.Spec.Containers[0].Image; {
	case f.refused[image]:
		return scriptednode.ImagePull()
	case pod.Labels[rollback.PodLabel] == rollback.NodePodRole, pod.Labels[rollback.PodLabel] == rollback.StatusRole:
		f.jobs = append(f.jobs, pod)
		return f.job(pod)
	case pod.Labels[rollback.PodLabel] == rollback.ProbeRole:
		f.probes = append(f.probes, pod)
		if f.probing != nil {
			return f.probing(pod)
		}
	}
	return scriptednode.PassRunning()
}

// refuse lets an image be had no longer, or again.
func (f *nodeFiles) refuse(image string, refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[image] = refused
}

// job runs a node Pod's script on the conf dir, and plays what came of it.
func (f *nodeFiles) job(pod *corev1.Pod) scriptednode.Script {
	if host := pod.Spec.Volumes[0].HostPath.Path; host != f.host {
		return scriptednode.MountFailed("conf", "hostPath type check failed: "+host+" is not a directory")
	}
	if f.before != nil {
		f.before(pod)
	}
	f.fromNode()
	code, printed, message := f.run(pod.Spec.Containers[0])
	f.toNode()
	return scriptednode.Script{Name: "node-pod", Steps: []scriptednode.Step{
		{Do: scriptednode.Sandbox{}},
		{Do: scriptednode.Main{Exit: int32(code), Message: message, Log: strings.Split(strings.TrimSuffix(printed, "\n"), "\n")}},
	}}
}

// fromNode makes the disk what the daemon has made of it.
func (f *nodeFiles) fromNode() {
	_, there := f.read("00-multus.conf")
	switch present := f.node.ConfPresent(); {
	case present && !there:
		f.write("00-multus.conf", multusConf)
	case !present && there:
		f.remove("00-multus.conf")
	}
}

// toNode makes the node's network what the disk says.
func (f *nodeFiles) toNode() {
	if _, there := f.read("00-multus.conf"); there {
		f.node.WriteConf()
	} else {
		f.node.RemoveConf()
	}
}

// run is what the container runtime does, with the conf dir in the place of the
// mount.
func (f *nodeFiles) run(container corev1.Container) (code int, printed, message string) {
	f.t.Helper()
	result := filepath.Join(f.t.TempDir(), "termination-log")
	check(f.t, os.WriteFile(result, nil, 0o600))
	cmd := exec.Command(container.Command[0], container.Command[1:]...) //nolint:noctx // a few milliseconds
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, env := range container.Env {
		value := strings.ReplaceAll(env.Value, "$$", "$")
		switch env.Name {
		case "CONF_DIR":
			value = f.dir
		case "RESULT":
			value = result
		}
		cmd.Env = append(cmd.Env, env.Name+"="+value)
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Error(err)
	}
	data, err := os.ReadFile(result)
	check(f.t, err)
	return cmd.ProcessState.ExitCode(), string(out), string(data)
}

// rollbackSite is a site on an API server of its own, with a node whose conf dir
// is on disk, and a canary that has passed.
type rollbackSite struct {
	*site
	files *nodeFiles
	dyn   dynamic.Interface
}

func newRollbackSite(t *testing.T, server *apiserver.Server, name string, changes ...func(*scriptednode.Site)) *rollbackSite {
	t.Helper()
	config, err := server.Config()
	check(t, err)
	check(t, scriptednode.InstallCRD(t.Context(), config))
	files := newNodeFiles(t, scriptednode.Reference().ConfDir)
	s := &rollbackSite{files: files, dyn: dynamic.NewForConfigOrDie(config)}
	s.site = siteOn(t, server, name, scriptednode.Options{Pods: files.pods}, changes...)
	files.node, files.host = s.node, s.ConfDir
	s.createCanary(corev1.PodSucceeded)
	return s
}

// restore makes the site again after a rollback has taken it away. The node is
// a new one: the old one's controller would make what Apply makes.
func (s *rollbackSite) restore() {
	s.t.Helper()
	s.node.Stop()
	check(s.t, s.node.Err())
	config, err := s.server.Config()
	check(s.t, err)
	check(s.t, scriptednode.InstallCRD(s.t.Context(), config))
	check(s.t, s.Apply(s.t.Context(), config))
	check(s.t, os.RemoveAll(filepath.Join(s.files.dir, rollback.BackupDir)))
	check(s.t, os.RemoveAll(s.state))
	s.node, err = scriptednode.New(config, s.Site, scriptednode.Options{Pods: s.files.pods})
	check(s.t, err)
	s.files.node = s.node
	check(s.t, s.node.Start(s.t.Context()))
	s.createCanary(corev1.PodSucceeded)
}

// forget gives the next runs a state folder in which nothing is but the machine's
// name, by which the lock of a killed run is known to be free.
func (s *rollbackSite) forget() {
	s.t.Helper()
	machine, err := os.ReadFile(filepath.Join(s.state, "machine"))
	check(s.t, err)
	s.state = s.t.TempDir()
	check(s.t, os.WriteFile(filepath.Join(s.state, "machine"), machine, 0o600))
}

// rollback runs `rollback -o json` with further arguments to its end.
func (s *rollbackSite) rollback(args ...string) outcome {
	s.t.Helper()
	return s.run(append([]string{"rollback", "-o", "json"}, args...)...)
}

// result reads the document of a run.
func (o outcome) result(t *testing.T) v1alpha1.RollbackResult {
	t.Helper()
	var document v1alpha1.RollbackResult
	o.decode(t, &document)
	return document
}

func (o outcome) plan(t *testing.T) v1alpha1.RollbackPlan {
	t.Helper()
	var document v1alpha1.RollbackPlan
	o.decode(t, &document)
	return document
}

func (o outcome) decode(t *testing.T, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(o.stdout))
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("no document on standard output: %v\nexit code %d\nstdout: %s\nstderr: %s", err, o.code, o.stdout, o.stderr)
	}
	if decoder.More() {
		t.Errorf("more than one document on standard output: %s", o.stdout)
	}
}

// expectResult checks how a rollback ended.
func (o outcome) expectResult(t *testing.T, code int, end string, texts ...string) v1alpha1.RollbackResult {
	t.Helper()
	document := o.result(t)
	if o.code != code || document.Status.Outcome != end {
		t.Errorf("exit code %d, outcome %s; want %d, %s\nmessage: %s\nstderr:\n%s", o.code, document.Status.Outcome, code, end, document.Status.Message, o.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(document.Status.Message+document.Status.Next, text) {
			t.Errorf("the result does not say %q: %s Next: %s", text, document.Status.Message, document.Status.Next)
		}
	}
	return document
}

// site objects that a rollback takes away, by their path.
func (s *rollbackSite) objects() map[string]dynamic.ResourceInterface {
	resource := func(group, version, name string) dynamic.NamespaceableResourceInterface {
		return s.dyn.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: name})
	}
	const rbac = "rbac.authorization.k8s.io"
	return map[string]dynamic.ResourceInterface{
		s.Canary:               resource("", "v1", "pods").Namespace(s.Namespace),
		s.Network:              resource("k8s.cni.cncf.io", "v1", "network-attachment-definitions").Namespace(s.Namespace),
		s.Guard:                resource("", "v1", "configmaps").Namespace(s.Namespace),
		s.DaemonSet.Name:       resource("apps", "v1", "daemonsets").Namespace(s.DaemonSet.Namespace),
		"multus/binding":       resource(rbac, "v1", "clusterrolebindings"),
		"multus/role":          resource(rbac, "v1", "clusterroles"),
		"multus/account":       resource("", "v1", "serviceaccounts").Namespace(s.DaemonSet.Namespace),
		"multus-daemon-config": resource("", "v1", "configmaps").Namespace(s.DaemonSet.Namespace),
		"network-attachment-definitions.k8s.cni.cncf.io": resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
	}
}

// left names the site's objects that are there.
func (s *rollbackSite) left() []string {
	s.t.Helper()
	var names []string
	for key, objects := range s.objects() {
		name, _, _ := strings.Cut(key, "/")
		_, err := objects.Get(s.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			names = append(names, key)
		} else if !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
	}
	slices.Sort(names)
	return names
}

// checkGone checks the end state of a rollback, whoever reached it.
func (s *rollbackSite) checkGone() {
	s.t.Helper()
	if left := s.left(); len(left) > 0 {
		s.t.Errorf("left in the API: %v", left)
	}
	if s.node.ConfPresent() {
		s.t.Error("the Multus conf is in effect")
	}
	if _, there := s.files.read("10-flannel.conflist"); !there {
		s.t.Error("the node's own conf is gone")
	}
	if backups := s.files.backups(); len(backups) != 1 {
		s.t.Errorf("backups: %v, want one", backups)
	}
	s.checkNoPods()
	s.unleased()
}

// checkUntouched checks that nothing was changed, in the API and on the node.
func (s *rollbackSite) checkUntouched() {
	s.t.Helper()
	if left := s.left(); len(left) != len(s.objects()) {
		s.t.Errorf("only these are left: %v", left)
	}
	if !s.node.ConfPresent() {
		s.t.Error("the Multus conf was removed")
	}
	if backups := s.files.backups(); len(backups) > 0 {
		s.t.Errorf("the node was written to: %v", backups)
	}
	s.checkNoPods()
}

// checkNoPods checks that no Pod of ours outlived its command.
func (s *rollbackSite) checkNoPods() {
	s.t.Helper()
	list, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(s.t.Context(), metav1.ListOptions{LabelSelector: rollback.PodLabel})
	check(s.t, err)
	for i := range list.Items {
		s.t.Errorf("Pod %s/%s outlived its command", list.Items[i].Namespace, list.Items[i].Name)
	}
}

// unleased checks that the lock was taken away.
func (s *rollbackSite) unleased() {
	s.t.Helper()
	list, err := s.client.CoordinationV1().Leases(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
	check(s.t, err)
	for i := range list.Items {
		s.t.Errorf("Lease %s is left", list.Items[i].Name)
	}
}

// tried matches what the server was only asked to try. A deletion says so in
// its body.
func tried(a asked) bool { return dryRuns(a) || strings.Contains(string(a.body), `"dryRun"`) }

// mutations are the requests that change something.
func mutations(a asked) bool {
	return a.method != http.MethodGet && !tried(a) && !strings.Contains(a.url.Path, "selfsubjectaccessreviews")
}

// said checks that a text is among the lines on standard error.
func (o outcome) said(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stderr, text) {
			t.Errorf("it does not say %q:\n%s", text, o.stderr)
		}
	}
}

// deletion matches the request by which a step deletes its object.
func (s *rollbackSite) deletion(step v1alpha1.RollbackStep) match {
	s.t.Helper()
	kind, name, found := strings.Cut(step.Object, " ")
	if !found {
		s.t.Fatalf("step %d is about %q, which is no object", step.Number, step.Object)
	}
	return to(http.MethodDelete, "/"+strings.ToLower(kind)+"s/"+name[strings.LastIndex(name, "/")+1:])
}

// stepName names a step's number for a subtest.
func stepName(step v1alpha1.RollbackStep) string {
	subject := step.Object
	if subject == "" {
		subject = step.Node
	}
	return strings.ReplaceAll(fmt.Sprintf("%02d %s %s", step.Number, step.Action, subject), "/", ".")
}

// scriptedScript shortens the type of a Pod's script.
type scriptedScript = scriptednode.Script

func passRunning() scriptedScript { return scriptednode.PassRunning() }

func neverFinishes() scriptedScript { return scriptednode.NeverFinishes() }
