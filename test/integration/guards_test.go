//go:build integration

package integration

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

func TestPublishedRightsAreEnough(t *testing.T) {
	t.Parallel()
	s := newSite(t, "rights", scriptednode.Options{Plan: scriptednode.Plan{
		scriptednode.Pass(), scriptednode.Pass(), scriptednode.GuardFailed(3, "stopped"),
	}})
	s.createCanary(corev1.PodSucceeded)
	s.asUser("retester", s.published())
	check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{}))
	for _, want := range []struct {
		code           int
		verdict, cause string
	}{{0, "pass", "ok"}, {3, "fail", "guard-failed"}} {
		out := s.retest()
		document := out.expect(t, want.code, want.verdict, want.cause)
		if strings.Contains(out.stderr, "forbidden") || strings.Contains(out.stderr, "could not be") {
			t.Errorf("a right is missing:\n%s", out.stderr)
		}
		if c := document.Status.Configuration; c.RevisionHash == "" || len(c.ConfigMaps) == 0 || len(c.Networks) == 0 {
			t.Errorf("the configuration is not known whole: %+v", c)
		}
		s.checkDocument(t, out)
	}
}

// Without any one right that a retest cannot do without, nothing is touched and
// the right is named.
func TestMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, "no-right", scriptednode.Options{})
	old := s.createCanary(corev1.PodSucceeded)
	rights := s.published()
	const leases = "coordination.k8s.io"
	for i, missing := range []right{
		{atCanary, "", "pods", "get"},
		{atCanary, "", "pods", "create"},
		{atCanary, "", "pods", "delete"},
		{atCanary, "", "events", "list"},
		{atCanary, leases, "leases", "get"},
		{atCanary, leases, "leases", "create"},
		{atCanary, leases, "leases", "update"},
		{atDaemon, "apps", "daemonsets", "get"},
		{atDaemon, "apps", "daemonsets", "list"},
		{anywhere, "", "pods", "list"},
	} {
		t.Run(missing.place+" "+missing.String(), func(t *testing.T) {
			if !slices.Contains(rights, missing) {
				t.Fatal("the published rights do not have it")
			}
			s.asUser(fmt.Sprintf("lacks-%d", i), without(rights, func(r right) bool { return r == missing }))
			where := map[string]string{atCanary: "in namespace " + s.Namespace, atDaemon: "in namespace " + s.DaemonSet.Namespace, anywhere: "in all namespaces"}
			s.retest().expectError(t, 5, missing.String()+" "+where[missing.place], "nothing was changed", "config/rbac/retest.yaml")
			s.untouched(old)
			if s.lease() != nil {
				t.Error("a lock was taken")
			}
		})
	}
	t.Run("several at once", func(t *testing.T) {
		s.asUser("lacks-all", nil)
		s.retest().expectError(t, 5, "create pods", "delete pods", "update leases", "get daemonsets", "list events")
		s.untouched(old)
	})
}

