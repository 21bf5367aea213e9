package canary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vlan50/kubectl-vlan50/pkg/rollout"
)

const (
	// logBytes bounds what is read of a daemon's log: the lines looked for
	// stand at its start.
	logBytes = 1 << 20
	// logLine bounds one line, so that a hostile log cannot fill the memory.
	logLine = 64 << 10
	// logRetry is how long after a broken stream it is opened again.
	logRetry = 300 * time.Millisecond
	// logKept bounds the lines kept as evidence.
	logKept = 200
)

// daemonLog follows the log of one daemon container from its start, so that the
// moment it becomes usable is caught.
type daemonLog struct {
	pod       *corev1.Pod
	container string
	cancel    context.CancelFunc
	wake      func()

	mu    sync.Mutex
	state rollout.DaemonLog
	lines []string
}

// daemonLog gives what is known of a daemon Pod's log, and begins to follow it
// where nobody does yet. A restarted container is a new log.
func (r *Retest) daemonLog(pod *corev1.Pod) rollout.DaemonLog {
	name, instance, started := rollout.DaemonContainer(pod)
	if instance == "" {
		return rollout.DaemonLog{}
	}
	current := r.live.logs[pod.UID]
	if current == nil || current.read().Container != instance {
		if current != nil {
			current.cancel()
		}
		ctx, cancel := context.WithCancel(r.live.ctx)
		current = &daemonLog{pod: pod, container: name, cancel: cancel, wake: r.live.wake}
		current.state.Container = instance
		r.live.logs[pod.UID] = current
		r.live.wg.Go(func() { r.followLog(ctx, current, started) })
	}
	return current.read()
}

func (d *daemonLog) read() rollout.DaemonLog {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (d *daemonLog) update(change func(*rollout.DaemonLog)) {
	d.mu.Lock()
	change(&d.state)
	d.mu.Unlock()
	d.wake()
}

// followLog reads the log until ctx ends. A stream that breaks is opened again
// and read from the start, which is short.
func (r *Retest) followLog(ctx context.Context, d *daemonLog, started time.Time) {
	options := &corev1.PodLogOptions{
		Container: d.container, Follow: true, LimitBytes: ptr.To[int64](logBytes),
		SinceTime: ptr.To(metav1.NewTime(started)),
	}
	for ctx.Err() == nil {
		stream, err := r.Clients.Core.Pods(d.pod.Namespace).GetLogs(d.pod.Name, options).Stream(ctx)
		if err == nil {
			err = d.scan(stream)
			_ = stream.Close()
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.update(func(s *rollout.DaemonLog) { s.Unreadable = unreadable(d.pod, err) })
		}
		if apierrors.IsForbidden(err) {
			return
		}
		if sleep(ctx, logRetry) != nil {
			return
		}
	}
}

func unreadable(pod *corev1.Pod, err error) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("its log may not be read (right missing: get pods/log in namespace %s)", pod.Namespace)
	}
	return fmt.Sprintf("its log cannot be read (%v)", err)
}

// scan feeds a stream's lines to the state, which begins anew with the stream.
func (d *daemonLog) scan(stream io.Reader) error {
	d.update(func(s *rollout.DaemonLog) {
		*s = rollout.DaemonLog{Container: s.Container, Read: true}
		d.lines = nil
	})
	lines := bufio.NewReaderSize(stream, logLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && !errors.Is(err, bufio.ErrBufferFull) {
			text := strings.TrimRight(string(line), "\r\n")
			d.update(func(s *rollout.DaemonLog) {
				s.Feed(text)
				if len(d.lines) < logKept {
					d.lines = append(d.lines, text)
				}
			})
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// text is the kept part of the log.
func (d *daemonLog) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "\n")
}
