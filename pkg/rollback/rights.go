package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// lacking names the rights that the plan needs and the user does not have;
// those to read were needed to get here.
func (r *Rollback) lacking(ctx context.Context, s State) (string, error) {
	missing, err := r.Clients.Missing(ctx, r.required(s))
	if err != nil || len(missing) == 0 {
		return "", err
	}
	return cluster.Join(missing), nil
}

func (r *Rollback) required(s State) []cluster.Right {
	var rights []cluster.Right
	add := func(right cluster.Right) {
		if !slices.Contains(rights, right) {
			rights = append(rights, right)
		}
	}
	for _, object := range s.planned() {
		right := cluster.Right{Group: object.Kind.Group, Resource: object.Kind.Resource, Namespace: object.Namespace}
		// It is read and saved before, and waited for after it.
		for _, right.Verb = range []string{"get", "list", "delete"} {
			add(right)
		}
		if markable(object) {
			right.Verb = "patch"
			add(right)
		}
	}
	if len(s.Nodes) == 0 {
		return rights
	}
	for _, verb := range []string{"create", "delete", "get", "list"} {
		add(cluster.Right{Verb: verb, Resource: "pods", Namespace: s.Ground.Namespace})
	}
	add(cluster.Right{Verb: "list", Resource: "events", Namespace: s.Ground.Namespace})
	if s.Access == AccessPod {
		add(cluster.Right{Verb: "get", Resource: "pods", Subresource: "log", Namespace: s.Ground.Namespace})
	}
	for _, verb := range []string{"get", "create", "update"} {
		add(cluster.Right{Verb: verb, Group: "coordination.k8s.io", Resource: "leases", Namespace: s.LockNamespace})
	}
	return rights
}

// admission lets the server try a node Pod and a probe without storing them.
func (r *Rollback) admission(ctx context.Context, s *State) error {
	if len(s.Nodes) == 0 {
		return nil
	}
	n := s.Nodes[0]
	ground := s.Ground
	ground.Image = n.Image
	pods := []*corev1.Pod{ground.probePod(podName(ProbeRole, "dry-run"), n.Name)}
	if s.Access == AccessPod {
		dir := n.ConfDir
		if dir == "" {
			dir = n.KnownDirs[0]
		}
		job := lookJob(n.Name, dir, "dry-run")
		job.name = podName(NodePodRole, "dry-run")
		pods = append(pods, ground.nodePod(job))
	}
	for _, pod := range pods {
		_, err := r.Clients.Core.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: canary.FieldManager,
		})
		switch {
		case err == nil:
		case cluster.Answered(err):
			s.Admission = r.denial(ctx, *s, err)
			return nil
		default:
			return fmt.Errorf("trying a Pod on the server (dry run): %w", err)
		}
	}
	return nil
}

// explainDenial adds to a refused Pod what can be done about it.
func (r *Rollback) explainDenial(ctx context.Context, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s", r.denial(ctx, r.state, err))
	}
	return err
}

// denial names the label or the mode that Pod Security refused a Pod by.
func (r *Rollback) denial(ctx context.Context, s State, err error) string {
	const other = "use another namespace with --node-namespace, or reach the nodes by hand with --node-access=manual"
	namespace := s.Ground.Namespace
	_, rest, violated := strings.Cut(err.Error(), `violates PodSecurity "`)
	if !violated {
		return fmt.Sprintf("the server would not take a Pod for the nodes in namespace %s: %v; %s", namespace, err, other)
	}
	level, why, _ := strings.Cut(rest, `"`)
	label := "pod-security.kubernetes.io/enforce"
	by := fmt.Sprintf("the cluster's own Pod Security default (its AdmissionConfiguration), level %s", level)
	live, readErr := r.Clients.Core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case readErr != nil:
		by = fmt.Sprintf("Pod Security, level %s (the label %s of the namespace, or the cluster's default)", level, label)
	case live.Labels[label] != "":
		by = fmt.Sprintf("Pod Security by the label %s=%s of the namespace", label, live.Labels[label])
	}
	return fmt.Sprintf("a Pod that sees a node's CNI conf dir is forbidden in namespace %s by %s%s; for the time of the rollback: kubectl label --overwrite namespace %s %s=privileged; or %s",
		namespace, by, strings.TrimRight(why, " "), namespace, label, other)
}
