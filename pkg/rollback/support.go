package rollback

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// Names that the upstream manifests give, for a site whose DaemonSet is gone
// and can no longer tell.
const upstreamAccount = "multus"

func upstreamConfigs() []string { return []string{"multus-daemon-config", "multus-cni-config"} }

// support finds what stands beside the DaemonSet, in the order of its deletion:
// roles, bindings, the account, configuration, so that what leads to the others
// goes after them and a run that was cut short finds the rest. What others use
// as well stays.
func (c *collector) support(ctx context.Context) error {
	name, sure, err := c.accountName(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		account := Object{Kind: kindNamed("ServiceAccount"), Namespace: c.state.DaemonSet.Namespace, Name: name}
		object, err := c.get(ctx, account)
		if err != nil {
			return err
		}
		user, err := c.runsAs(ctx, account)
		if err != nil {
			return err
		}
		if err := c.rbac(ctx, account, sure, user); err != nil {
			return err
		}
		c.keepUsed(object, user)
		c.addSupport(object)
	}
	return c.daemonConfigs(ctx)
}

// accountName is the DaemonSet's ServiceAccount; empty where it has none of its
// own. Where the DaemonSet is gone it is the one that was marked, or else a guess.
func (c *collector) accountName(ctx context.Context) (name string, sure bool, err error) {
	if c.set != nil {
		if name := c.set.Spec.Template.Spec.ServiceAccountName; name != "default" {
			return name, true, nil
		}
		return "", true, nil
	}
	accounts, err := c.metaOf(ctx, kindNamed("ServiceAccount"), c.state.DaemonSet.Namespace)
	for _, account := range accounts {
		if account.Annotations[MarkAnnot] == c.daemonMark() {
			return account.Name, true, nil
		}
	}
	return upstreamAccount, false, err
}

func (c *collector) addSupport(o Object) {
	if o.UID == "" || slices.ContainsFunc(c.state.Support, o.same) {
		return
	}
	c.fixed(o)
	c.state.Support = append(c.state.Support, o)
}

func (c *collector) keepUsed(o Object, user string) {
	if user != "" {
		c.state.Keep[o.String()] = "it stays: " + user + " uses it as well"
	}
}

// daemonConfigs are the ConfigMaps of the DaemonSet, or by mark or name those
// of one that is gone.
func (c *collector) daemonConfigs(ctx context.Context) error {
	names := upstreamConfigs()
	if c.set != nil {
		names = multus.DaemonConfigMaps(c.set)
	}
	all, err := c.configMaps(ctx, c.state.DaemonSet.Namespace)
	if err != nil {
		return err
	}
	for _, object := range all {
		if slices.Contains(names, object.Name) || c.set == nil && object.Annotations[MarkAnnot] == c.daemonMark() {
			user, err := c.mountedBy(ctx, object)
			if err != nil {
				return err
			}
			c.keepUsed(object, user)
			c.addSupport(object)
		}
	}
	return nil
}

// grant is a binding, whatever its kind.
type grant struct {
	object   Object
	subjects []rbacv1.Subject
	role     rbacv1.RoleRef
}

// serves counts how many of its subjects are the account.
func (g grant) serves(account Object) (mine int) {
	for _, s := range g.subjects {
		if s.Kind == rbacv1.ServiceAccountKind && s.Name == account.Name && (s.Namespace == account.Namespace || s.Namespace == "" && g.object.Namespace == account.Namespace) {
			mine++
		}
	}
	return mine
}

// rbac finds the bindings of the account alone and the roles that nothing else
// refers to. sure: the account is known to be the DaemonSet's. A user besides it
// needs what the account may do.
func (c *collector) rbac(ctx context.Context, account Object, sure bool, user string) error {
	grants, err := c.grants(ctx)
	if err != nil {
		return err
	}
	var going, staying []grant
	for _, g := range grants {
		switch mine := g.serves(account); {
		case mine == 0:
		case user != "":
			c.state.Keep[g.object.String()] = "it stays: " + user + " uses " + account.String() + " as well"
			staying = append(staying, g)
		case mine == len(g.subjects):
			going = append(going, g)
		default:
			c.state.Keep[g.object.String()] = "it stays: it has other subjects as well"
			staying = append(staying, g)
		}
	}
	var roles []Object
	for _, g := range going {
		roles = append(roles, roleOf(g))
	}
	if c.set == nil {
		roles = append(roles, Object{Kind: kindNamed("ClusterRole"), Name: upstreamAccount})
	}
	for _, role := range roles {
		if err := c.role(ctx, role, grants, going, sure); err != nil {
			return err
		}
	}
	for _, g := range append(going, staying...) {
		c.addSupport(g.object)
	}
	return nil
}

func roleOf(g grant) Object {
	if g.role.Kind == "ClusterRole" {
		return Object{Kind: kindNamed("ClusterRole"), Name: g.role.Name}
	}
	return Object{Kind: kindNamed("Role"), Namespace: g.object.Namespace, Name: g.role.Name}
}

// role adds a role that only bindings that go refer to. Roles that come with
// Kubernetes stay without a word, and so does one that may be somebody else's.
func (c *collector) role(ctx context.Context, role Object, grants, going []grant, sure bool) error {
	object, err := c.get(ctx, role)
	if err != nil || object.UID == "" || object.Labels["kubernetes.io/bootstrapping"] != "" || strings.HasPrefix(object.Name, "system:") {
		return err
	}
	refers := func(g grant) bool { return roleOf(g).same(object) }
	if !sure || !slices.ContainsFunc(going, refers) {
		ours, err := c.aboutNetworks(ctx, object)
		if err != nil || !ours {
			return err
		}
	}
	c.addSupport(object)
	for _, g := range grants {
		if refers(g) && !slices.ContainsFunc(going, func(o grant) bool { return o.object.same(g.object) }) {
			c.keepUsed(object, g.object.String())
		}
	}
	return nil
}

// aboutNetworks reports whether a ClusterRole that is known by its name alone
// is Multus': it speaks of networks.
func (c *collector) aboutNetworks(ctx context.Context, o Object) (bool, error) {
	if !o.Kind.ClusterWide {
		return false, nil
	}
	role, err := c.Clients.RBAC.ClusterRoles().Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, networkGroup) }), nil
}

// grants are all bindings of the cluster.
func (c *collector) grants(ctx context.Context) ([]grant, error) {
	var grants []grant
	err := each(ctx, c.Clients.RBAC.ClusterRoleBindings().List, func(list *rbacv1.ClusterRoleBindingList) error {
		for i := range list.Items {
			b := &list.Items[i]
			grants = append(grants, grant{found(kindNamed("ClusterRoleBinding"), b), b.Subjects, b.RoleRef})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, c.Clients.RBAC.RoleBindings(metav1.NamespaceAll).List, func(list *rbacv1.RoleBindingList) error {
		for i := range list.Items {
			b := &list.Items[i]
			grants = append(grants, grant{found(kindNamed("RoleBinding"), b), b.Subjects, b.RoleRef})
		}
		return nil
	})
	return grants, err
}
