//go:build integration

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// right is one verb on one resource in one place of the published rights.
type right struct {
	place, group, resource, verb string
}

// String is how the tool names a right, without the namespace.
func (r right) String() string {
	if r.group != "" {
		return fmt.Sprintf("%s %s.%s", r.verb, r.resource, r.group)
	}
	return r.verb + " " + r.resource
}

// The places: the canary's namespace, the DaemonSet's, the whole cluster.
const (
	atCanary = "canary"
	atDaemon = "daemon"
	anywhere = "cluster"
)

// published are the rights of config/rbac/retest.yaml, one by one.
func (s *site) published() []right { return s.publishedIn("retest.yaml") }

// publishedIn are the rights of a file of config/rbac.
func (s *site) publishedIn(file string) []right {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", file))
	check(s.t, err)
	var rights []right
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var role rbacv1.Role // a ClusterRole has the same form, without namespace
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			return rights
		} else if err != nil {
			s.t.Fatal(err)
		}
		place, ok := map[string]string{"downloads": atCanary, "kube-system": atDaemon, "": anywhere}[role.Namespace]
		if !ok {
			s.t.Fatalf("config/rbac/%s: a Role in namespace %s", file, role.Namespace)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{place, rule.APIGroups[0], resource, verb})
				}
			}
		}
	}
}

// asUser makes the site's runs those of a user with these rights and no other.
func (s *site) asUser(user string, rights []right) {
	s.t.Helper()
	user += "-of-" + s.Node
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rules[r.place] = append(rules[r.place], rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
	}
	meta := metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	for place, namespace := range map[string]string{atCanary: s.Namespace, atDaemon: s.DaemonSet.Namespace} {
		_, err := s.client.RbacV1().Roles(namespace).Create(s.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules[place]}, metav1.CreateOptions{})
		check(s.t, err)
		_, err = s.client.RbacV1().RoleBindings(namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}, metav1.CreateOptions{})
		check(s.t, err)
	}
	_, err := s.client.RbacV1().ClusterRoles().Create(s.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules[anywhere]}, metav1.CreateOptions{})
	check(s.t, err)
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	check(s.t, err)
	s.awaitRights(user, rights)

	s.kubeconfig = filepath.Join(s.t.TempDir(), "kubeconfig")
	check(s.t, s.server.WriteKubeconfig(s.kubeconfig, user))
}

// awaitRights waits until the server's own view of the rights has them all.
func (s *site) awaitRights(user string, rights []right) {
	s.t.Helper()
	namespaces := map[string]string{atCanary: s.Namespace, atDaemon: s.DaemonSet.Namespace}
	waitFor := slices.Clone(rights)
	eventually(s.t, "user "+user+" has the rights", func() bool {
		waitFor = slices.DeleteFunc(waitFor, func(r right) bool {
			resource, subresource, _ := strings.Cut(r.resource, "/")
			review, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(s.t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespaces[r.place], Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource,
				}},
			}, metav1.CreateOptions{})
			check(s.t, err)
			return review.Status.Allowed
		})
		return len(waitFor) == 0
	})
}

// without is all rights but some.
func without(rights []right, unwanted func(right) bool) []right {
	return slices.DeleteFunc(slices.Clone(rights), unwanted)
}
