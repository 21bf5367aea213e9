//go:build lab && linux

package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// statusScene is a state of the real site, and what status must say of it.
type statusScene struct {
	name string
	// fails: the first retest is not to pass.
	fails   string
	arrange func(context.Context, *testing.T, *lab.Lab)
	// args are of status.
	args []string

	state v1alpha1.State
	code  int
	// says are parts of the screen.
	says []string
}

// TestStatus looks at each state with both forms of the output. Every scene
// begins with a retest on the reference site.
func TestStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("the short set has one rollback, and no status")
	}
	for _, s := range []statusScene{
		{name: "healthy", state: v1alpha1.StateFreshPass, code: 0, says: []string{"PROVEN", "FRESH", "would be attached", node.CanaryAddress}},
		{name: "no canary", arrange: deleteCanary, state: v1alpha1.StateNoCanary, code: 4, says: []string{"NOT PROVEN", "there is no canary", "canary retest -f"}},
		{name: "stale after a DaemonSet restart", arrange: restartMultus, state: v1alpha1.StateStale, code: 4, says: []string{"NOT PROVEN", "STALE", "the DaemonSet changed", "daemon pod was replaced", "would be attached"}},
		{name: "stale after a NAD edit", arrange: editNetwork, state: v1alpha1.StateStale, code: 4, says: []string{"NOT PROVEN", "STALE", "NetworkAttachmentDefinition downloads/vlan50 changed"}},
		{name: "Failed canary with Argo Synced", fails: "duplicate-address", arrange: applicationSynced, state: v1alpha1.StateFreshFail, code: 3, says: []string{"FAILED", "duplicate-address", "Synced", "nothing about the network"}},
		{name: "canary Terminating", arrange: holdTerminating, state: v1alpha1.StateStale, code: 4, says: []string{"NOT PROVEN", "Terminating", "is being deleted"}},
		{name: "two Pods asking for one address", arrange: addRival, state: v1alpha1.StateConflict, code: 4, says: []string{"NOT PROVEN", "OVERLAP", "downloads/rival"}},
		{name: "daemon crash-looping", arrange: crashDaemon, state: v1alpha1.StateStale, code: 4, says: []string{"NOT PROVEN", "crash-loops", "would not be attached"}},
		{name: "zero desired", arrange: noNodeWanted, state: v1alpha1.StateStale, code: 4, says: []string{"NOT PROVEN", "wants no Pod on any node", "would not be attached"}},
		{name: "kube-system forbidden", arrange: allowOnlooker, args: []string{"--as", onlooker}, state: v1alpha1.StateUnknown, code: 4, says: []string{"NOT PROVEN", "UNKNOWN", "right missing: get daemonsets.apps in namespace kube-system"}},
	} {
		t.Run(s.name, s.run)
	}
}

func (s statusScene) run(t *testing.T) {
	l := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	defer cancel()
	var r result
	t.TempDir() // its cleanup, which takes the evidence away, comes after the next one
	t.Cleanup(func() { scenario{}.putBack(t, l, r) })
	if s.fails != "" {
		if err := l.HoldAddress(ctx); err != nil {
			t.Fatal(err)
		}
		r = retest(ctx, t, l, "--filename", l.CanaryManifest())
		r.expect(t, "fail", s.fails)
	} else {
		r = retest(ctx, t, l, "--filename", l.CanaryManifest())
		r.expect(t, "pass", "ok")
	}
	if s.arrange != nil {
		s.arrange(ctx, t, l)
	}
	stdout, stderr, code := runTool(ctx, t, l, t.TempDir(), append([]string{"status", "--exit-code", "--output", "json"}, s.args...)...)
	var document v1alpha1.SiteStatus
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatalf("status did not print one JSON document: %v\n%s%s", err, stdout, stderr)
	}
	if document.Status.State != s.state || code != s.code {
		t.Errorf("state %s and exit code %d, want %s and %d", document.Status.State, code, s.state, s.code)
	}
	screen, stderr, code := runTool(ctx, t, l, t.TempDir(), append([]string{"status"}, s.args...)...)
	if code != 0 {
		t.Errorf("plain status gave exit code %d: %s", code, stderr)
	}
	words := strings.Join(strings.Fields(screen), " ")
	for _, says := range s.says {
		if !strings.Contains(words, says) {
			t.Errorf("the screen does not say %q", says)
		}
	}
	t.Logf("%s", screen)
}

// kubectl runs the lab's kubectl, which must work.
func kubectl(ctx context.Context, t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	if _, err := l.Kubectl(ctx, args...); err != nil {
		t.Fatal(err)
	}
}

