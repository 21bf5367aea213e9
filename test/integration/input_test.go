//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// What is wrong with the command line, the files or the way to the server is
// told in one line with the right exit code, and nothing is changed.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := newSite(t, "input", scriptednode.Options{})
	old := s.createCanary(corev1.PodSucceeded)
	good := string(s.CanaryManifest())
	file := func(content string) []string { return []string{"-f", s.file("canary.yaml", content)} }
	edit := func(from, to string) []string {
		if !strings.Contains(good, from) {
			t.Fatalf("the manifest has no %q", from)
		}
		return file(strings.Replace(good, from, to, 1))
	}
	for _, row := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no such file", []string{"-f", "/nowhere/canary.yaml"}, 2, "/nowhere/canary.yaml"},
		{"empty manifest", file(""), 2, "empty"},
		{"comments only", file("# nothing\n---\n"), 2, "empty"},
		{"no YAML", file("{[:"), 2, "canary.yaml"},
		{"binary", file("\x00\x01\x1b[31m\xff"), 2, "canary.yaml"},
		{"several documents", file(good + "---\n" + good), 2, "2 objects"},
		{"a Deployment", file("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vlan50-canary}\n"), 2, "Deployment vlan50-canary"},
		{"a List of one Pod and more", file("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]\n"), 2, "2 objects"},
		{"another version of Pod", edit("apiVersion: v1", "apiVersion: v2"), 2, "apiVersion v1"},
		{"owner references", edit("  labels:", "  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: u-1}]\n  labels:"), 2, "owned by ReplicaSet x"},
		{"restartPolicy Always", edit("restartPolicy: Never", "restartPolicy: Always"), 2, `restartPolicy is "Always"`},
		{"no restartPolicy", edit("  restartPolicy: Never\n", ""), 2, `restartPolicy is "Always"`},
		{"generateName", edit("name: "+s.Canary, "generateName: "+s.Canary), 2, "fixed name"},
		{"no networks annotation", edit("k8s.v1.cni.cncf.io/networks:", "example.com/networks:"), 2, "k8s.v1.cni.cncf.io/networks"},
		{"empty networks annotation", edit(`'[{"name":"vlan50"`, `'' #`), 2, "k8s.v1.cni.cncf.io/networks"},
		{"broken networks annotation", edit(`"]}]'`, `"]}'`), 2, "networks cannot be read"},
		{"forged network-status", edit("  annotations:", "  annotations:\n    k8s.v1.cni.cncf.io/network-status: '[]'"), 2, "only Multus may write"},
		{"forged old network-status", edit("  annotations:", "  annotations:\n    k8s.v1.cni.cncf.io/networks-status: '[]'"), 2, "only Multus may write"},
		{"unknown field", edit("  restartPolicy:", "  restartPolice: Never\n  restartPolicy:"), 2, "restartPolice"},
		{"wrong type", edit("terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: soon"), 2, "is no valid Pod"},
		{"another canary than the flag names", append(file(good), "--canary", "other"), 2, "give one of them"},
		{"another namespace than -n names", append(file(good), "-n", "elsewhere"), 2, "elsewhere"},
		{"-f and -k", append(file(good), "-k", "."), 2, "-k"},

		{"unknown flag", []string{"--frob"}, 2, "--frob"},
		{"extra argument", []string{"now"}, 2, `unexpected argument "now"`},
		{"timeout without unit", []string{"--timeout", "30"}, 2, "90s"},
		{"negative timeout", []string{"--timeout", "-3s"}, 2, "timeout"},
		{"settle is no duration", []string{"--settle", "long"}, 2, "settle"},
		{"unknown output format", []string{"-o", "xml"}, 2, "xml"},
		{"jsonpath that does not parse", []string{"-o", "jsonpath={.status"}, 2, "unclosed action"},
		{"no attempts", []string{"--attempts", "0"}, 2, "at least one"},
		{"unknown dry run", []string{"--dry-run=maybe"}, 2, "none, client, server"},
		{"unknown colour", []string{"--color", "pink"}, 2, "auto, always, never"},
		{"unknown events", []string{"--events", "xml"}, 2, "json"},
		{"quiet events", []string{"--events", "json", "--quiet"}, 2, "exclude"},
		{"canary is no name", []string{"--canary", "a/b/c"}, 2, "[NAMESPACE/]NAME"},
		{"canary in another namespace than -n", []string{"--canary", "a/b", "-n", "c"}, 2, "-n"},
		{"DaemonSet is no name", []string{"--daemonset", "a/b/c"}, 2, "[NAMESPACE/]NAME"},
		{"no such config file", []string{"--config", "/nowhere/config.yaml"}, 2, "/nowhere/config.yaml"},
		{"config file with an unknown key", []string{"--config", s.file("config.yaml", "canari: x\n")}, 2, "canari"},
		{"no such DaemonSet", []string{"--daemonset", "kube-system/nothing"}, 1, "there is no DaemonSet kube-system/nothing"},
		{"no such context", []string{"--context", "elsewhere"}, 1, "elsewhere"},
		{"unreachable server", []string{"--server", "https://127.0.0.1:1"}, 1, "is the API server up"},
		{"expired credentials", []string{"--token", "expired"}, 1, "nauthorized"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.retest(row.args...).expectError(t, row.code, row.says)
		})
	}
	t.Run("unknown subcommands", func(t *testing.T) {
		for _, args := range [][]string{{"frob"}, {"canary", "frob"}, {"canary", "retset"}} {
			s.run(args...).expectError(t, 2, args[len(args)-1], "--help")
		}
	})
	s.untouched(old)
	if s.lease() != nil {
		t.Error("a lock was taken")
	}
	if now := s.pod(); now.ResourceVersion != old.ResourceVersion {
		t.Error("the canary was changed")
	}
}

