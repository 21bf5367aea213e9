package canary

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

// Snapshot reads once all that the judge looks at. What may not be read counts
// as not looked at; a server that does not answer is an error. With a UID only
// that Pod is judged, else the one that is there.
func Snapshot(ctx context.Context, clients *cluster.Clients, subject, daemonSet evidence.Ref, now time.Time) (evidence.Evidence, error) {
	s := snapshot{ctx: ctx, clients: clients, e: evidence.Evidence{
		CollectedAt: now, Canary: subject, DaemonSet: daemonSet, Collected: map[evidence.Resource]bool{},
	}}
	for _, step := range []func() error{s.canary, s.events, s.daemon, s.config, s.node, s.logs} {
		if err := step(); err != nil {
			return s.e, err
		}
	}
	return s.e, nil
}

type snapshot struct {
	ctx     context.Context //nolint:containedctx // lives as long as one call of Snapshot
	clients *cluster.Clients
	e       evidence.Evidence
}

func (s *snapshot) canary() error {
	pod, err := s.clients.Core.Pods(s.e.Canary.Namespace).Get(s.ctx, s.e.Canary.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.e.Collected[evidence.Pods] = true
		return nil
	}
	// Without the canary itself there is nothing to judge.
	if err != nil {
		return fmt.Errorf("reading Pod %s: %w", s.e.Canary, err)
	}
	s.e.Collected[evidence.Pods] = true
	s.e.Pods = append(s.e.Pods, *pod)
	if s.e.Canary.UID == "" {
		s.e.Canary.UID = pod.UID
	}
	return nil
}

func (s *snapshot) events() error {
	if s.e.Canary.UID == "" {
		return nil
	}
	list, err := s.clients.Core.Events(s.e.Canary.Namespace).List(s.ctx, eventsOf(s.e.Canary.UID))
	if s.looked(evidence.Events, err) {
		s.e.Events = list.Items
	}
	return lasting(err)
}

func eventsOf(uid types.UID) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()}
}

func (s *snapshot) daemon() error {
	ref := s.e.DaemonSet
	ds, err := s.clients.Apps.DaemonSets(ref.Namespace).Get(s.ctx, ref.Name, metav1.GetOptions{})
	if !s.looked(evidence.DaemonSets, err) {
		return lasting(err)
	}
	s.e.DaemonSets = append(s.e.DaemonSets, *ds)
	options := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)}
	pods, err := s.clients.Core.Pods(ref.Namespace).List(s.ctx, options)
	if err == nil {
		s.e.Pods = append(s.e.Pods, pods.Items...)
	} else {
		// Half the Pods are as good as none: absence must mean something.
		s.e.Collected[evidence.Pods] = false
	}
	if err := lasting(err); err != nil {
		return err
	}
	revisions, err := s.clients.Apps.ControllerRevisions(ref.Namespace).List(s.ctx, options)
	if s.looked(evidence.ControllerRevisions, err) {
		s.e.ControllerRevisions = revisions.Items
	}
	return lasting(err)
}

func (s *snapshot) config() error {
	pod := s.e.CanaryPod()
	if pod == nil {
		return nil
	}
	c := readConfig(s.ctx, s.clients, pod)
	s.e.Networks, s.e.ConfigMaps = c.Networks, c.ConfigMaps
	for resource := range c.Collected {
		s.e.Collected[resource] = true
	}
	return nil
}

func (s *snapshot) node() error {
	pod := s.e.CanaryPod()
	if pod == nil || pod.Spec.NodeName == "" {
		return nil
	}
	node, err := s.clients.Core.Nodes().Get(s.ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if s.looked(evidence.Nodes, err) {
		s.e.Nodes = append(s.e.Nodes, *node)
	}
	return lasting(err)
}

// logs adds what the canary's failed containers and the daemon on its node
// said. A log that cannot be had is missing evidence, no trouble.
func (s *snapshot) logs() error {
	pod := s.e.CanaryPod()
	if pod == nil {
		return nil
	}
	logs, _ := FailedLogs(s.ctx, s.clients, pod)
	s.e.PodLogs = append(s.e.PodLogs, logs...)
	daemon := s.e.DaemonPod(pod.Spec.NodeName)
	if daemon == nil {
		return nil
	}
	name, _, started := rollout.DaemonContainer(daemon)
	if name == "" {
		return nil
	}
	options := &corev1.PodLogOptions{Container: name, LimitBytes: ptr.To[int64](logBytes), SinceTime: new(metav1.NewTime(started))}
	if text, err := readLog(s.ctx, s.clients, daemon, options); err == nil {
		s.e.PodLogs = append(s.e.PodLogs, evidence.PodLog{
			Pod:       evidence.Ref{Namespace: daemon.Namespace, Name: daemon.Name, UID: daemon.UID},
			Container: name, Log: text,
		})
	}
	return nil
}

// looked notes a resource as looked at, and reports whether there is an answer
// to take objects from.
func (s *snapshot) looked(resource evidence.Resource, err error) bool {
	if err == nil || apierrors.IsNotFound(err) {
		s.e.Collected[resource] = true
	}
	return err == nil
}

// lasting passes on an error that is not the server's last word.
func lasting(err error) error {
	if cluster.Unreadable(err) {
		return nil
	}
	return err
}

// logTimeout bounds how long a log is read: a kubelet that is away keeps the
// request open, and no verdict is worth waiting for its words that long.
const logTimeout = 10 * time.Second

// readLog reads a bounded piece of a log.
func readLog(ctx context.Context, clients *cluster.Clients, pod *corev1.Pod, options *corev1.PodLogOptions) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	stream, err := clients.Core.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, *options.LimitBytes))
	return string(text), err
}
