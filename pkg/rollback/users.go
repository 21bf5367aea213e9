package rollback

import (
	"errors"
	"slices"
	"strings"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// User is a Pod, or a controller whose template asks Multus for a network.
type User struct {
	Object
	// Networks are what it asks for, as namespace/name.
	Networks []string
	// Unreadable is why its annotation cannot be read; it counts as asking for
	// whatever its text names.
	Unreadable string
}

// userOf reads the annotations of a Pod or template; ok is false where it asks
// for nothing.
func userOf(object Object, annotations map[string]string) (user User, ok bool) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Annotations: annotations}}
	user.Object = object
	selections, err := multus.RequestedNetworks(pod)
	switch {
	case errors.Is(err, multus.ErrNoNetworks):
	case err != nil:
		user.Unreadable = annotations[nadv1.NetworkAttachmentAnnot]
	}
	for _, selection := range selections {
		user.Networks = append(user.Networks, selection.Network())
	}
	if network := multus.DefaultNetwork(pod); network != "" {
		user.Networks = append(user.Networks, network)
	}
	return user, len(user.Networks) > 0 || user.Unreadable != ""
}

// asks says in words what the user asks for.
func (u User) asks() string {
	if u.Unreadable != "" {
		return u.String() + " (its annotation cannot be read: " + cut(u.Unreadable) + ")"
	}
	return u.String() + " (" + strings.Join(u.Networks, ", ") + ")"
}

// owners leads from the UID of a controller to the controller above it.
type owners map[types.UID]*metav1.OwnerReference

// strangers are the users that are not in the plan, neither themselves nor by
// one of their controllers. A Pod or template of a controller that stands in
// the list itself is told once, by the controller.
func strangers(users []User, planned []Object, above owners) []User {
	uids := map[types.UID]bool{}
	for _, object := range planned {
		if object.UID != "" {
			uids[object.UID] = true
		}
	}
	listed := map[types.UID]bool{}
	for _, user := range users {
		listed[user.UID] = true
	}
	return slices.DeleteFunc(slices.Clone(users), func(user User) bool {
		if uids[user.UID] {
			return true
		}
		// A chain of controllers is short; a loop could only be made by hand.
		for owner, depth := user.Owner, 0; owner != nil && depth < 5; owner, depth = above[owner.UID], depth+1 {
			if uids[owner.UID] || listed[owner.UID] {
				return true
			}
		}
		return false
	})
}
