//go:build integration

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// everything is what status reads; each row of the test takes one right away.
func everything(s *statusSite) []statusGrant {
	return []statusGrant{
		{s.Namespace, []rbacv1.PolicyRule{
			statusRule("", "events", "list"), statusRule("", "configmaps", "get"),
		}},
		{s.DaemonSet.Namespace, []rbacv1.PolicyRule{
			statusRule("apps", "daemonsets", "get"), statusRule("apps", "controllerrevisions", "list"), statusRule("", "pods/log", "get"),
		}},
		{"", []rbacv1.PolicyRule{
			statusRule("", "pods", "get", "list"), statusRule("", "nodes", "get"),
			statusRule("k8s.cni.cncf.io", "network-attachment-definitions", "get"),
			statusRule("apiextensions.k8s.io", "customresourcedefinitions", "get"), statusRule("argoproj.io", "applications", "list"),
		}},
	}
}

// TestStatusWithPartialRights: one right less makes one gap, which names it; the
// rest stands.
func TestStatusWithPartialRights(t *testing.T) {
	t.Parallel()
	installApplications(t)
	for resource, row := range map[string]struct {
		section v1alpha1.Section
		right   string
		state   v1alpha1.State
	}{
		"events":                         {v1alpha1.SectionCanary, "list events in namespace {canary}", v1alpha1.StateFreshPass},
		"configmaps":                     {v1alpha1.SectionFreshness, "get configmaps in namespace {canary}", v1alpha1.StateUnknown},
		"network-attachment-definitions": {v1alpha1.SectionNetwork, "get network-attachment-definitions.k8s.cni.cncf.io in namespace {canary}", v1alpha1.StateUnknown},
		"daemonsets":                     {v1alpha1.SectionMultus, "get daemonsets.apps in namespace kube-system", v1alpha1.StateUnknown},
		"controllerrevisions":            {v1alpha1.SectionMultus, "list controllerrevisions.apps in namespace kube-system", v1alpha1.StateUnknown},
		"pods/log":                       {v1alpha1.SectionMultus, "get pods/log in namespace kube-system", v1alpha1.StateFreshPass},
		"nodes":                          {v1alpha1.SectionFreshness, "get nodes in all namespaces", v1alpha1.StateUnknown},
		"customresourcedefinitions":      {v1alpha1.SectionNetwork, "get customresourcedefinitions.apiextensions.k8s.io in all namespaces", v1alpha1.StateFreshPass},
		"applications":                   {v1alpha1.SectionArgoCD, "list applications.argoproj.io in all namespaces", v1alpha1.StateFreshPass},
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			s := newStatusSite(t, "no-"+strings.NewReplacer("/", "-", "network-attachment-definitions", "nad").Replace(resource), scriptednode.Options{})
			statusPassed(s)
			grants := everything(s)
			for i := range grants {
				grants[i].rules = slices.DeleteFunc(grants[i].rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == resource })
			}
			s.actAs("partial", grants)
			out := s.run("status", "-o", "json")
			document := out.status(t)
			want := v1alpha1.Unreadable{Section: row.section, Text: "right missing: " + strings.ReplaceAll(row.right, "{canary}", s.Namespace)}
			for _, gap := range document.Status.Unreadable {
				if gap.Section != want.Section && gap.Section != v1alpha1.SectionAddresses {
					t.Errorf("%s should be readable: %s", gap.Section, gap.Text)
				}
			}
			if !slices.ContainsFunc(document.Status.Unreadable, func(g v1alpha1.Unreadable) bool {
				return g.Section == want.Section && strings.Contains(g.Text, want.Text)
			}) {
				t.Errorf("got %+v, want a gap in %s with %q", document.Status.Unreadable, want.Section, want.Text)
			}
			if out.code != 0 || document.Status.State != row.state {
				t.Errorf("got exit code %d and state %s (%q), want 0 and %s", out.code, document.Status.State, document.Status.Canaries[0].Changes, row.state)
			}
		})
	}
}

