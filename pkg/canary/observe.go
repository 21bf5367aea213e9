package canary

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// recheck is how often the evidence is judged again without a change: some
// rules wait for time to pass.
const recheck = time.Second

// guardLines and guardBytes bound what is read of a failed guard's log.
const (
	guardLines = 50
	guardBytes = 16 << 10
)

// observe judges the new canary at each change until the verdict is settled,
// then checks that nothing it rests on changed meanwhile.
func (r *Retest) observe(ctx context.Context) (verdict.Verdict, error) {
	var last evidence.Evidence // the newest that held the Pod
	for {
		e, pod := r.collect(ctx, r.uid), r.live.canary.One()
		switch {
		case e.CanaryPod() != nil:
			last = r.withBefore(e)
			r.last = verdict.Decide(last, r.clusterNow())
			if r.last.Settled {
				return r.settle(ctx, last), nil
			}
			r.waitf(StepObserve, "%s", r.last.Message)
		case pod != nil && pod.UID != r.uid && !slices.Contains(r.earlier, pod.UID):
			// A watch that lags may still show a Pod that was waited for, but no other.
			return verdict.Verdict{}, r.namesake(pod)
		case pod == nil && (last.CanaryPod() != nil || r.neverSeen(ctx)):
			if other := r.successor(ctx); other != nil {
				return verdict.Verdict{}, r.namesake(other)
			}
			r.final, r.configuration = last, evidence.FingerprintOf(last)
			return r.vanished(), nil
		}
		if err := r.live.next(ctx, recheck); err != nil {
			return verdict.Verdict{}, err
		}
	}
}

// unseenAfter is how long a watch may take to show the Pod that was created.
const unseenAfter = 5 * time.Second

// successorWithin is how long a Pod of the same name is looked for after the
// canary was deleted: who deletes it mostly creates another at once.
const successorWithin = 2 * time.Second

// successor gives the Pod that has taken the canary's name, nil where none has.
func (r *Retest) successor(ctx context.Context) *corev1.Pod {
	for until := r.now().Add(successorWithin); ; {
		pod, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
		if err == nil && pod.UID != r.uid {
			return pod
		}
		if !r.now().Before(until) || cluster.Pause(ctx, retryPause) != nil {
			return nil
		}
	}
}

