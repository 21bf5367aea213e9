package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

func diffDocuments(a, b *v1alpha1.SiteStatus) string { return cmp.Diff(a, b) }

// user is another Pod on the network: what it asks for, and what Multus says
// it has.
func user(name, networks, held string, phase corev1.PodPhase) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "media", Name: name, UID: types.UID(name),
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": networks},
		},
		Spec:   corev1.PodSpec{NodeName: "node-b"},
		Status: corev1.PodStatus{Phase: phase},
	}
	if held != "" {
		pod.Annotations["k8s.v1.cni.cncf.io/network-status"] = `[{"name":"` + network + `","interface":"net1","ips":["` + held + `"],"dns":{}}]`
	}
	return pod
}

// inPlace is a Pod whose primary network is replaced.
func inPlace(name, network string) corev1.Pod {
	pod := user(name, "", "", corev1.PodRunning)
	pod.Annotations = map[string]string{
		"v1.multus-cni.io/default-network":  network,
		"k8s.v1.cni.cncf.io/network-status": `[{"name":"downloads/vlan50","interface":"eth0","ips":["192.0.2.100"],"default":true,"dns":{}}]`,
	}
	return pod
}

const asksFor100 = `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`

func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		canary func(*corev1.Pod) // nil: it has finished
		other  corev1.Pod
		// marks are those of the canary and the other Pod.
		marks  string
		reason string // of the other Pod
		state  v1alpha1.State
	}{
		"another address": {
			running, user("proxy", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.101/24"]}]`, "192.0.2.101", corev1.PodRunning),
			"ok ok", "", v1alpha1.StateFreshPass,
		},
		"both hold it": {
			running, user("proxy", asksFor100, "192.0.2.100", corev1.PodRunning),
			"bad bad", "CONFLICT: canary downloads/vlan50-canary holds 192.0.2.100 as well", v1alpha1.StateConflict,
		},
		"one holds it, the other asks": {
			running, user("proxy", asksFor100, "", corev1.PodPending),
			"bad bad", "OVERLAP: canary downloads/vlan50-canary holds 192.0.2.100 already", v1alpha1.StateConflict,
		},
		"the canary has finished and holds nothing": {
			nil, user("proxy", asksFor100, "192.0.2.100", corev1.PodRunning),
			"warn ok", "", v1alpha1.StateFreshPass,
		},
		"the other one has finished": {
			running, user("job", asksFor100, "192.0.2.100", corev1.PodSucceeded),
			"ok none", "", v1alpha1.StateFreshPass,
		},
		"IPv4 written as IPv6": {
			running, user("proxy", `[{"name":"vlan50","namespace":"downloads","ips":["::ffff:192.0.2.100/120"]}]`, "", corev1.PodPending),
			"bad bad", "OVERLAP", v1alpha1.StateConflict,
		},
		"another network on the same wire": {
			running, user("proxy", `[{"name":"other","namespace":"media","ips":["192.0.2.100/24"]}]`, "", corev1.PodPending),
			"bad bad", "OVERLAP", v1alpha1.StateConflict,
		},
		"in the place of its primary network": {
			running, inPlace("proxy", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.100/24"]}]`),
			"bad bad", "CONFLICT: canary downloads/vlan50-canary holds 192.0.2.100 as well", v1alpha1.StateConflict,
		},
		"asks, and has nothing yet": {
			running, user("proxy", `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.7/24"]}]`, "", corev1.PodPending),
			"ok unknown", "holds none that Multus tells of", v1alpha1.StateFreshPass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			if row.canary != nil {
				w.change(row.canary)
			}
			w.record("pass", "ok")
			w.OtherNetworks[types.NamespacedName{Namespace: "media", Name: "other"}] = multus.NetConf{Type: "macvlan", Master: "enp1s0.50"}
			w.Pods = append(w.Pods, row.other)
			s := Summarize(w.Data, now(), Settings{}).Status
			if len(s.Addresses.Pods) != 2 || !s.Addresses.Pods[0].Canary {
				t.Fatalf("want the canary, then the other Pod: %+v", s.Addresses.Pods)
			}
			if got := string(s.Addresses.Pods[0].Mark) + " " + string(s.Addresses.Pods[1].Mark); got != row.marks {
				t.Errorf("marks %q, want %q", got, row.marks)
			}
			if got := s.Addresses.Pods[1].Reason; !strings.Contains(got, row.reason) || (row.reason == "") != (got == "") {
				t.Errorf("reason %q, want %q", got, row.reason)
			}
			if s.State != row.state {
				t.Errorf("state %s, want %s", s.State, row.state)
			}
			if row.state == v1alpha1.StateConflict && s.Next.Command != "kubectl describe pod -n media "+row.other.Name {
				t.Errorf("next is %q", s.Next.Command)
			}
		})
	}
}