// TestStatusWithThePublishedRights: config/rbac/status.yaml is enough for status,
// also when it watches, and for the judge.
func TestStatusWithThePublishedRights(t *testing.T) {
	t.Parallel()
	installApplications(t)
	s := newStatusSite(t, "published", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.GuardFailed(1, "no reply"), scriptednode.Pass()}})
	s.retest("-f", s.manifest).expect(t, 3, "fail", "guard-failed")
	administrator := s.kubeconfig
	s.asUser("onlooker", s.publishedIn("status.yaml"))
	onlooker := s.kubeconfig
	for _, state := range []struct {
		code           int
		verdict, cause string
	}{{3, "fail", "guard-failed"}, {0, "pass", "ok"}} {
		out := s.run("status", "-o", "json")
		if document := out.status(t); document.Status.Canaries[0].Verdict != state.verdict || len(document.Status.Unreadable) > 0 || out.stderr != "" {
			t.Errorf("verdict %s, gaps %+v, stderr %q", document.Status.Canaries[0].Verdict, document.Status.Unreadable, out.stderr)
		}
		s.run("canary", "judge", "-o", "json").expect(t, state.code, state.verdict, state.cause)
		s.kubeconfig = administrator
		s.retest().expect(t, 0, "pass", "ok")
		s.kubeconfig = onlooker
	}
	if out := s.run("status", "--until", "fresh-pass", "--timeout", "20s"); out.code != 0 || out.stderr != "" {
		t.Errorf("watching: exit code %d, %q", out.code, out.stderr)
	}
}

// TestStatusWithoutTheCanarysLogs: what a failed guard said may be unknown, and
// then the right that is missing is named.
func TestStatusWithoutTheCanarysLogs(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "no-guard-log", scriptednode.Options{Plan: scriptednode.Plan{scriptednode.GuardFailed(1, "no reply")}})
	s.retest("-f", s.manifest).expect(t, 3, "fail", "guard-failed")
	unread := func() []v1alpha1.Unreadable {
		return slices.DeleteFunc(s.run("status", "-o", "json").status(t).Status.Unreadable, func(g v1alpha1.Unreadable) bool {
			return g.Section != v1alpha1.SectionCanary
		})
	}
	s.actAs("partial", everything(s))
	want := "what the containers of Pod " + s.Namespace + "/" + s.Canary + " said cannot be read (right missing: get pods/log in namespace " + s.Namespace + ")"
	if gaps := unread(); len(gaps) != 1 || gaps[0].Text != want {
		t.Errorf("got %+v, want %q", gaps, want)
	}
	check(t, s.server.WriteKubeconfig(s.kubeconfig, "")) // the administrator
	if gaps := unread(); len(gaps) > 0 {
		t.Errorf("with all rights: %+v", gaps)
	}
}

// TestStatusWithoutKinds: no Multus, no NetworkAttachmentDefinitions, no Argo CD:
// there is still a status.
func TestStatusWithoutKinds(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), filepath.Join(t.TempDir(), "server"), os.Stderr)
	check(t, err)
	t.Cleanup(server.Stop)
	s := &site{t: t, server: server, Site: scriptednode.Reference(), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), state: t.TempDir()}
	check(t, server.WriteKubeconfig(s.kubeconfig, ""))
	document := s.run("status", "-o", "json").status(t)
	if document.Status.State != v1alpha1.StateNoCanary || len(document.Status.Unreadable) > 0 {
		t.Errorf("got %s, gaps %+v", document.Status.State, document.Status.Unreadable)
	}
	text := s.run("status").stdout
	for _, want := range []string{
		"network-attachment-definitions.k8s.cni.cncf.io is not installed", "is not installed: there is no kind Application",
		"there is no DaemonSet kube-system/kube-multus-ds", "there is no Pod downloads/vlan50-canary",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen does not say %q:\n%s", want, text)
		}
	}
}

func TestStatusWithoutServer(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "away", scriptednode.Options{})
	s.run("status", "--server", "https://127.0.0.1:1").expectError(t, 1, "is the API server up")
}

// TestStatusNeverWrites reads the audit log: every request of status, whatever
// its form, only reads.
func TestStatusNeverWrites(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "audit", scriptednode.Options{})
	statusPassed(s)
	s.actAs("auditor", []statusGrant{{"", []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}})
	for _, args := range [][]string{
		{"status"}, {"status", "-o", "wide"}, {"status", "--exit-code", "-o", "yaml"}, {"status", "--until", "fresh-pass"},
	} {
		if out := s.run(args...); out.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, out.code, out.stderr)
		}
	}
	requests := s.requestsOf("auditor-" + s.Namespace)
	if len(requests) == 0 {
		t.Fatal("the audit log knows nothing of status")
	}
	for _, r := range requests {
		if !slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			t.Errorf("status did: %s %s", r.Verb, r.RequestURI)
		}
		if strings.Contains(r.RequestURI, "/api?") || r.RequestURI == "/api" || r.RequestURI == "/apis" {
			t.Errorf("status asked for discovery: %s", r.RequestURI)
		}
	}
}

type auditEntry struct {
	Verb             string                     `json:"verb"`
	RequestURI       string                     `json:"requestURI"`
	ImpersonatedUser *struct{ Username string } `json:"impersonatedUser"`
}

