package rollback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// nodes finds the nodes to be visited: those the user named; those with a daemon
// Pod; else, where the daemon's Pods no longer tell where it was, all.
func (c *collector) nodes(ctx context.Context) error {
	pods, err := c.daemonPods(ctx)
	if err != nil {
		return err
	}
	var all []corev1.Node
	err = each(ctx, c.Clients.Core.Nodes().List, func(list *corev1.NodeList) error {
		all = append(all, list.Items...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.ground(ctx); err != nil {
		return err
	}
	tell := c.set != nil && c.set.DeletionTimestamp == nil && complete(c.set, pods)
	for i := range all {
		node := &all[i]
		here := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Spec.NodeName != node.Name })
		switch {
		case c.visits(node, len(here) > 0, tell):
			c.state.Nodes = append(c.state.Nodes, c.nodeState(node, here))
		case len(here) > 0:
			c.state.LeftOut = append(c.state.LeftOut, "node "+node.Name)
		case node.Labels[corev1.LabelOSStable] != "windows":
			c.state.Unseen = append(c.state.Unseen, "node "+node.Name)
		}
	}
	for _, name := range c.Nodes {
		if !slices.ContainsFunc(all, func(n corev1.Node) bool { return n.Name == name }) {
			return fmt.Errorf("there is no node %s", name)
		}
	}
	return nil
}

// complete reports whether the daemon Pods tell all nodes on which Multus is: one
// that waits for another Pod may have its conf all the same.
func complete(set *appsv1.DaemonSet, pods []corev1.Pod) bool {
	nodes := map[string]bool{}
	for i := range pods {
		if name := pods[i].Spec.NodeName; name != "" {
			nodes[name] = true
		}
	}
	return len(nodes) > 0 && len(nodes) >= int(set.Status.DesiredNumberScheduled)
}

func (c *collector) visits(node *corev1.Node, daemon, tell bool) bool {
	switch {
	case len(c.Nodes) > 0:
		return slices.Contains(c.Nodes, node.Name)
	case tell && !c.AllNodes:
		return daemon
	}
	return node.Labels[corev1.LabelOSStable] != "windows"
}

func (c *collector) nodeState(node *corev1.Node, daemons []corev1.Pod) NodeState {
	state := NodeState{
		Name: node.Name, Daemon: len(daemons) > 0, Ready: isReady(node),
		Serving: slices.ContainsFunc(daemons, func(p corev1.Pod) bool { return evidence.PodReady(&p) && p.DeletionTimestamp == nil }),
		Runtime: node.Status.NodeInfo.ContainerRuntimeVersion,
		ConfDir: cmp.Or(c.ConfDir, c.state.ConfDir), BinDir: cmp.Or(c.BinDir, c.state.BinDir), KnownDirs: KnownConfDirs(node), Image: c.state.Ground.Image,
	}
	if c.NodeImage == "" && c.set == nil && c.markedImage == "" {
		before := c.imageBefore(node.Name)
		if listed(node, before) {
			state.Image = before
		} else {
			state.Image = cmp.Or(multusImage(node), before, state.Image)
		}
	}
	return state
}

// listed reports whether a node says that it has an image.
func listed(node *corev1.Node, image string) bool {
	return slices.ContainsFunc(node.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) })
}

// imageBefore is what has run for this machine's last rollback on a node: a site
// without the usual registries may have no other. It decides nothing but what node
// Pods run in.
func (c *collector) imageBefore(node string) string {
	image, err := c.Store.LoadImage(node)
	if err != nil {
		c.notef(StepCheck, "the image that ran on node %s before cannot be read: %v", node, err)
	}
	return image
}

// upstreamImage is where the thick Multus image comes from.
const upstreamImage = "ghcr.io/k8snetworkplumbingwg/multus-cni:"

