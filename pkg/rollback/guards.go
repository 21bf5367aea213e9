package rollback

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/argocd"
)

// guards are all conditions, those that hold as well: a plan says on what it
// rests.
func guards(s State) []Guard {
	return []Guard{
		rightsGuard(s), usersGuard(s), networksGuard(s), argoGuard(s), ownerGuard(s),
		otherDaemonGuard(s), accessGuard(s), confGuard(s),
	}
}

func holds(name GuardName, format string, args ...any) Guard {
	return Guard{Name: name, Truth: Holds, Message: fmt.Sprintf(format, args...)}
}

func broken(name GuardName, objects []string, format string, args ...any) Guard {
	return Guard{Name: name, Truth: Broken, Message: fmt.Sprintf(format, args...), Objects: objects}
}

func rightsGuard(s State) Guard {
	if s.Rights != "" {
		return broken(GuardRights, nil, "this user may not %s; ask for config/rbac/rollback.yaml, or use another user", s.Rights)
	}
	return holds(GuardRights, "this user may do all that the plan asks for")
}

// usersGuard stops where anything but the plan's own objects asks Multus for a
// network: it would come up without it, or not at all.
func usersGuard(s State) Guard {
	if len(s.Users) == 0 {
		return holds(GuardUsers, "nothing but the objects of this plan asks for a secondary network")
	}
	var names []string
	for _, user := range s.Users {
		names = append(names, user.asks())
	}
	return broken(GuardUsers, names, "%s still in use: %s; delete what is not needed, or let this run do it with --also KIND/NAMESPACE/NAME",
		plural(len(s.Users), "a secondary network is", "secondary networks are"), strings.Join(names, "; "))
}

// networksGuard keeps the definition of networks while others have networks of
// that kind: its deletion would delete them all. It stops nothing.
func networksGuard(s State) Guard {
	if len(s.ForeignNetworks) == 0 {
		return holds(GuardNetworks, "there is no network of others")
	}
	names := objectNames(s.ForeignNetworks)
	guard := holds(GuardNetworks, "there are networks of others, so that their definition (CRD) stays: %s", strings.Join(names, "; "))
	guard.Objects = names
	return guard
}

// argoGuard stops where Argo CD would bring back what is deleted.
func argoGuard(s State) Guard {
	if s.AppsHide != "" {
		return broken(GuardArgoCD, nil, "%s", s.AppsHide)
	}
	var names, ways []string
	owning := s.owningApps()
	for i := range owning {
		app := &owning[i]
		automated, selfHeal, _ := app.Policy()
		if !automated {
			continue
		}
		names = append(names, fmt.Sprintf("Application %s/%s", app.Metadata.Namespace, app.Metadata.Name))
		ways = append(ways, suspend(app, selfHeal))
	}
	switch {
	case len(names) > 0:
		return broken(GuardArgoCD, names, "Argo CD would bring back what is deleted. %s", strings.Join(ways, " "))
	case len(owning) > 0:
		return holds(GuardArgoCD, "Argo CD owns objects of this plan; its automated sync is off. Whoever syncs by hand brings them back")
	}
	return holds(GuardArgoCD, "no Argo CD Application owns an object of this plan")
}

// suspend gives the commands, ready to be pasted. Names are those of Kubernetes
// objects; the patch takes the whole policy away, self-heal with it.
func suspend(app *argocd.Application, selfHeal bool) string {
	what := "automated sync is on"
	if selfHeal {
		what = "automated sync with self-heal is on"
	}
	return fmt.Sprintf("Application %[1]s/%[2]s: %[3]s; suspend it with: kubectl --namespace %[1]s patch applications.argoproj.io %[2]s "+
		`--type merge --patch '{"spec":{"syncPolicy":{"automated":null}}}' (or: argocd app set %[1]s/%[2]s --sync-policy none); `+
		"where another Application or an ApplicationSet writes this one, suspend it there.",
		app.Metadata.Namespace, app.Metadata.Name, what)
}

// owningApps are the Applications that own an object of the plan.
func (s State) owningApps() []argocd.Application {
	var claims []argocd.Claim
	for _, object := range s.planned() {
		claims = append(claims, argocd.ClaimOf(argocd.Object{
			Group: object.Kind.Group, Kind: object.Kind.Name, Namespace: object.Namespace, Name: object.Name,
		}, objectMeta(object)))
	}
	return slices.DeleteFunc(slices.Clone(s.Apps), func(app argocd.Application) bool {
		return !slices.ContainsFunc(claims, app.Owns)
	})
}

// planned are all objects that are there and would be deleted.
func (s State) planned() []Object {
	return slices.DeleteFunc(slices.Concat(s.before(), s.after()), func(o Object) bool {
		return o.UID == "" || s.Keep[o.String()] != ""
	})
}

