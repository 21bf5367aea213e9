package cluster

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestRightReads(t *testing.T) {
	tests := map[string]Right{
		"delete pods in namespace downloads":                       {Verb: "delete", Resource: "pods", Namespace: "downloads"},
		"list pods in all namespaces":                              {Verb: "list", Resource: "pods"},
		"get pods/log in namespace kube-system":                    {Verb: "get", Resource: "pods", Subresource: "log", Namespace: "kube-system"},
		"update leases.coordination.k8s.io in namespace downloads": {Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "downloads"},
	}
	for want, right := range tests {
		if got := right.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := Join([]Right{{Verb: "list", Resource: "pods"}, {Verb: "get", Resource: "nodes"}}), "list pods in all namespaces; get nodes in all namespaces"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissing(t *testing.T) {
	all := []Right{
		{Verb: "get", Resource: "pods", Namespace: "downloads"},
		{Verb: "delete", Resource: "pods", Namespace: "downloads"},
		{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "kube-system"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "downloads"},
	}
	tests := map[string]struct {
		deny func(*authorizationv1.ResourceAttributes) bool
		want []Right
	}{
		"all granted":                {func(*authorizationv1.ResourceAttributes) bool { return false }, nil},
		"all denied, in order":       {func(*authorizationv1.ResourceAttributes) bool { return true }, all},
		"one verb":                   {func(a *authorizationv1.ResourceAttributes) bool { return a.Verb == "delete" }, all[1:2]},
		"a subresource is asked for": {func(a *authorizationv1.ResourceAttributes) bool { return a.Subresource == "log" }, all[2:3]},
		"a group is asked for":       {func(a *authorizationv1.ResourceAttributes) bool { return a.Group == "coordination.k8s.io" }, all[3:]},
		"the namespace is asked for": {func(a *authorizationv1.ResourceAttributes) bool { return a.Namespace == "kube-system" }, all[2:3]},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
				review.Status.Allowed = !test.deny(review.Spec.ResourceAttributes)
				return true, review, nil
			})
			got, err := (&Clients{Authorization: kube.AuthorizationV1()}).Missing(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A right that could not be asked for is neither granted nor denied.
func TestMissingThatCannotBeAsked(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errAway })
	missing, err := (&Clients{Authorization: kube.AuthorizationV1()}).Missing(t.Context(), []Right{{Verb: "get", Resource: "pods"}})
	if missing != nil || !errors.Is(err, errAway) {
		t.Errorf("got %v, %v", missing, err)
	}
}

func TestUnreadable(t *testing.T) {
	notFound := apierrors.NewNotFound(corev1.Resource("pods"), "a")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"not there": {notFound, true}, "forbidden": {errForbidden, true}, "wrapped": {fmt.Errorf("x: %w", notFound), true},
		"away": {errAway, false}, "too busy": {apierrors.NewTooManyRequestsError("x"), false}, "no error": {nil, false},
	} {
		if got := Unreadable(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