// The other rights make the verdict richer or faster; without them a retest
// still comes to its verdict.
func TestRightsToDoWithout(t *testing.T) {
	t.Parallel()
	groups := map[string][]struct {
		name string
		lack func(right) bool
		says string
	}{
		"reading": {
			{"logs", func(r right) bool { return r.resource == "pods/log" }, ""},
			{"nodes", func(r right) bool { return r.resource == "nodes" }, ""},
			{"networks", func(r right) bool { return r.resource == "network-attachment-definitions" }, ""},
			{"ConfigMaps", func(r right) bool { return r.resource == "configmaps" }, ""},
			{"revisions", func(r right) bool { return r.resource == "controllerrevisions" }, ""},
		},
		"more": {
			{"patching the Pod", func(r right) bool { return r.verb == "patch" }, "could not be noted on Pod"},
			{"any watch", func(r right) bool { return r.verb == "watch" }, ""},
			{"all of these", func(r right) bool {
				return r.verb == "watch" || r.verb == "patch" || slices.Contains([]string{
					"pods/log", "nodes", "network-attachment-definitions", "configmaps", "controllerrevisions",
				}, r.resource)
			}, "could not be noted on Pod"},
		},
	}
	for name, rows := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Without a look at the networks no other Pod may ask for the address.
			s := newSite(t, "spare-"+name, scriptednode.Options{}, func(site *scriptednode.Site) {
				site.Address = netip.MustParsePrefix(map[string]string{"reading": "192.0.2.77/24", "more": "192.0.2.78/24"}[name])
			})
			s.createCanary(corev1.PodSucceeded)
			for i, row := range rows {
				t.Run(row.name, func(t *testing.T) {
					s.asUser(fmt.Sprintf("spares-%d", i), without(s.published(), row.lack))
					check(t, s.node.RestartDaemonSet(t.Context(), scriptednode.Daemon{}))
					out := s.retest("--settle", "1s")
					document := out.expect(t, 0, "pass", "ok")
					if !strings.Contains(out.stderr, row.says) {
						t.Errorf("the run does not say %q:\n%s", row.says, out.stderr)
					}
					noLog := row.lack(right{atDaemon, "", "pods/log", "get"})
					if by := document.Status.Attempt.AttachReadyBy; (by == "settle") != noLog {
						t.Errorf("attach readiness was known by %q", by)
					}
					if noLog && !strings.Contains(out.stderr, "right missing: get pods/log in namespace "+s.DaemonSet.Namespace) {
						t.Errorf("the run does not name the right it misses:\n%s", out.stderr)
					}
				})
			}
		})
	}
}

// What the server would not admit is not deleted.
func TestNothingIsDeletedThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		forbid func(*site) error
		says   string
	}{
		"pod-security": {func(s *site) error {
			_, err := s.client.CoreV1().Namespaces().Patch(s.t.Context(), s.Namespace, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
			return err
		}, `violates PodSecurity "restricted`},
		"limits": {func(s *site) error {
			_, err := s.client.CoreV1().LimitRanges(s.Namespace).Create(s.t.Context(), &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: "tight"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type: corev1.LimitTypePod, Min: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")},
				}}},
			}, metav1.CreateOptions{})
			return err
		}, "minimum memory usage per Pod is 64Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "admit-"+name, scriptednode.Options{})
			old := s.createCanary(corev1.PodSucceeded)
			check(t, row.forbid(s))
			s.refuses(row.says)
			for _, args := range [][]string{nil, {"-f", s.manifest}} {
				s.retest(args...).expectError(t, 5, "nothing was changed", row.says)
			}
			s.untouched(old)
			if s.lease() != nil {
				t.Error("a lock was taken")
			}
		})
	}
}

// refuses waits until the server's admission knows of a new rule.
func (s *site) refuses(text string) {
	s.t.Helper()
	eventually(s.t, "the server refuses the canary", func() bool {
		pod, err := s.CanaryPod()
		check(s.t, err)
		pod.Name = "tried"
		_, err = s.client.CoreV1().Pods(s.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), text)
	})
}

// A live Pod that is no canary is left alone, whatever manifest is given.
func TestLivePodThatIsNoCanary(t *testing.T) {
	t.Parallel()
	s := newSite(t, "foreign", scriptednode.Options{})
	owner, err := s.client.CoreV1().ConfigMaps(s.Namespace).Get(t.Context(), s.Guard, metav1.GetOptions{})
	check(t, err)
	for _, row := range []struct {
		name   string
		change func(*corev1.Pod)
		says   string
	}{
		{"owned", func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		}, "owned by ConfigMap"},
		{"restarted for ever", func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways }, `restartPolicy is "Always"`},
		{"no networks", func(pod *corev1.Pod) { pod.Annotations = nil }, "no annotation k8s.v1.cni.cncf.io/networks"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod, err := s.CanaryPod()
			check(t, err)
			row.change(pod)
			pod, err = s.client.CoreV1().Pods(s.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			check(t, err)
			s.taken(pod.UID)
			for _, args := range [][]string{nil, {"-f", s.manifest}} {
				s.retest(args...).expectError(t, 5, "will not be deleted", row.says)
			}
			s.untouched(pod)
			s.removeCanary()
		})
	}
	t.Run("neither a Pod nor a saved manifest", func(t *testing.T) {
		s.retest().expectError(t, 5, "no Pod "+s.Namespace+"/"+s.Canary, "-f FILE")
	})
}