// The next step names the Pod that is in the canary's way, and no bystander.
func TestWhoIsInTheWay(t *testing.T) {
	t.Parallel()
	const asksFor9 = `[{"name":"vlan50","namespace":"downloads","ips":["192.0.2.9/24"]}]`
	bystanders := []corev1.Pod{user("a", asksFor9, "192.0.2.9", corev1.PodRunning), user("b", asksFor9, "192.0.2.9", corev1.PodRunning)}
	w := healthy(t)
	w.change(running)
	w.record("pass", "ok")
	w.Pods = append(w.Pods, append(bystanders, user("z", asksFor100, "", corev1.PodPending))...)
	if s := Summarize(w.Data, now(), Settings{}).Status; s.State != v1alpha1.StateConflict || s.Next.Command != "kubectl describe pod -n media z" {
		t.Errorf("got %s, next %q", s.State, s.Next.Command)
	}
	// A canary that has ended and is stale: the retest that is due would be refused.
	w = healthy(t)
	w.record("pass", "ok")
	w.evidence().Networks[0].Generation = 2
	w.Pods = append(w.Pods, user("done", asksFor100, "", corev1.PodSucceeded), user("z", asksFor100, "", corev1.PodPending))
	if s := Summarize(w.Data, now(), Settings{}).Status; s.State != v1alpha1.StateStale || s.Next.Command != "kubectl describe pod -n media z" {
		t.Errorf("got %s, next %q", s.State, s.Next.Command)
	}
}

// TestSearchThatIsNotComplete: what was not searched is never called free.
func TestSearchThatIsNotComplete(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.Search = Search{Namespace: "downloads", Pods: 3}
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.Addresses.Lines, "search", v1alpha1.MarkUnknown, "in namespace downloads alone")
	w.Search = Search{Failed: true}
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.Addresses.Lines, "search", v1alpha1.MarkUnknown, "not known")
	const limited = "as far as the networks can be read, no address is claimed twice"
	w = healthy(t)
	w.Search.Blind = true
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.Addresses.Lines, "search", v1alpha1.MarkUnknown, limited)
	w = healthy(t)
	w.Networks[0].Definition = nil
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.Addresses.Lines, "search", v1alpha1.MarkUnknown, limited)
}

func TestArgoCD(t *testing.T) {
	t.Parallel()
	pod := argocd.Claim{Object: argocd.Object{Kind: "Pod", Namespace: "downloads", Name: "vlan50-canary"}}
	app := argocd.Application{}
	app.Metadata.Namespace, app.Metadata.Name = "argocd", "site"
	app.Status.Sync.Status, app.Status.Health.Status = "Synced", "Degraded"
	app.Status.Resources = []argocd.Object{pod.Object}
	for name, row := range map[string]struct {
		read ArgoRead
		mark v1alpha1.Mark
		text string
	}{
		"not installed": {ArgoRead{Known: true}, v1alpha1.MarkNone, "is not installed"},
		"owns nothing":  {ArgoRead{Known: true, Installed: true}, v1alpha1.MarkNone, "no Application owns these objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			w.Argo = row.read
			wantLine(t, Summarize(w.Data, now(), Settings{}).Status.ArgoCD.Lines, "Argo CD", row.mark, row.text)
		})
	}
	w := healthy(t)
	w.Argo = ArgoRead{Known: true, Installed: true}
	w.Gaps = []Gap{{Section: v1alpha1.SectionArgoCD, Text: "Argo CD's Applications outside namespace argocd cannot be read"}}
	wantLine(t, Summarize(w.Data, now(), Settings{}).Status.ArgoCD.Lines, "Argo CD", v1alpha1.MarkUnknown, "no Application that can be read owns these objects")
	w = healthy(t)
	w.Argo = ArgoRead{Known: true, Installed: true, Applications: []argocd.Application{app}, Claims: []argocd.Claim{pod}}
	s := Summarize(w.Data, now(), Settings{}).Status.ArgoCD
	wantLine(t, s.Lines, "state", v1alpha1.MarkNone, "Application argocd/site: Synced, Degraded; automated sync off, self-heal off; owns Pod downloads/vlan50-canary")
	wantLine(t, s.Lines, "worth", v1alpha1.MarkNone, "a Failed canary stays Synced")
	w.Argo = ArgoRead{}
	if s := Summarize(w.Data, now(), Settings{}).Status.ArgoCD; s.Installed != nil || len(s.Lines) > 0 {
		t.Errorf("where it is not known, nothing is said: %+v", s)
	}
}
