package status

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

const (
	// logBytes and logLine bound what is read of a daemon's log; the lines
	// looked for stand at its start.
	logBytes = 1 << 20
	logLine  = 64 << 10
	// logKept bounds the lines kept as evidence.
	logKept = 200
	// fewDaemons is of how many the logs are read where no canary says which.
	fewDaemons = 5
	// logWithin bounds the wait for a log: the kubelet of a node that went
	// silent would hold the answer up for half a minute.
	logWithin = 3 * time.Second
)

// logs reads the logs of the daemons that serve the canaries, or of a few where
// there is no canary, and of those too young to be ready by their age.
func (r *reader) logs() error {
	nodes := r.canaryNodes()
	few := len(nodes) == 0
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range r.data.Shared.Pods {
		pod := &r.data.Shared.Pods[i]
		_, instance, started := rollout.DaemonContainer(pod)
		young := r.data.At.Sub(started) < rollout.ReadyByAge
		if instance == "" || (!young && !nodes[pod.Spec.NodeName] && (!few || i >= fewDaemons)) {
			continue
		}
		group.Go(func() error { r.log(pod); return nil })
	}
	return group.Wait()
}

// log reads one daemon's log. One that cannot be had is no trouble: what it
// would tell is then unknown.
func (r *reader) log(pod *corev1.Pod) {
	ctx, cancel := context.WithTimeoutCause(r.ctx, logWithin, errors.New("it did not come within "+logWithin.String()))
	defer cancel()
	state, lines, err := readLog(ctx, r.Clients, pod, false, nil)
	if apierrors.IsForbidden(err) {
		r.gap(v1alpha1.SectionMultus, fmt.Sprintf("the daemons' logs cannot be read (right missing: %s)",
			cluster.Right{Verb: "get", Resource: "pods", Subresource: "log", Namespace: pod.Namespace}))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data.Logs[pod.UID] = state
	if len(lines) > 0 {
		name, _, _ := rollout.DaemonContainer(pod)
		r.data.Shared.PodLogs = append(r.data.Shared.PodLogs, evidence.PodLog{
			Pod:       evidence.Ref{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Container: name, Log: strings.Join(lines, "\n"),
		})
	}
}

// readLog reads a daemon's log from its container's start, and follows it where
// asked to; changed, if not nil, hears of each line.
func readLog(ctx context.Context, clients *cluster.Clients, pod *corev1.Pod, follow bool, changed func(rollout.DaemonLog)) (rollout.DaemonLog, []string, error) {
	name, instance, started := rollout.DaemonContainer(pod)
	state := rollout.DaemonLog{Container: instance}
	stream, err := clients.Core.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: name, Follow: follow, LimitBytes: ptr.To[int64](logBytes), SinceTime: new(metav1.NewTime(started)),
	}).Stream(ctx)
	if err != nil {
		state.Unreadable = unreadable(ctx, err)
		return state, nil, err
	}
	defer stream.Close()
	var lines []string
	err = eachLine(io.LimitReader(stream, logBytes), func(line string) {
		state.Feed(line)
		if len(lines) < logKept {
			lines = append(lines, line)
		}
		if changed != nil {
			changed(state)
		}
	})
	if err != nil {
		state.Unreadable = unreadable(ctx, err)
		return state, lines, err
	}
	state.Read = true
	return state, lines, nil
}

func unreadable(ctx context.Context, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "its log may not be read"
	case ctx.Err() != nil:
		return fmt.Sprintf("its log cannot be read (%v)", context.Cause(ctx))
	}
	return fmt.Sprintf("its log cannot be read (%v)", err)
}

// eachLine visits the lines of a log. One that is longer than any of interest
// is passed over.
func eachLine(r io.Reader, visit func(string)) error {
	lines := bufio.NewReaderSize(r, logLine)
	whole := true
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if whole && !tooLong && len(line) > 0 {
			visit(strings.TrimRight(string(line), "\r\n"))
		}
		whole = !tooLong
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !tooLong:
			return err
		}
	}
}