// What is wrong with the user's surroundings.
func TestBadSurroundings(t *testing.T) {
	t.Parallel()
	s := newSite(t, "surroundings", scriptednode.Options{})
	old := s.createCanary(corev1.PodSucceeded)
	config, err := s.server.Config()
	check(t, err)
	for _, row := range []struct {
		name string
		set  func(*site)
		code int
		says string
	}{
		{"no kubeconfig", func(s *site) { s.kubeconfig, s.env = "", []string{"HOME=" + t.TempDir()} }, 1, "no cluster is configured"},
		{"kubeconfig that is not there", func(s *site) { s.kubeconfig = "/nowhere/kubeconfig" }, 1, "no cluster is configured"},
		{"kubeconfig that is none", func(s *site) { s.kubeconfig = s.file("kubeconfig", "\x1b[31m: [") }, 1, "kubeconfig"},
		{"unreachable server in the kubeconfig", func(s *site) {
			s.kubeconfig = s.writeKubeconfig(&clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}, &clientcmdapi.AuthInfo{Token: "x"})
		}, 1, "is the API server up"},
		{"server of another authority", func(s *site) {
			s.kubeconfig = s.writeKubeconfig(&clientcmdapi.Cluster{Server: config.Host}, &clientcmdapi.AuthInfo{Token: config.BearerToken})
		}, 1, "certificate"},
		{"variable that is no duration", func(s *site) { s.env = []string{"VLAN50_TIMEOUT=soon"} }, 2, "soon"},
		{"state folder that is a file", func(s *site) { s.env = []string{"VLAN50_STATE_DIR=" + s.manifest} }, 1, "VLAN50_STATE_DIR"},
		{"state folder that may not be made", func(s *site) { s.env = []string{"VLAN50_STATE_DIR=/proc/nowhere"} }, 1, "VLAN50_STATE_DIR"},
	} {
		t.Run(row.name, func(t *testing.T) {
			user := *s
			row.set(&user)
			user.retest().expectError(t, row.code, row.says)
		})
	}
	s.untouched(old)
	if s.lease() != nil {
		t.Error("a lock was taken")
	}
}

// The forms in which a manifest may be given.
func TestManifestForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, "forms", scriptednode.Options{})
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "canary.yaml"), s.CanaryManifest(), 0o600))
	kustomize := t.TempDir()
	check(t, os.WriteFile(filepath.Join(kustomize, "canary.yaml"), s.CanaryManifest(), 0o600))
	check(t, os.WriteFile(filepath.Join(kustomize, "kustomization.yaml"), []byte("resources: [canary.yaml]\ncommonAnnotations: {built: by-kustomize}\n"), 0o600))
	withoutNamespace := strings.Replace(string(s.CanaryManifest()), "  namespace: "+s.Namespace+"\n", "", 1)

	for _, row := range []struct {
		name  string
		args  []string
		stdin string
	}{
		{"folder", []string{"-f", folder}, ""},
		{"standard input", []string{"-f", "-"}, string(s.CanaryManifest())},
		{"kustomization", []string{"-k", kustomize}, ""},
		{"no namespace: that of the canary's setting", []string{"-f", s.file("c.yaml", withoutNamespace)}, ""},
		{"no namespace: -n", []string{"-f", s.file("c.yaml", withoutNamespace), "-n", s.Namespace}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.stdin = row.stdin
			s.retest(row.args...).expect(t, 0, "pass", "ok")
		})
	}
}
