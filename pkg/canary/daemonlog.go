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

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
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
	// logSilence is how long an open log may say nothing before it counts as one
	// that does not tell: the first lines take a moment to come.
	logSilence = time.Second
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
	known logPass // what is known
}

// logPass is one reading of a log from its start. It replaces what is known
// once it has come as far as the one before: until then it knows less.
type logPass struct {
	state rollout.DaemonLog
	lines []string // the first logKept
	count int
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
		current.known.state.Container = instance
		r.live.logs[pod.UID] = current
		r.live.wg.Go(func() { r.followLog(ctx, current, started) })
	}
	return current.read()
}

func (d *daemonLog) read() rollout.DaemonLog {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known.state
}

func (d *daemonLog) update(change func()) {
	d.mu.Lock()
	change()
	d.mu.Unlock()
	d.wake()
}

// followLog reads the log until ctx ends, or until it has been read as far as it
// ever will be. A stream that breaks is opened again and read from the start.
func (r *Retest) followLog(ctx context.Context, d *daemonLog, started time.Time) {
	options := &corev1.PodLogOptions{
		Container: d.container, Follow: true, LimitBytes: ptr.To[int64](logBytes),
		SinceTime: new(metav1.NewTime(started)),
	}
	for ctx.Err() == nil {
		stream, err := r.Clients.Core.Pods(d.pod.Namespace).GetLogs(d.pod.Name, options).Stream(ctx)
		read := 0
		if err == nil {
			read, err = d.scan(stream)
			_ = stream.Close()
		}
		if ctx.Err() != nil || read >= logBytes {
			return
		}
		if err != nil {
			d.update(func() { d.known.state.Unreadable = unreadable(d.pod, err) })
		}
		if apierrors.IsForbidden(err) {
			return
		}
		if cluster.Pause(ctx, logRetry) != nil {
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

// scan reads a stream to its end and gives the number of bytes read. What it
// finds counts as the whole log so far when it has come as far as the stream
// before, when the stream ends, or when it falls silent.
func (d *daemonLog) scan(stream io.Reader) (read int, err error) {
	pass := &logPass{state: rollout.DaemonLog{Container: d.read().Container}}
	readSoFar := func() {
		d.update(func() {
			pass.state.Read = true
			d.known = *pass
		})
	}
	silent := time.AfterFunc(logSilence, readSoFar)
	defer silent.Stop()
	lines := bufio.NewReaderSize(stream, logLine)
	cut := false // the next bytes are the rest of a line that was too long
	for {
		line, err := lines.ReadSlice('\n')
		read += len(line)
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 && !tooLong && !cut {
			d.update(func() { d.feed(pass, strings.TrimRight(string(line), "\r\n")) })
		}
		cut = tooLong
		switch {
		case errors.Is(err, io.EOF):
			readSoFar()
			return read, nil
		case err != nil && !tooLong:
			return read, err
		}
	}
}

// feed gives a pass its next line.
func (d *daemonLog) feed(pass *logPass, line string) {
	pass.state.Feed(line)
	pass.state.Read = pass.state.Read || pass.state.Known()
	if len(pass.lines) < logKept {
		pass.lines = append(pass.lines, line)
	}
	if pass.count++; pass.state.Read && pass.count >= d.known.count {
		d.known = *pass
	}
}

// text is the kept part of the log.
func (d *daemonLog) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.known.lines, "\n")
}