// ownerGuard stops where a controller would bring back what is deleted.
func ownerGuard(s State) Guard {
	var names []string
	planned := s.planned()
	for _, object := range planned {
		if object.Owner == nil || slices.ContainsFunc(planned, func(o Object) bool { return o.UID == object.Owner.UID }) {
			continue
		}
		// A daemon Pod whose DaemonSet is gone is orphaned, not managed.
		if object.Kind.Name == "Pod" && object.Owner.Kind == "DaemonSet" && s.DaemonSetObject == nil {
			continue
		}
		names = append(names, fmt.Sprintf("%s is controlled by %s %s", object, object.Owner.Kind, object.Owner.Name))
	}
	if len(names) > 0 {
		return broken(GuardOwner, names, "a controller would bring back what is deleted: %s; stop it there", strings.Join(names, "; "))
	}
	return holds(GuardOwner, "no controller would bring back what is deleted")
}

// otherDaemonGuard stops where another Multus would write the conf again.
func otherDaemonGuard(s State) Guard {
	if len(s.CutShort) > 0 {
		return broken(GuardOtherDaemon, s.CutShort, "a rollback of another DaemonSet seems to have been cut short: %s; say with --daemonset which one is meant: that one to go on with it, %s to leave it alone",
			andMore(s.CutShort), s.DaemonSet)
	}
	if len(s.Daemons) == 0 {
		return holds(GuardOtherDaemon, "no other DaemonSet runs Multus")
	}
	var names []string
	for _, ref := range s.Daemons {
		names = append(names, "DaemonSet "+ref.String())
	}
	return broken(GuardOtherDaemon, names, "Multus is also run by %s, whose nodes would need what this takes away; a rollback takes one DaemonSet with all its nodes: name the right one with --daemonset, and let one DaemonSet serve all nodes before",
		join(names))
}

// accessGuard stops where a node's conf could not be removed.
func accessGuard(s State) Guard {
	if names := nodesUnreachable(s.Nodes); len(names) > 0 {
		return broken(GuardNodeAccess, names, "%s not Ready, so that its conf could not be looked at: bring it back, or delete the Node object if the machine is gone",
			join(names)+plural(len(names), " is", " are"))
	}
	if len(s.LeftOut) > 0 {
		return broken(GuardNodeAccess, s.LeftOut, "a daemon Pod runs on %s, which --node leaves out: its conf would be left behind without a daemon", join(s.LeftOut))
	}
	if s.Admission != "" {
		return broken(GuardNodeAccess, nil, "%s", s.Admission)
	}
	var failed []string
	for _, node := range s.Nodes {
		if node.Err != "" {
			failed = append(failed, "node "+node.Name+": "+node.Err)
		}
	}
	switch {
	case len(failed) > 0:
		return broken(GuardNodeAccess, failed, "%s", strings.Join(failed, "; "))
	case s.Access == AccessManual:
		return holds(GuardNodeAccess, "you reach the nodes by hand")
	case len(s.Nodes) == 0:
		return holds(GuardNodeAccess, "there is no node to look at")
	}
	var images []string
	for _, node := range s.Nodes {
		if !slices.Contains(images, node.Image) {
			images = append(images, node.Image)
		}
	}
	return holds(GuardNodeAccess, "the nodes are Ready; node Pods run in namespace %s (image %s)", s.Ground.Namespace, join(images))
}

// confGuard stops where a node would be left without a CNI conf that works.
func confGuard(s State) Guard {
	var bad, good, dark []string
	for _, node := range s.Nodes {
		finding := node.Finding()
		switch {
		case !node.Looked:
			dark = append(dark, node.Name)
		case node.stops() != "":
			bad = append(bad, "node "+node.Name+": "+node.stops())
		case finding.Primary != nil:
			good = append(good, fmt.Sprintf("%s (%s, type %s)", node.Name, finding.Primary.Name, finding.Primary.Type))
		}
	}
	switch {
	case len(bad) > 0:
		return broken(GuardConf, bad, "%s", strings.Join(bad, "; "))
	case len(dark) > 0:
		return Guard{Name: GuardConf, Truth: Unknown, Message: fmt.Sprintf(
			"whether another CNI conf takes over is looked at before anything is changed, on node %s", strings.Join(dark, ", "))}
	case len(good) > 0:
		return holds(GuardConf, "another valid CNI conf takes over on %s", strings.Join(good, ", "))
	}
	return holds(GuardConf, "no node has a Multus conf")
}

func objectNames(objects []Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.String())
	}
	return names
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// objectMeta is the part of an object that tells who manages it.
func objectMeta(o Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, Annotations: o.Annotations}
}