// neverSeen reports whether the new Pod was deleted before a watch showed it.
func (r *Retest) neverSeen(ctx context.Context) bool {
	if r.now().Sub(r.attempt.Created) < unseenAfter {
		return false
	}
	_, err := r.Clients.Core.Pods(r.Canary.Namespace).Get(ctx, r.Canary.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// settle completes a final verdict: the guard's own words, and the check that
// the configuration was the same from before the creation to the end.
func (r *Retest) settle(ctx context.Context, e evidence.Evidence) verdict.Verdict {
	if r.last.Outcome != verdict.Pass {
		logs, _ := FailedLogs(ctx, r.Clients, e.CanaryPod())
		e.PodLogs = append(e.PodLogs, logs...)
	}
	r.final = r.withBefore(r.complete(ctx, e))
	r.configuration = evidence.FingerprintOf(r.final)
	return verdict.Decide(r.final, r.clusterNow())
}

// withBefore adds the configuration just before the creation, read as it bears
// on the Pod that was created.
func (r *Retest) withBefore(e evidence.Evidence) evidence.Evidence {
	before := r.baseline
	before.Canary = e.Canary
	if pod := e.CanaryPod(); pod != nil {
		before.Pods = append(slices.Clip(before.Pods), *pod)
	}
	// The node's boot is seen at the end only.
	before.Nodes = nil
	e.Before = new(evidence.FingerprintOf(before))
	return e
}

// vanished is the verdict of a canary that somebody deleted under the run.
func (r *Retest) vanished() verdict.Verdict {
	v := r.last
	v.Outcome, v.Cause, v.Settled = verdict.Inconclusive, verdict.PodDeletedDuringAdd, true
	v.Message = "Pod " + r.Canary.String() + " (UID " + string(r.uid) + ") was deleted by somebody else before it could be judged"
	v.Next = "find out who deletes it, then run the retest again"
	return v
}

// collect is the newest snapshot of all that the judge looks at. With a UID it
// holds that Pod and its events; without one neither.
func (r *Retest) collect(ctx context.Context, uid types.UID) evidence.Evidence {
	l := r.live
	e := evidence.Evidence{
		CollectedAt: r.now(),
		Canary:      evidence.Ref{Namespace: r.Canary.Namespace, Name: r.Canary.Name, UID: uid},
		DaemonSet:   r.DaemonSet,
		Collected:   map[evidence.Resource]bool{evidence.Pods: l.daemons != nil && l.daemons.Synced()},
	}
	e.DaemonSets = gather(&e, evidence.DaemonSets, l.daemonSets)
	if l.daemons != nil {
		e.Pods = gather(&e, evidence.Pods, l.daemons)
		e.ControllerRevisions = gather[appsv1.ControllerRevision](&e, evidence.ControllerRevisions, l.revisions)
	}
	if l.node != nil {
		e.Nodes = gather(&e, evidence.Nodes, l.node)
	}
	if uid != "" {
		if pod := l.canary.One(); pod != nil && pod.UID == uid {
			e.Pods = append(e.Pods, *pod)
		}
		e.Events = gather(&e, evidence.Events, r.followEvents(uid))
	}
	r.addNetworks(ctx, &e)
	for _, log := range l.logs {
		e.PodLogs = append(e.PodLogs, evidence.PodLog{
			Pod:       evidence.Ref{Namespace: log.pod.Namespace, Name: log.pod.Name, UID: log.pod.UID},
			Container: log.container, Log: log.text(),
		})
	}
	return e
}

// gather copies a Mirror's objects and notes that they were looked at.
func gather[T any](e *evidence.Evidence, resource evidence.Resource, m *cluster.Mirror[T]) []T {
	if !m.Synced() {
		return nil
	}
	e.Collected[resource] = true
	items := m.Items()
	objects := make([]T, len(items))
	for i, item := range items {
		objects[i] = *item
	}
	return objects
}

// addNetworks adds the canary's NetworkAttachmentDefinitions and the metadata
// of its ConfigMaps, as they were read last.
func (r *Retest) addNetworks(ctx context.Context, e *evidence.Evidence) {
	if r.live.config == nil {
		r.live.config = readConfig(ctx, r.Clients, r.manifest)
	}
	c := r.live.config
	e.Networks, e.ConfigMaps = c.Networks, c.ConfigMaps
	for resource := range c.Collected {
		e.Collected[resource] = true
	}
}

// readConfig reads the objects the canary refers to. What may not be read is
// unknown, and is never taken for a change.
func readConfig(ctx context.Context, clients *cluster.Clients, pod *corev1.Pod) *evidence.Evidence {
	e := &evidence.Evidence{Collected: map[evidence.Resource]bool{evidence.Networks: true, evidence.ConfigMaps: true}}
	selections, err := multus.RequestedNetworks(pod)
	if err != nil {
		delete(e.Collected, evidence.Networks)
	}
	for _, selection := range selections {
		nad, err := clients.Networks.NetworkAttachmentDefinitions(selection.Namespace).Get(ctx, selection.Name, metav1.GetOptions{})
		if note(e, evidence.Networks, err) {
			e.Networks = append(e.Networks, *nad)
		}
	}
	configMaps := clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(pod.Namespace)
	for _, name := range evidence.ConfigMapsOf(&pod.Spec) {
		configMap, err := configMaps.Get(ctx, name, metav1.GetOptions{})
		if note(e, evidence.ConfigMaps, err) {
			e.ConfigMaps = append(e.ConfigMaps, *configMap)
		}
	}
	return e
}

// lastReadWithin is how long what was read before the creation is asked for at the
// end, where the server does not answer.
const lastReadWithin = 10 * time.Second

// readAgain reads the configuration at the end. What could be read before must be
// read again: else nobody knows whether it changed.
func (r *Retest) readAgain(ctx context.Context) *evidence.Evidence {
	for until := r.now().Add(lastReadWithin); ; {
		c := readConfig(ctx, r.Clients, r.manifest)
		lost := slices.ContainsFunc([]evidence.Resource{evidence.Networks, evidence.ConfigMaps}, func(resource evidence.Resource) bool {
			return r.baseline.Collected[resource] && !c.Collected[resource]
		})
		if !lost || !r.now().Before(until) || cluster.Pause(ctx, retryPause) != nil {
			return c
		}
	}
}

// complete reads again, at the end, what is not watched.
func (r *Retest) complete(ctx context.Context, e evidence.Evidence) evidence.Evidence {
	c := r.readAgain(ctx)
	e.Networks, e.ConfigMaps = c.Networks, c.ConfigMaps
	for _, resource := range []evidence.Resource{evidence.Networks, evidence.ConfigMaps} {
		e.Collected[resource] = c.Collected[resource]
	}
	if pod := e.CanaryPod(); pod != nil && pod.Spec.NodeName != "" && len(e.Nodes) == 0 {
		if node, err := r.Clients.Core.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{}); err == nil {
			e.Nodes, e.Collected[evidence.Nodes] = []corev1.Node{*node}, true
		}
	}
	return e
}

// FailedLogs reads the logs of a canary's failed containers, as far as they can
// be had; the error is that of the first which cannot. The log endpoint knows no
// UID, so the Pod is read before and after, and the logs are dropped where it is
// not the same.
func FailedLogs(ctx context.Context, clients *cluster.Clients, pod *corev1.Pod) (logs []evidence.PodLog, failed error) {
	if pod == nil {
		return nil, nil
	}
	for _, name := range failedContainers(pod) {
		options := &corev1.PodLogOptions{Container: name, TailLines: ptr.To[int64](guardLines), LimitBytes: ptr.To[int64](guardBytes)}
		text, err := readLog(ctx, clients, pod, options)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		logs = append(logs, evidence.PodLog{
			Pod:       evidence.Ref{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Container: name, Log: text,
		})
	}
	if len(logs) == 0 {
		return nil, failed
	}
	again, err := clients.Core.Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || again.UID != pod.UID {
		return nil, failed
	}
	return logs, failed
}

func failedContainers(pod *corev1.Pod) []string {
	var names []string
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
				names = append(names, status.Name)
			}
		}
	}
	return names
}

// note reports whether an object was read; where it may not be, its resource
// counts as not looked at.
func note(e *evidence.Evidence, resource evidence.Resource, err error) bool {
	if err != nil && !apierrors.IsNotFound(err) {
		delete(e.Collected, resource)
	}
	return err == nil
}
