package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// The lines of a thick daemon of Multus v4.3.0 while it becomes usable.
const (
	started   = "2026-01-15T11:59:01Z [verbose] multus-daemon started\n"
	answering = started + "2026-01-15T11:59:02Z [verbose] API readiness check done!\n"
	written   = answering + "2026-01-15T11:59:05Z [verbose] Generated MultusCNI config: {}\n2026-01-15T11:59:05Z [verbose] started to watch file /x\n"
	empty     = answering + "2026-01-15T11:59:05Z [verbose] Generated MultusCNI config: \n2026-01-15T11:59:05Z [verbose] started to watch file /x\n"
	going     = written + "2026-01-15T11:59:50Z [verbose] caught terminated, stopping...\n"
)

// read is the whole log of the daemon's present container.
func read(text string) DaemonLog {
	return DaemonLog{Container: "containerd://multus-a", Read: true, AttachState: multus.AttachReady(text)}
}

func TestAttachReadiness(t *testing.T) {
	forbidden := DaemonLog{Container: "containerd://multus-a", Unreadable: "its log may not be read (right missing)"}
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		log    DaemonLog
		want   Attach
	}{
		{
			name: "the log says that the conf was written", log: read(written),
			want: Attach{Ready: true, By: ByLog, Message: "daemon Pod multus-a has written its CNI conf"},
		},
		{
			name: "the log of the container before says so", log: DaemonLog{Container: "containerd://before", Read: true, AttachState: multus.AttachReady(written)},
			want: Attach{Message: "reading the log of daemon Pod multus-a"},
		},
		{
			name: "the log is not read yet", log: DaemonLog{Container: "containerd://multus-a"},
			want: Attach{Message: "reading the log of daemon Pod multus-a"},
		},
		{
			name: "the log is followed by nobody yet", log: DaemonLog{},
			want: Attach{Message: "reading the log of daemon Pod multus-a"},
		},
		{
			name: "the socket answers, the conf is not written", log: read(answering),
			want: Attach{Wait: 2 * time.Minute, Message: "daemon Pod multus-a is Ready, but has not written its CNI conf yet"},
		},
		{
			name: "verbose, and nothing of readiness yet", log: read(started),
			want: Attach{Wait: 2 * time.Minute, Message: "daemon Pod multus-a is Ready, but has not written its CNI conf yet"},
		},
		{
			name: "an empty conf was written", log: read(empty),
			want: Attach{Cause: verdict.CNIConfEmpty, Message: "daemon Pod multus-a wrote an empty CNI conf: it could not read the primary network's"},
		},
		{
			name: "an empty conf was written long ago", change: age(time.Hour), log: read(empty),
			want: Attach{Cause: verdict.CNIConfEmpty, Message: "daemon Pod multus-a wrote an empty CNI conf: it could not read the primary network's"},
		},
		{
			name: "the daemon is stopping", log: read(going),
			want: Attach{Message: "daemon Pod multus-a is stopping"},
		},
		{
			name: "three minutes without a restart, log rotated", change: age(3 * time.Minute), log: read("2026-01-15T11:59:50Z [error] x\n"),
			want: Attach{Ready: true, By: ByAge, Message: "daemon Pod multus-a has run for 3m0s without a restart"},
		},
		{
			name: "three minutes without a restart, log not read yet", change: age(time.Hour), log: DaemonLog{},
			want: Attach{Ready: true, By: ByAge, Message: "daemon Pod multus-a has run for 1h0m0s without a restart"},
		},
		{
			name: "a second short of three minutes", change: age(3*time.Minute - time.Second), log: read(answering),
			want: Attach{Wait: time.Second, Message: "daemon Pod multus-a is Ready, but has not written its CNI conf yet"},
		},
		{
			name: "the log does not tell, Ready for four seconds", change: age(4 * time.Second), log: read(""),
			want: Attach{Wait: 6 * time.Second, Message: "daemon Pod multus-a: its log does not tell (log level below verbose, or a thin plugin); waiting 10s after Ready"},
		},
		{
			name: "the log does not tell, Ready for ten seconds", change: age(10 * time.Second), log: read(""),
			want: Attach{Ready: true, By: BySettle, Message: "daemon Pod multus-a has been Ready for 10s; whether it has written its CNI conf is not known: its log does not tell (log level below verbose, or a thin plugin)"},
		},
		{
			name: "the log is forbidden, Ready for four seconds", change: age(4 * time.Second), log: forbidden,
			want: Attach{Wait: 6 * time.Second, Message: "daemon Pod multus-a: its log may not be read (right missing); waiting 10s after Ready"},
		},
		{
			name: "the log is forbidden, Ready for a minute", log: forbidden,
			want: Attach{Ready: true, By: BySettle, Message: "daemon Pod multus-a has been Ready for 10s; whether it has written its CNI conf is not known: its log may not be read (right missing)"},
		},
		{
			name: "the container came back before its Pod was seen unready", log: forbidden,
			change: func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(noon.Add(-3 * time.Second))
			},
			want: Attach{Wait: 7 * time.Second, Message: "daemon Pod multus-a: its log may not be read (right missing); waiting 10s after Ready"},
		},
		{
			name: "the container does not run", log: read(written),
			change: func(pod *corev1.Pod) { waits("CrashLoopBackOff", "", 1, nil)(pod) },
			want:   Attach{Message: "no container of daemon Pod multus-a is running"},
		},
		{
			name: "only a side container runs", log: read(written),
			change: func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Name = "side" },
			want:   Attach{Message: "no container of daemon Pod multus-a is running"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := healthy().Pods[1]
			if test.change != nil {
				test.change(pod)
			}
			got := AttachReadiness(pod, test.log, noon, 10*time.Second)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// age is how long the daemon has run and been Ready.
func age(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		start := metav1.NewTime(noon.Add(-d))
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = start
		pod.Status.Conditions[0].LastTransitionTime = start
	}
}

func TestDaemonContainer(t *testing.T) {
	pod := healthy().Pods[1]
	name, instance, start := DaemonContainer(pod)
	if name != "kube-multus" || instance != "containerd://multus-a" || !start.Equal(noon.Add(-time.Minute)) {
		t.Errorf("got %q, %q, %v", name, instance, start)
	}
	pod.Status.ContainerStatuses = nil
	if name, instance, _ := DaemonContainer(pod); name != "" || instance != "" {
		t.Errorf("a container that does not run: %q, %q", name, instance)
	}
}
