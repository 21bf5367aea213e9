//go:build integration

package integration

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/typed/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// within is how long a test waits for what must come, far above what a busy
// machine needs.
const within = time.Minute

// site is one canary's world: a namespace, a node and a Multus DaemonSet of its
// own on the API server, and the files of one user.
type site struct {
	t      *testing.T
	server *apiserver.Server
	client kubernetes.Interface
	scriptednode.Site
	node *scriptednode.Node

	manifest   string // path of the canary's manifest
	kubeconfig string
	state      string   // the user's state folder
	env        []string // further variables of the user
	stdin      string
}

// newSite applies a site named after the test and starts its node.
func newSite(t *testing.T, name string, options scriptednode.Options, changes ...func(*scriptednode.Site)) *site {
	t.Helper()
	return siteOn(t, plane.server, name, options, changes...)
}

func siteOn(t *testing.T, server *apiserver.Server, name string, options scriptednode.Options, changes ...func(*scriptednode.Site)) *site {
	t.Helper()
	config, err := server.Config()
	check(t, err)
	s := &site{t: t, server: server, Site: scriptednode.Named(name), client: kubernetes.NewForConfigOrDie(config)}
	// All sites use one address: a parent of its own keeps each on a wire of its own.
	s.Master = name + ".50"
	for _, change := range changes {
		change(&s.Site)
	}
	check(t, s.Apply(t.Context(), config))
	s.node, err = scriptednode.New(config, s.Site, options)
	check(t, err)
	check(t, s.node.Start(t.Context()))
	t.Cleanup(s.stop)

	dir := t.TempDir()
	s.state = filepath.Join(dir, "state")
	s.manifest = s.file("canary.yaml", string(s.CanaryManifest()))
	s.kubeconfig = filepath.Join(dir, "kubeconfig")
	check(t, server.WriteKubeconfig(s.kubeconfig, ""))
	return s
}

// stop ends the node, checks the rule that never bends, and shows what the node
// did where the test failed.
func (s *site) stop() {
	s.node.Stop()
	if err := s.node.Err(); err != nil {
		s.t.Error(err)
	}
	if overlaps := s.node.Journal().Overlaps(); len(overlaps) > 0 {
		s.t.Errorf("two Pods held one address at once: %+v", overlaps)
	}
	if s.t.Failed() {
		for _, entry := range s.node.Journal() {
			s.t.Log(entry)
		}
	}
}

// file writes a file of the test's own and gives its path.
func (s *site) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	check(s.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// savedManifest is the one manifest in the user's state folder.
func (s *site) savedManifest() string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.state, "*", s.Namespace, s.Canary, "manifest.yaml"))
	check(s.t, err)
	if len(found) != 1 {
		s.t.Fatalf("%d saved manifests: %v", len(found), found)
	}
	return found[0]
}

// kubectlDryRun lets kubectl, where it is installed, try a manifest on the server.
func kubectlDryRun(s *site, path string) (string, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		s.t.Skip("kubectl is not installed")
	}
	name := strings.ReplaceAll(s.Canary, "canary", "tried")
	data, err := os.ReadFile(path)
	check(s.t, err)
	copied := s.file("tried.yaml", strings.Replace(string(data), "\n  name: "+s.Canary+"\n", "\n  name: "+name+"\n", 1))
	out, err := exec.CommandContext(s.t.Context(), kubectl, "--kubeconfig", s.kubeconfig, "create", "--dry-run=server", "-f", copied).CombinedOutput()
	return string(out), err
}

// pod is the canary that is there, nil where there is none.
func (s *site) pod() *corev1.Pod {
	s.t.Helper()
	pod, err := s.client.CoreV1().Pods(s.Namespace).Get(s.t.Context(), s.Canary, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(s.t, err)
	return pod
}

// gone waits until a Pod of the site is no longer there.
func (s *site) gone(name string) {
	s.t.Helper()
	eventually(s.t, "Pod "+name+" is gone", func() bool {
		_, err := s.client.CoreV1().Pods(s.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// removeCanary deletes the canary, if it is there, as a user without the tool
// would.
func (s *site) removeCanary() {
	s.t.Helper()
	err := s.client.CoreV1().Pods(s.Namespace).Delete(s.t.Context(), s.Canary, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		check(s.t, err)
	}
	s.gone(s.Canary)
}

// networks are the NetworkAttachmentDefinitions of the site's namespace.
func (s *site) networks() nadclient.NetworkAttachmentDefinitionInterface {
	s.t.Helper()
	config, err := s.server.Config()
	check(s.t, err)
	client, err := nadclient.NewForConfig(config)
	check(s.t, err)
	return client.NetworkAttachmentDefinitions(s.Namespace)
}

// daemonPod is the newest Pod of the site's DaemonSet.
func (s *site) daemonPod() *corev1.Pod {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods(s.DaemonSet.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "site=" + s.Labels["site"]})
	check(s.t, err)
	if len(pods.Items) == 0 {
		s.t.Fatal("there is no daemon Pod")
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest
}

// createCanary creates the canary as a user without the tool would, and waits
// until its phase is one of the given.
func (s *site) createCanary(phases ...corev1.PodPhase) *corev1.Pod {
	s.t.Helper()
	pod, err := s.CanaryPod()
	check(s.t, err)
	_, err = s.client.CoreV1().Pods(s.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	check(s.t, err)
	eventually(s.t, "the canary gets a phase", func() bool {
		pod = s.pod()
		for _, phase := range phases {
			if pod != nil && pod.Status.Phase == phase {
				return true
			}
		}
		return len(phases) == 0
	})
	return pod
}

// taken waits until the node has taken up a Pod: from then on it also ends it.
func (s *site) taken(uid types.UID) {
	s.t.Helper()
	eventually(s.t, "the node has taken up UID "+string(uid), func() bool {
		return slices.ContainsFunc(s.node.Journal().Of(scriptednode.PodAlive), func(e scriptednode.Entry) bool { return e.UID == uid })
	})
}

// plain are the UIDs of canaries whose sandbox was made without Multus.
func (s *site) plain() []types.UID {
	var uids []types.UID
	for _, entry := range s.node.Journal().Of(scriptednode.SandboxPlain) {
		uids = append(uids, entry.UID)
	}
	return uids
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a state that must come. It only bounds a wait: no test
// passes because of the time it takes.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), within, errors.New("it did not come within "+within.String()))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v", what, context.Cause(ctx))
		}
	}
}

// quiet is for what a test breaks on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
