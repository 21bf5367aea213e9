package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

const (
	// nodePatience is how long a node Pod may take; its own deadline comes first.
	nodePatience = nodePodDeadline + 30*time.Second
	// sandboxPatience is after what a single failed sandbox is no passing trouble.
	sandboxPatience = 30 * time.Second
)

// logPatience bounds how long a node Pod's log is asked for.
const logPatience = 30 * time.Second

// errNoFolder says that a conf dir is not there.
var errNoFolder = errors.New("there is no such folder")

// runJob runs a script on a node and gives what it reports: a termination
// message, and for one that only reads, what it printed. A script that changes
// the node is not cut short by Ctrl-C: whether it did must be known.
func (r *Rollback) runJob(ctx context.Context, job nodeJob, image string) (message string, log []byte, err error) {
	ground := r.state.Ground
	ground.Image = image
	job.name = podName(NodePodRole, fresh())
	if !job.readOnly {
		var release context.CancelFunc
		ctx, release = lingering(ctx, jobLinger)
		defer release()
	}
	var why trouble
	var logErr error
	_, err = r.withPod(ctx, ground.nodePod(job), StepNode, func(s scene) (bool, string) {
		if ended := finished(s.pod); ended != nil && ended.Reason != "StartError" && !outOfTime(s.pod) {
			message = ended.Message
			if job.readOnly {
				log, logErr = r.readLog(ctx, s.pod)
			}
			return true, ""
		}
		if why = podTrouble(s); why.kind == noTrouble && s.since > nodePatience {
			why = late(s)
		}
		return why.kind != noTrouble, fmt.Sprintf("waiting for the Pod %s on node %s: %s", s.pod.Name, job.node, stateOf(s.pod))
	})
	switch {
	case err != nil:
		return "", nil, r.explainDenial(ctx, err)
	case why.kind == folderTrouble:
		return "", nil, fmt.Errorf("%s: %w", job.confDir, errNoFolder)
	case why.kind != noTrouble:
		return "", nil, errors.New(why.explain(image, job.node))
	}
	return message, log, logErr
}

// jobLinger is how long after Ctrl-C a script that changes a node may end.
const jobLinger = 10 * time.Second

// lingering is ctx, ending later.
func lingering(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = cluster.Pause(late, by)
		cancel(context.Cause(ctx))
	})
	return late, func() {
		stop()
		cancel(context.Canceled)
	}
}

// finished gives the end of the Pod's one container, nil while it runs.
func finished(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return c.State.Terminated
		}
	}
	return nil
}

// stateOf says in a few words how far a Pod has got.
func stateOf(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := c.State.Waiting; waiting != nil {
			return string(pod.Status.Phase) + ", " + waiting.Reason
		}
	}
	if pod.Status.Phase == "" || pod.Status.StartTime == nil {
		return "the kubelet has not taken it up yet"
	}
	return string(pod.Status.Phase)
}

// readLog reads what a finished node Pod printed. The log endpoint knows no
// UID, so that the Pod is looked at once more afterwards.
func (r *Rollback) readLog(ctx context.Context, pod *corev1.Pod) ([]byte, error) {
	// A kubelet that is away answers by an error of the server's.
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	pods := r.Clients.Core.Pods(pod.Namespace)
	var log []byte
	err := r.retry(ctx, StepNode, func() (err error) {
		log, err = pods.GetLogs(pod.Name, &corev1.PodLogOptions{LimitBytes: ptr.To[int64](longestReport)}).DoRaw(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what the Pod %s/%s printed: %w", pod.Namespace, pod.Name, err)
	}
	again, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Pod %s/%s again: %w", pod.Namespace, pod.Name, err)
	}
	if again.UID != pod.UID {
		return nil, fmt.Errorf("the Pod %s/%s was replaced while its log was read", pod.Namespace, pod.Name)
	}
	return log, nil
}

// look lists one folder of a node.
func (r *Rollback) look(ctx context.Context, n NodeState, dir string) (ConfDir, error) {
	if !PlainDir(dir) {
		return ConfDir{}, fmt.Errorf("%q is no folder that may be mounted into a Pod", dir)
	}
	for try := 1; ; try++ {
		nonce := fresh()
		_, log, err := r.runJob(ctx, lookJob(n.Name, dir, nonce), n.Image)
		if err != nil {
			return ConfDir{}, err
		}
		found, err := parseLook(log, nonce, dir)
		if !errors.Is(err, errChanged) || try == comebacks {
			return found, err
		}
		r.notef(StepNode, "node %s: %v; looking again", n.Name, err)
	}
}

// lookAround looks at each node before anything is changed on any.
func (r *Rollback) lookAround(ctx context.Context) error {
	if r.Access == AccessManual {
		return nil
	}
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		r.waitf(StepNode, "looking at the CNI conf of node %s", n.Name)
		if err := r.lookAt(ctx, n); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n.Err = err.Error()
			return nil // the guard says it; the other nodes would not change that
		}
		if err := r.noteImage(*n); err != nil {
			return err
		}
		r.notef(StepNode, "node %s: %s", n.Name, seen(*n))
	}
	return nil
}