// apply writes a manifest and applies it.
func apply(ctx context.Context, t *testing.T, l *lab.Lab, manifest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, l, "apply", "--filename", path)
}

// afterwards runs kubectl once the test is over; what it has to remove may be
// gone already.
func afterwards(t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := l.Kubectl(ctx, args...); err != nil {
			t.Errorf("putting the site back: %v", err)
		}
	})
}

func deleteCanary(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := l.DeleteCanary(ctx); err != nil {
		t.Fatal(err)
	}
}

func restartMultus(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	restart(t, l)
	if out, stderr, code := runTool(ctx, t, l, t.TempDir(), "status", "--until", "ready", "--timeout", "2m"); code != 0 {
		t.Fatalf("status --until ready gave exit code %d: %s%s", code, out, stderr)
	}
}

func editNetwork(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	change := changeNetwork(`{"cniVersion": "0.3.1", "name": "vlan50", "type": "macvlan", "master": "` + node.VLANInterface + `", "mode": "private", "capabilities": {"ips": true}, "ipam": {"type": "static"}}`)
	if err := change(ctx, l); err != nil {
		t.Fatal(err)
	}
}

// applicationSynced installs Argo CD's kind, without Argo CD, and an Application
// that owns the canary and calls it Synced.
func applicationSynced(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	afterwards(t, l, "delete", "customresourcedefinition", "applications.argoproj.io", "--ignore-not-found", "--wait")
	apply(ctx, t, l, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applications.argoproj.io}
spec:
  group: argoproj.io
  scope: Namespaced
  names: {plural: applications, singular: application, kind: Application}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`)
	kubectl(ctx, t, l, "wait", "--for=condition=Established", "--timeout=1m", "customresourcedefinition/applications.argoproj.io")
	apply(ctx, t, l, fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: vlan50, namespace: %[1]s}
spec:
  syncPolicy: {automated: {selfHeal: true}}
status:
  sync: {status: Synced}
  health: {status: Degraded}
  resources:
  - {kind: Pod, namespace: %[1]s, name: %[2]s}
`, lab.Namespace, lab.CanaryName))
}

// holdTerminating deletes the canary while a finalizer holds it.
func holdTerminating(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	patch := func(finalizers string) []string {
		return []string{
			"patch", "pod", "--namespace", lab.Namespace, lab.CanaryName, "--type", "merge",
			"--patch", `{"metadata":{"finalizers":` + finalizers + `}}`,
		}
	}
	kubectl(ctx, t, l, patch(`["vlan50.dev/held-by-a-test"]`)...)
	afterwards(t, l, patch("null")...)
	kubectl(ctx, t, l, "delete", "pod", "--namespace", lab.Namespace, lab.CanaryName, "--wait=false")
}

// addRival creates a second Pod that asks for the canary's address. It never
// gets a node, so that nobody holds the address twice.
func addRival(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	pod := canaryPod(t, l)
	pod.Name, pod.Spec.NodeSelector = "rival", map[string]string{corev1.LabelHostname: "node-2"}
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.Kube.CoreV1().Pods(lab.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	afterwards(t, l, "delete", "pod", "--namespace", lab.Namespace, pod.Name, "--wait")
}

// crashDaemon gives the daemon a configuration that it refuses, and waits until
// it has crashed twice.
func crashDaemon(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	err := changeSite(func(site *lab.Site) {
		site.DaemonSet.Spec.Template.Spec.Containers[0].Args = []string{"-config=/nowhere/daemon-config.json"}
	})(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := l.Clients()
	if err != nil {
		t.Fatal(err)
	}
	for {
		pods, err := clients.Kube.CoreV1().Pods(lab.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "name=multus"})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount >= 2 && c.State.Waiting != nil {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			t.Fatal("the daemon does not crash")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func noNodeWanted(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := changeSite(noNode)(ctx, l); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, l, "wait", "--for=delete", "pod", "--namespace", lab.SystemNamespace, "--selector", "name=multus", "--timeout", "1m")
}

// onlooker sees the canary's namespace and nothing else.
const onlooker = "onlooker"

func allowOnlooker(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	apply(ctx, t, l, fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[2]s, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [pods, events], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
- {apiGroups: [k8s.cni.cncf.io], resources: [network-attachment-definitions], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[2]s, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[2]s}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}
`, lab.Namespace, onlooker))
	afterwards(t, l, "delete", "role,rolebinding", "--namespace", lab.Namespace, onlooker)
}
