//go:build integration

package integration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/typed/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// crashPause is how long a crashing daemon waits: time enough to look twice.
const crashPause = 6 * time.Second

// statusSite is a site that status looks at.
type statusSite struct{ *site }

func newStatusSite(t *testing.T, name string, options scriptednode.Options, changes ...func(*scriptednode.Site)) *statusSite {
	t.Helper()
	return &statusSite{newSite(t, "st-"+name, options, changes...)}
}

func (s *statusSite) config() *rest.Config {
	s.t.Helper()
	config, err := s.server.Config()
	check(s.t, err)
	return config
}

func (s *statusSite) daemons() []corev1.Pod {
	s.t.Helper()
	list, err := s.client.CoreV1().Pods(s.DaemonSet.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: labels.FormatLabels(s.Labels)})
	check(s.t, err)
	return list.Items
}

// applicationsOnce installs Argo CD's kind once for all sites of the run.
var applicationsOnce sync.Once

// installApplications installs the kind Application, without Argo CD.
func installApplications(t *testing.T) {
	t.Helper()
	applicationsOnce.Do(func() {
		client, err := clientset.NewForConfig(plane.config)
		check(t, err)
		keep := true
		_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "applications.argoproj.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "argoproj.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "applications", Singular: "application", Kind: "Application"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1alpha1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	})
	eventually(t, "Applications are served", func() bool {
		return applications(t, plane.config).Get().AbsPath(applicationsPath).Do(t.Context()).Error() == nil
	})
}

const applicationsPath = "/apis/argoproj.io/v1alpha1/applications"

func applications(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	return nadclient.NewForConfigOrDie(config).RESTClient()
}

// application creates an Application that owns the canary and its network.
func (s *statusSite) application(sync, health string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"vlan50","namespace":%q},
"spec":{"syncPolicy":{"automated":{"prune":true,"selfHeal":true}}},
"status":{"sync":{"status":%q},"health":{"status":%q},"resources":[
{"kind":"Pod","namespace":%[1]q,"name":%[4]q},
{"group":"k8s.cni.cncf.io","kind":"NetworkAttachmentDefinition","namespace":%[1]q,"name":%[5]q}]}}`, s.Namespace, sync, health, s.Canary, s.Network)
	check(s.t, applications(s.t, s.config()).Post().AbsPath("/apis/argoproj.io/v1alpha1/namespaces/"+s.Namespace+"/applications").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(s.t.Context()).Error())
}

// statusGrant is what a user may do in one namespace, or everywhere.
type statusGrant struct {
	namespace string
	rules     []rbacv1.PolicyRule
}

func statusRule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// onlooker sees the canary's namespace and nothing else.
func onlooker(namespace string) []statusGrant {
	return []statusGrant{{namespace, []rbacv1.PolicyRule{
		statusRule("", "pods", "get", "list", "watch"), statusRule("", "events", "list", "watch"), statusRule("", "configmaps", "get"),
		statusRule("k8s.cni.cncf.io", "network-attachment-definitions", "get"),
	}}}
}

// actAs makes every later run that of a user with these rights.
func (s *statusSite) actAs(name string, grants []statusGrant) {
	s.t.Helper()
	user := name + "-" + s.Namespace
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	for i, g := range grants {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", user, i), Namespace: g.namespace}
		var err error
		if g.namespace == "" {
			_, err = s.client.RbacV1().ClusterRoles().Create(s.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.rules}, metav1.CreateOptions{})
			check(s.t, err)
			_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			}, metav1.CreateOptions{})
		} else {
			_, err = s.client.RbacV1().Roles(g.namespace).Create(s.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: g.rules}, metav1.CreateOptions{})
			check(s.t, err)
			_, err = s.client.RbacV1().RoleBindings(g.namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: meta, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			}, metav1.CreateOptions{})
		}
		check(s.t, err)
	}
	check(s.t, s.server.WriteKubeconfig(s.kubeconfig, user))
	eventually(s.t, "the user's rights are in force", func() bool {
		return !strings.Contains(s.run("status").stdout, "Pod "+s.Namespace+"/"+s.Canary+" cannot be read")
	})
}

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func (s *statusSite) golden(name, got string) {
	s.t.Helper()
	path := filepath.Join("testdata", "status", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		check(s.t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check(s.t, err)
	if diff := gocmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("%s (UPDATE_GOLDEN=1 rewrites it) -want +got:\n%s", path, diff)
	}
}

// What differs from one run to the next.
var (
	uidForm    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timeForm   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z)?`)
	clockForm  = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)
	ageForm    = regexp.MustCompile(`\b\d+[smhd](\d+[smh])?\b`)
	foundForm  = regexp.MustCompile(`of \d+ Pods in all`)
	searchForm = regexp.MustCompile(`"searched": \d+`)
	sandboxID  = regexp.MustCompile(`[0-9a-f]{64}`)
	gapForm    = regexp.MustCompile(`(\S) {2,}`)
	belowForm  = regexp.MustCompile(`\n {6,}`)
)

// normalText takes off what differs from run to run, and the line breaks and
// column widths that depend on it.
func (s *statusSite) normalText(text string) string {
	s.t.Helper()
	text = belowForm.ReplaceAllString(text, " ")
	text = ageForm.ReplaceAllString(s.normal(text), "<age>")
	return gapForm.ReplaceAllString(text, "$1  ")
}

// normalJSON puts the lines of evidence in an order of their own besides: theirs
// is by time, and two of one run fall into one second or into two.
func (s *statusSite) normalJSON(text string) string {
	s.t.Helper()
	var document v1alpha1.SiteStatus
	check(s.t, json.Unmarshal([]byte(text), &document))
	for _, canary := range document.Status.Canaries {
		slices.SortFunc(canary.Proof, func(a, b v1alpha1.EvidenceLine) int {
			return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Text, b.Text))
		})
	}
	sorted, err := json.MarshalIndent(document, "", "    ")
	check(s.t, err)
	text = string(sorted) + "\n"
	return searchForm.ReplaceAllString(s.normal(text), `"searched": "<number>"`)
}

func (s *statusSite) normal(text string) string {
	s.t.Helper()
	for i, hash := range s.revisions() {
		text = strings.ReplaceAll(text, hash, fmt.Sprintf("<revision %d>", i+1))
	}
	daemon := regexp.MustCompile(regexp.QuoteMeta(s.DaemonSet.Name) + `-[a-z0-9]{5}\b`)
	text = numbered(daemon, text, "daemon")
	text = numbered(uidForm, text, "uid")
	text = numbered(sandboxID, text, "digest")
	text = clockForm.ReplaceAllString(timeForm.ReplaceAllString(text, "<time>"), "<time>")
	return foundForm.ReplaceAllString(text, "of <number> Pods in all")
}

// numbered replaces each match by its number of first appearance, so that two
// that are the same stay so.
func numbered(form *regexp.Regexp, text, name string) string {
	var seen []string
	return form.ReplaceAllStringFunc(text, func(match string) string {
		if !slices.Contains(seen, match) {
			seen = append(seen, match)
		}
		return fmt.Sprintf("<%s %d>", name, slices.Index(seen, match)+1)
	})
}

// revisions are the hashes of the DaemonSet's revisions, oldest first.
func (s *statusSite) revisions() []string {
	s.t.Helper()
	list, err := s.client.AppsV1().ControllerRevisions(s.DaemonSet.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: labels.FormatLabels(s.Labels)})
	check(s.t, err)
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var hashes []string
	for _, r := range list.Items {
		hashes = append(hashes, r.Labels[appsv1.ControllerRevisionHashLabelKey])
	}
	return hashes
}