// noteImage keeps on this machine what has run on a node.
func (r *Rollback) noteImage(n NodeState) error {
	if err := r.Store.SaveImage(n.Name, n.Image); err != nil {
		return fmt.Errorf("noting the image that runs on node %s: %w", n.Name, err)
	}
	return nil
}

// lookAt looks where the node's confs are known to be, or where they may be.
func (r *Rollback) lookAt(ctx context.Context, n *NodeState) error {
	if n.ConfDir != "" {
		dir, err := r.look(ctx, *n, n.ConfDir)
		if err == nil {
			n.Dir, n.Looked = dir, true
			return nil
		}
		// What the DaemonSet tells holds for the nodes that it serves.
		if !errors.Is(err, errNoFolder) || r.ConfDir != "" || n.Daemon || n.Looked {
			if errors.Is(err, errNoFolder) && r.ConfDir == "" {
				err = fmt.Errorf("%w: name the one that the node's runtime reads with --cni-conf-dir", err)
			}
			return err
		}
	}
	// Of the known places one that Multus has been in is the one; else the first
	// with a conf, as they are ordered by the node's distribution. Confs alone tell
	// nothing: container tools leave theirs in the standard place.
	best, where := empty, ""
	for _, place := range n.KnownDirs {
		dir, err := r.look(ctx, *n, place)
		if errors.Is(err, errNoFolder) {
			continue
		}
		if err != nil {
			return err
		}
		if worth := worthOf(dir); !n.Looked || worth > best {
			n.Dir, n.Looked, best, where = dir, true, worth, place
		}
		if best == traces {
			break
		}
	}
	if !n.Looked {
		return fmt.Errorf("none of the known CNI conf dirs is there (%s): name it with --cni-conf-dir", join(n.KnownDirs))
	}
	n.ConfDir = where
	if best < traces && n.Finding().Primary == nil {
		n.Looked = false
		return fmt.Errorf("none of the known CNI conf dirs (%s) has a conf that starts Pods, so that the node has another one: name it with --cni-conf-dir", join(n.KnownDirs))
	}
	return nil
}

// How much a folder looks like the one that Multus is in.
const (
	empty = iota
	confs
	traces
)

func worthOf(dir ConfDir) int {
	switch finding := Find(dir); {
	case len(finding.Multus) > 0 || finding.Credentials || len(Backups(dir.Backups)) > 0:
		return traces
	case len(Confs(dir.Files)) > 0:
		return confs
	}
	return empty
}

// seen says in a line what a look found.
func seen(n NodeState) string {
	finding := n.Finding()
	switch {
	case len(finding.Multus) > 0:
		return removeText(n, finding)
	case finding.Credentials:
		return fmt.Sprintf("no Multus conf in %s; its folder %s is left", n.ConfDir, credentialDir)
	}
	return "no Multus conf in " + n.ConfDir
}

// node gives the state of a node of the plan.
func (r *Rollback) node(name string) *NodeState {
	i := slices.IndexFunc(r.state.Nodes, func(n NodeState) bool { return n.Name == name })
	return &r.state.Nodes[i]
}

// nodeResult gives the entry of a node in the result.
func (r *Rollback) nodeResult(n NodeState) *NodeResult {
	i := slices.IndexFunc(r.result.Nodes, func(have NodeResult) bool { return have.Name == n.Name })
	if i < 0 {
		r.result.Nodes = append(r.result.Nodes, NodeResult{Name: n.Name})
		i = len(r.result.Nodes) - 1
	}
	return &r.result.Nodes[i]
}
