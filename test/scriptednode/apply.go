package scriptednode

import (
	"context"
	"fmt"
	"time"

	nadclient "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// daemonAge is how long the first daemon has been running: far beyond the time
// in which its conf could still be missing.
const daemonAge = time.Hour

// applied is one call of Apply, with the clients it needs.
type applied struct {
	site     Site
	client   kubernetes.Interface
	networks nadclient.Interface
}

// Apply creates the site: nodes, namespace, network, guard script, and Multus
// with its revision and a daemon Pod that has been running for an hour. What is
// there already stays as it is. The CRD must be installed.
func (s Site) Apply(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("applying the site: %w", err)
	}
	networks, err := nadclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("applying the site: %w", err)
	}
	a := applied{site: s, client: client, networks: networks}
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the nodes", a.nodes},
		{"the namespace", a.namespace},
		{"the guard script", a.guard},
		{"the network", a.network},
		{"the daemon's configuration and rights", a.daemonParts},
		{"the DaemonSet", a.daemonSet},
	} {
		if err := persist(ctx, part.do); err != nil {
			return fmt.Errorf("applying %s of the site: %w", part.name, err)
		}
	}
	return nil
}

// there makes "already exists" a success.
func there(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (a applied) nodes(ctx context.Context) error {
	for _, name := range a.site.nodes() {
		if _, err := a.client.CoreV1().Nodes().Create(ctx, a.site.nodeObject(name), metav1.CreateOptions{}); there(err) != nil {
			return err
		}
	}
	for _, peer := range a.site.Peers {
		node, err := a.client.CoreV1().Nodes().Get(ctx, peer.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status = nodeStatus(peer.Name, 0)
		node.Status.Conditions = []corev1.NodeCondition{readyCondition(peer.Ready)}
		if _, err := a.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (a applied) namespace(ctx context.Context) error {
	for _, name := range []string{a.site.Namespace, a.site.DaemonSet.Namespace} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := a.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); there(err) != nil {
			return err
		}
	}
	return nil
}

func (a applied) guard(ctx context.Context) error {
	_, err := a.client.CoreV1().ConfigMaps(a.site.Namespace).Create(ctx, a.site.guardObject(), metav1.CreateOptions{})
	return there(err)
}

func (a applied) network(ctx context.Context) error {
	_, err := a.networks.K8sCniCncfIoV1().NetworkAttachmentDefinitions(a.site.Namespace).Create(ctx, a.site.networkObject(), metav1.CreateOptions{})
	return there(err)
}

// daemonParts are what stands beside the DaemonSet in the Multus manifest. The
// cluster-wide parts are shared by all sites of one API server.
func (a applied) daemonParts(ctx context.Context) error {
	namespace := a.site.DaemonSet.Namespace
	multus := metav1.ObjectMeta{Name: "multus"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "multus", Namespace: namespace}}
	role := &rbacv1.ClusterRole{ObjectMeta: multus, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"k8s.cni.cncf.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: multus,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "multus"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "multus", Namespace: namespace}},
	}
	if _, err := a.client.CoreV1().ConfigMaps(namespace).Create(ctx, a.site.daemonConfigObject(), metav1.CreateOptions{}); there(err) != nil {
		return err
	}
	if _, err := a.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); there(err) != nil {
		return err
	}
	if _, err := a.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); there(err) != nil {
		return err
	}
	_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return there(err)
}

// daemonSet creates the DaemonSet and, with it, what its controller would have
// made long ago.
func (a applied) daemonSet(ctx context.Context) error {
	name := a.site.DaemonSet
	if _, err := a.client.AppsV1().DaemonSets(name.Namespace).Create(ctx, a.site.daemonSetObject(), metav1.CreateOptions{}); there(err) != nil {
		return err
	}
	ds, err := a.client.AppsV1().DaemonSets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil || ds.Status.ObservedGeneration > 0 {
		return err
	}
	hash, err := ensureRevision(ctx, a.client, ds)
	if err != nil {
		return err
	}
	pods := map[string]*corev1.Pod{}
	wanted := a.site.wanted(ds)
	for _, node := range wanted {
		if pods[node], err = a.daemonPod(ctx, ds, node, hash); err != nil {
			return err
		}
	}
	ds.Status, _ = setStatus(ds, pods, wanted, hash, time.Now())
	_, err = a.client.AppsV1().DaemonSets(name.Namespace).UpdateStatus(ctx, ds, metav1.UpdateOptions{})
	return err
}

// daemonPod creates a daemon Pod that has been running for daemonAge.
func (a applied) daemonPod(ctx context.Context, ds *appsv1.DaemonSet, node, hash string) (*corev1.Pod, error) {
	pod := daemonPod(ds, node, hash)
	pod.Spec.NodeName = node
	// A name that an interrupted Apply would choose again.
	pod.Name, pod.GenerateName = ds.Name+"-"+hexOf(string(ds.UID), node)[:5], ""
	if _, err := a.client.CoreV1().Pods(ds.Namespace).Create(ctx, pod, metav1.CreateOptions{}); there(err) != nil {
		return nil, err
	}
	pod, err := a.client.CoreV1().Pods(ds.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	started := time.Now().Add(-daemonAge)
	state := newRunState(&pod.Spec, started)
	state.sandbox, state.podIP = true, hostIP
	for _, c := range pod.Spec.InitContainers {
		state.run(c.Name, pod.UID, started)
		state.exit(c.Name, 0, "", "", started.Add(time.Second))
	}
	state.run(daemonContainer, pod.UID, started.Add(2*time.Second))
	state.containers[daemonContainer].unready = !a.site.answers(node)
	pod.Status = state.render(pod, hostIP, started.Add(2*time.Second))
	return a.client.CoreV1().Pods(ds.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}