// requestsOf are the requests of one user so far.
func (s *statusSite) requestsOf(user string) []auditEntry {
	s.t.Helper()
	file, err := os.Open(s.server.AuditLog())
	check(s.t, err)
	defer file.Close()
	var entries []auditEntry
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry auditEntry
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.ImpersonatedUser != nil && entry.ImpersonatedUser.Username == user {
			entries = append(entries, entry)
		}
	}
	check(s.t, lines.Err())
	return entries
}

// TestStatusOfACopiedRecord: annotations that were copied to a new Pod prove
// nothing about it.
func TestStatusOfACopiedRecord(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "copied", scriptednode.Options{})
	statusPassed(s)
	noted := s.pod().Annotations
	s.remove()
	eventually(t, "the old canary is gone", func() bool { return s.pod() == nil })
	s.createCanary(corev1.PodSucceeded)
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{}}}
	for key, value := range noted {
		if strings.HasPrefix(key, canary.Prefix) {
			patch["metadata"].(map[string]any)["annotations"].(map[string]string)[key] = value
		}
	}
	body, err := json.Marshal(patch)
	check(t, err)
	_, err = s.client.CoreV1().Pods(s.Namespace).Patch(t.Context(), s.Canary, types.MergePatchType, body, metav1.PatchOptions{})
	check(t, err)
	c := s.run("status", "-o", "json").status(t).Status.Canaries[0]
	if c.Freshness != v1alpha1.FreshnessUnknown || c.Verdict != "pass" || !strings.Contains(c.Changes[0], "were copied") {
		t.Errorf("got %s, %s, %q", c.Freshness, c.Verdict, c.Changes)
	}
}

// TestStatusOfSeveralCanaries: labelled ones stand beside the named one. Not
// parallel: a labelled canary is on the screen of every site.
func TestStatusOfSeveralCanaries(t *testing.T) {
	s := newStatusSite(t, "several", scriptednode.Options{}, func(s *scriptednode.Site) {
		s.Peers = []scriptednode.Peer{{Name: s.Node + "-b", Ready: true}}
	})
	statusPassed(s)
	second, err := s.CanaryPod()
	check(t, err)
	second.Name = s.Canary + "-b"
	second.Labels["vlan50.dev/canary"] = "true"
	second.Annotations["k8s.v1.cni.cncf.io/networks"] = strings.ReplaceAll(second.Annotations["k8s.v1.cni.cncf.io/networks"], "192.0.2.100", "192.0.2.101")
	_, err = s.client.CoreV1().Pods(s.Namespace).Create(t.Context(), second, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		// At once: the node ends with this test, and would leave it terminating.
		check(t, s.client.CoreV1().Pods(s.Namespace).Delete(context.WithoutCancel(t.Context()), second.Name, *metav1.NewDeleteOptions(0)))
	})
	document := s.run("status", "-o", "json").status(t)
	if len(document.Status.Canaries) != 2 || document.Status.Canaries[0].State != v1alpha1.StateFreshPass || document.Status.Canaries[1].Name != second.Name {
		t.Errorf("got %+v", document.Status.Canaries)
	}
	if len(document.Status.Multus.Nodes) != 2 || len(document.Status.Addresses.Pods) != 2 {
		t.Errorf("got %d nodes and %d Pods on the network, want 2 and 2", len(document.Status.Multus.Nodes), len(document.Status.Addresses.Pods))
	}
	text := s.run("status").stdout
	for _, want := range []string{"Canary  2 of them", s.Node + "-b", s.Namespace + "/" + second.Name} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen does not say %q:\n%s", want, text)
		}
	}
	checkScreen(t, text)
}

// TestStatusFormats: each form of kubectl's printers.
func TestStatusFormats(t *testing.T) {
	t.Parallel()
	s := newStatusSite(t, "formats", scriptednode.Options{})
	statusPassed(s)
	for format, want := range map[string]string{
		"name":                          "sitestatus.vlan50.dev/vlan50-canary\n",
		"jsonpath={.status.state}":      "fresh-pass",
		"go-template={{.status.ready}}": "true",
		"yaml":                          "kind: SiteStatus\n",
		"wide":                          "NETWORK",
	} {
		if out := s.run("status", "-o", format); out.code != 0 || !strings.Contains(out.stdout, want) {
			t.Errorf("-o %s: exit code %d, want %q\n%s%s", format, out.code, want, out.stdout, out.stderr)
		}
	}
	s.run("status", "-o", "nonsense").expectError(t, 2)
	s.run("status", "--until", "nonsense").expectError(t, 2, "none of fresh-pass, ready")
	s.run("status", "now").expectError(t, 2, "unexpected argument")
}