// multusImage is the thick Multus image that a node still has though no
// DaemonSet names it any more. What else is on a node was brought there by
// whoever may start a Pod, and must not run with its folders.
func multusImage(node *corev1.Node) string {
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if strings.HasPrefix(name, upstreamImage) && strings.HasSuffix(name, "-thick") {
				return name
			}
		}
	}
	return ""
}

// ground is where node Pods and probes run, and what runs in them.
func (c *collector) ground(ctx context.Context) error {
	ground := Ground{Namespace: c.NodeNamespace, Image: c.NodeImage}
	if ground.Namespace == "" {
		ground.Namespace = c.state.DaemonSet.Namespace
	}
	if c.set != nil {
		if err := c.readPaths(ctx); err != nil {
			return err
		}
		if ground.Image == "" && c.paths.Thick {
			ground.Image = c.paths.Image
		}
		if ground.Namespace == c.set.Namespace {
			ground.PullSecrets = c.set.Spec.Template.Spec.ImagePullSecrets
		}
	} else {
		c.readMarks()
		ground.Image = cmp.Or(ground.Image, c.markedImage)
	}
	if ground.Image == "" {
		ground.Image = DefaultNodeImage
	}
	c.state.Ground = ground
	c.state.LockNamespace = c.Canary.Namespace
	namespace, err := c.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, c.Canary.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
		c.state.LockNamespace = ground.Namespace
	}
	return nil
}

// readMarks reads what a DaemonSet told that an earlier run has deleted, as it
// noted it on what stood beside it.
func (c *collector) readMarks() {
	for _, object := range c.state.Support {
		if object.Annotations[MarkAnnot] != c.daemonMark() {
			continue
		}
		if dir := object.Annotations[ConfDirAnnot]; PlainDir(dir) {
			c.state.ConfDir = dir
		}
		if dir := object.Annotations[BinDirAnnot]; PlainDir(dir) {
			c.state.BinDir = dir
		}
		c.markedImage = cmp.Or(c.markedImage, object.Annotations[NodeImageAnnot])
	}
}

// readPaths reads the DaemonSet's volumes, mounts and configuration.
func (c *collector) readPaths(ctx context.Context) error {
	var configs []corev1.ConfigMap
	for _, name := range multus.DaemonConfigMaps(c.set) {
		config, err := c.Clients.Core.ConfigMaps(c.set.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		configs = append(configs, *config)
	}
	var err error
	c.paths, err = multus.HostPathsOf(c.set, configs)
	c.state.ConfDir, c.state.BinDir = c.paths.ConfDir, c.paths.BinDir
	if err != nil && c.ConfDir == "" {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("where Multus keeps its conf cannot be told from the DaemonSet (%v): the known places are looked into; --cni-conf-dir names another", err))
	}
	return nil
}

// daemonPods are the Pods of the DaemonSet, found by their controller, so that
// those of one that is gone are found as well.
func (c *collector) daemonPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := each(ctx, c.Clients.Core.Pods(c.state.DaemonSet.Namespace).List, func(list *corev1.PodList) error {
		for i := range list.Items {
			if !c.isDaemon(&list.Items[i]) {
				continue
			}
			pods = append(pods, list.Items[i])
			c.state.DaemonPods = append(c.state.DaemonPods, found(kindNamed("Pod"), &list.Items[i]))
		}
		return nil
	})
	return pods, err
}

// isDaemon also knows the Pods of a DaemonSet that was deleted without them
// (--cascade=orphan): they have no controller, and run on.
func (c *collector) isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return evidence.RunsMultus(&pod.Spec) && pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != ""
	}
	return owner.Kind == "DaemonSet" && owner.Name == c.state.DaemonSet.Name
}

// setAside leaves nodes out that cannot be looked at and on which no daemon Pod
// is: they are named, and stop nothing.
func (s *State) setAside(named []string) {
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n NodeState) bool {
		aside := !n.Ready && !n.Daemon && !slices.Contains(named, n.Name)
		if aside {
			s.Unseen = append(s.Unseen, "node "+n.Name+" (not Ready)")
		}
		return aside
	})
}
