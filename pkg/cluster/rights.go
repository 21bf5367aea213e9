package cluster

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Right is one verb on one resource, as RBAC grants it. An empty Namespace
// means all namespaces, or a resource that has none.
type Right struct {
	Verb, Group, Resource, Subresource, Namespace string
}

// String reads like a line of `kubectl auth can-i`.
func (r Right) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		return fmt.Sprintf("%s %s in all namespaces", r.Verb, resource)
	}
	return fmt.Sprintf("%s %s in namespace %s", r.Verb, resource, r.Namespace)
}

// Missing asks the server which of the rights the user lacks
// (SelfSubjectAccessReview), in the order they were given.
func (c *Clients) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	denied := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	for i, right := range rights {
		group.Go(func() error {
			allowed, err := c.may(ctx, right)
			denied[i] = !allowed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("asking the server for this user's rights: %w", err)
	}
	var missing []Right
	for i, right := range rights {
		if denied[i] {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

func (c *Clients) may(ctx context.Context, right Right) (bool, error) {
	review, err := c.Authorization.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.Verb, Group: right.Group, Resource: right.Resource,
				Subresource: right.Subresource, Namespace: right.Namespace,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// Join names rights in one line.
func Join(rights []Right) string {
	texts := make([]string, len(rights))
	for i, right := range rights {
		texts[i] = right.String()
	}
	return strings.Join(texts, "; ")
}
