package rollback

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// template is what a controller makes Pods from.
type template struct {
	object Object
	spec   *corev1.PodSpec
}

// workloads reads the templates of all controllers of all namespaces.
func (c *collector) workloads(ctx context.Context) error {
	apps, all := c.Clients.Apps, metav1.NamespaceAll
	for _, read := range []func() error{
		func() error {
			return each(ctx, apps.DaemonSets(all).List, func(list *appsv1.DaemonSetList) error {
				for i := range list.Items {
					c.template("DaemonSet", &list.Items[i], &list.Items[i].Spec.Template)
					if evidence.IsMultus(&list.Items[i]) || c.isNamed(&list.Items[i]) {
						c.daemons = append(c.daemons, list.Items[i])
					}
				}
				return nil
			})
		},
		func() error {
			return each(ctx, apps.Deployments(all).List, func(list *appsv1.DeploymentList) error {
				for i := range list.Items {
					c.template("Deployment", &list.Items[i], &list.Items[i].Spec.Template)
				}
				return nil
			})
		},
		func() error {
			return each(ctx, apps.StatefulSets(all).List, func(list *appsv1.StatefulSetList) error {
				for i := range list.Items {
					c.template("StatefulSet", &list.Items[i], &list.Items[i].Spec.Template)
				}
				return nil
			})
		},
		func() error { return each(ctx, apps.ReplicaSets(all).List, c.replicaSets) },
		func() error { return each(ctx, c.Clients.Batch.Jobs(all).List, c.jobs) },
		func() error {
			return each(ctx, c.Clients.Batch.CronJobs(all).List, func(list *batchv1.CronJobList) error {
				for i := range list.Items {
					c.template("CronJob", &list.Items[i], &list.Items[i].Spec.JobTemplate.Spec.Template)
				}
				return nil
			})
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) isNamed(ds *appsv1.DaemonSet) bool {
	return ds.Namespace == c.DaemonSet.Namespace && ds.Name == c.DaemonSet.Name
}

// replicaSets leaves out the old revisions of a Deployment, which make no Pods.
func (c *collector) replicaSets(list *appsv1.ReplicaSetList) error {
	for i := range list.Items {
		set := &list.Items[i]
		owner := metav1.GetControllerOf(set)
		c.above[set.UID] = owner
		if owner == nil || set.Spec.Replicas == nil || *set.Spec.Replicas > 0 {
			c.template("ReplicaSet", set, &set.Spec.Template)
		}
	}
	return nil
}

func (c *collector) jobs(list *batchv1.JobList) error {
	for i := range list.Items {
		job := &list.Items[i]
		c.above[job.UID] = metav1.GetControllerOf(job)
		c.template("Job", job, &job.Spec.Template)
	}
	return nil
}

// template keeps what a controller's Pods would ask for and mount.
func (c *collector) template(kind string, meta metav1.Object, t *corev1.PodTemplateSpec) {
	object := found(kindNamed(kind), meta)
	c.templates = append(c.templates, template{object: object, spec: &t.Spec})
	if user, ok := userOf(object, t.Annotations); ok {
		c.users = append(c.users, user)
	}
}

// pods reads the metadata of all Pods: that is where networks are asked for.
func (c *collector) pods(ctx context.Context) error {
	kind := kindNamed("Pod")
	return c.Clients.EachPodMeta(ctx, page, func(meta *metav1.PartialObjectMetadata) error {
		object := found(kind, meta)
		if user, ok := userOf(object, meta.Annotations); ok {
			c.users = append(c.users, user)
		}
		return nil
	})
}

// mountedBy names a controller or Pod besides the plan's own that mounts a
// ConfigMap.
func (c *collector) mountedBy(ctx context.Context, configMap Object) (string, error) {
	return c.otherUser(ctx, configMap.Namespace, func(spec *corev1.PodSpec) bool {
		return slices.Contains(evidence.ConfigMapsOf(spec), configMap.Name)
	})
}

// runsAs names a controller or Pod besides the plan's own that uses a
// ServiceAccount.
func (c *collector) runsAs(ctx context.Context, account Object) (string, error) {
	return c.otherUser(ctx, account.Namespace, func(spec *corev1.PodSpec) bool { return spec.ServiceAccountName == account.Name })
}

func (c *collector) otherUser(ctx context.Context, namespace string, uses func(*corev1.PodSpec) bool) (string, error) {
	if user := c.otherTemplate(namespace, uses); user != "" {
		return user, nil
	}
	user := ""
	err := each(ctx, c.Clients.Core.Pods(namespace).List, func(list *corev1.PodList) error {
		for i := range list.Items {
			if pod := &list.Items[i]; uses(&pod.Spec) && !c.ours(pod) {
				user = found(kindNamed("Pod"), pod).String()
			}
		}
		return nil
	})
	return user, err
}

// ours reports whether a Pod goes with the plan, is one of the tool's, or comes
// from a template that was looked at.
func (c *collector) ours(pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return slices.Contains([]string{"DaemonSet", "ReplicaSet", "StatefulSet", "Job"}, owner.Kind)
	}
	if pod.Labels[PodLabel] != "" || pod.Namespace == c.state.DaemonSet.Namespace && c.isDaemon(pod) {
		return true
	}
	mine := slices.Clone(c.state.Consumers)
	if c.state.CanaryPod != nil {
		mine = append(mine, *c.state.CanaryPod)
	}
	return slices.ContainsFunc(mine, func(o Object) bool { return o.UID == pod.UID })
}

func (c *collector) otherTemplate(namespace string, uses func(*corev1.PodSpec) bool) string {
	mine := slices.Clone(c.state.Consumers)
	if c.state.DaemonSetObject != nil {
		mine = append(mine, *c.state.DaemonSetObject)
	}
	for _, t := range c.templates {
		if t.object.Namespace != namespace || !uses(t.spec) {
			continue
		}
		ours := func(o Object) bool {
			return o.UID == t.object.UID || t.object.Owner != nil && o.UID == t.object.Owner.UID
		}
		if !slices.ContainsFunc(mine, ours) {
			return t.object.String()
		}
	}
	return ""
}

func join(names []string) string { return strings.Join(names, ", ") }
