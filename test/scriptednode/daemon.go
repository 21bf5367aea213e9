package scriptednode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Daemon is how the Multus daemon behaves from the start of its container on.
type Daemon struct {
	// ConfAfterReady is from the container being Ready to the conf being
	// written: Ready only means that the process started.
	ConfAfterReady time.Duration
	// LogLevel other than "", "verbose" and "debug" prints none of the lines by
	// which readiness can be told.
	LogLevel string
	// Fault is what goes wrong; empty means nothing.
	Fault DaemonFault
}

// DaemonFault is what goes wrong with the daemon Pod.
type DaemonFault string

// The faults of a daemon Pod. All but the last are met again at every restart,
// until SetDaemon says otherwise.
const (
	// DaemonCrashes ends the daemon with exit code 1 soon after its start.
	DaemonCrashes DaemonFault = "crashes"
	// DaemonOOMKilled ends it for lack of memory.
	DaemonOOMKilled DaemonFault = "oom-killed"
	// InstallerFails ends the first init container with an error.
	InstallerFails DaemonFault = "installer-fails"
	// DaemonUnready runs the daemon without ever being Ready.
	DaemonUnready DaemonFault = "unready"
)

// installerError is what the installer says when the shim is in use.
const installerError = "cp: cannot create regular file '/host/opt/cni/bin/multus-shim': Text file busy"

// crashMessage is the termination message of a daemon whose configuration does
// not parse: a stack trace that names no cause.
const crashMessage = "[panic] ========= Stack trace output ========\n[panic] Multus Panic\n[panic] ========= Stack trace output end ========"

// daemonProcess is one run of the daemon's container.
type daemonProcess struct {
	recorder record.EventRecorder
	kill     chan string // the reason of a sudden end
	verbose  bool
	// handles tells that SIGTERM is handled: before, it leaves all as it is.
	handles bool
	stop    context.CancelFunc
}

// event emits an event the way the daemon does: component multus, no host. Its
// counters start anew with every run of the daemon.
func (d *daemonProcess) event(pod *corev1.Pod, kind, reason, message string) {
	object := reference(pod, "")
	d.recorder.Event(&object, kind, reason, message)
}

func (a *attempt) newProcess(behaviour Daemon) *daemonProcess {
	ctx, stop := context.WithCancel(a.node.background)
	return &daemonProcess{
		stop: stop, kill: make(chan string, 1),
		recorder: newRecorder(ctx, a.node.client, corev1.EventSource{Component: "multus"}),
		verbose:  behaviour.LogLevel == "" || behaviour.LogLevel == "verbose" || behaviour.LogLevel == "debug",
	}
}

// playDaemon plays the Pod of the Multus DaemonSet: installers, then the daemon
// until it is killed, and again.
func (a *attempt) playDaemon(ctx context.Context) error {
	if !a.adopted {
		if _, err := a.makeSandbox(ctx, nil); err != nil {
			return err
		}
		if err := a.install(ctx); err != nil {
			return err
		}
	}
	for crashes := 0; ; crashes++ {
		if err := a.runDaemon(ctx); err != nil {
			return err
		}
		if err := a.restartDaemon(ctx, crashes > 0); err != nil {
			return err
		}
	}
}

// install runs the init containers.
func (a *attempt) install(ctx context.Context) error {
	for _, c := range a.pod.Spec.InitContainers {
		for {
			if err := a.runOne(ctx, c.Name, nil, a.node.pace.Installer); err != nil {
				return err
			}
			if a.node.behaviour().Fault != InstallerFails {
				a.stop(c.Name, 0, "", "")
				break
			}
			a.stop(c.Name, 1, "", installerError)
			if err := a.crashLoop(ctx, c.Name); err != nil {
				return err
			}
		}
	}
	return a.write(ctx)
}

// runDaemon is one run of the daemon's container; it returns when it ended by
// itself or was killed.
func (a *attempt) runDaemon(ctx context.Context) error {
	behaviour := a.node.behaviour()
	p := a.newProcess(behaviour)
	a.process = p
	if a.adopted {
		a.adoptDaemon(p)
	} else if err := a.startDaemon(ctx, p, behaviour); err != nil {
		return err
	}
	a.adopted = false
	var reason string
	switch behaviour.Fault {
	case DaemonCrashes:
		return a.daemonEnded(ctx, 1, "Error", crashMessage)
	case DaemonOOMKilled:
		return a.daemonEnded(ctx, 137, "OOMKilled", "")
	case InstallerFails, DaemonUnready:
	}
	select {
	case reason = <-p.kill:
	case <-ctx.Done():
		return ctx.Err()
	}
	return a.daemonEnded(ctx, 137, reason, "")
}

// startDaemon starts the process, reports it Ready, and writes the conf after
// that.
func (a *attempt) startDaemon(ctx context.Context, p *daemonProcess, behaviour Daemon) error {
	a.start(daemonContainer)
	a.state.containers[daemonContainer].unready = behaviour.Fault == DaemonUnready
	a.say(p, time.Now(), startLines(a.node.site)...)
	crashes := behaviour.Fault == DaemonCrashes || behaviour.Fault == DaemonOOMKilled
	if !crashes {
		// Before the status: whoever sees the daemon Ready can reach it.
		a.node.cni.setDaemon(p)
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	if crashes {
		return a.pause(ctx, a.node.pace.Container)
	}
	a.journal(DaemonReady, "")
	timer := time.NewTimer(behaviour.ConfAfterReady)
	defer timer.Stop()
	select {
	case <-timer.C:
	case reason := <-p.kill:
		p.kill <- reason // for runDaemon
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	p.handles = true
	a.say(p, time.Now(), "API readiness check done!", "Generated MultusCNI config: "+a.node.site.multusConf())
	a.node.setConf(true, "daemon")
	a.say(p, time.Now(), watchLine(a.node.site))
	return nil
}

// adoptDaemon takes over a daemon that has run for long: its conf is as the
// node has it, its log is what it printed at its start.
func (a *attempt) adoptDaemon(p *daemonProcess) {
	a.node.logs.open(a.id, daemonContainer)
	at := a.state.startedAt
	if running := a.state.containers[daemonContainer].state.Running; running != nil {
		at = running.StartedAt.Time
	}
	a.say(p, at, startLines(a.node.site)...)
	a.say(p, at.Add(4*time.Second), "API readiness check done!", "Generated MultusCNI config: "+a.node.site.multusConf(), watchLine(a.node.site))
	p.handles = true
	a.node.cni.setDaemon(p)
	a.worker.settled.open()
}

// daemonEnded reports a daemon that ended by itself: its conf stays.
func (a *attempt) daemonEnded(ctx context.Context, code int32, reason, message string) error {
	a.endProcess(code, reason, message)
	return a.write(ctx)
}

func (a *attempt) endProcess(code int32, reason, message string) {
	a.node.cni.clearDaemon(a.process)
	a.process.stop()
	a.process = nil
	a.stop(daemonContainer, code, reason, message)
	a.journal(DaemonEnded, fmt.Sprintf("exit code %d %s", code, reason))
}

// restartDaemon waits as kubelet does: not at all the first time.
func (a *attempt) restartDaemon(ctx context.Context, again bool) error {
	if again || !a.node.restart.passable() {
		if err := a.crashLoop(ctx, daemonContainer); err != nil {
			return err
		}
	}
	return a.node.restart.wait(ctx)
}

// crashLoop is one back-off of a container that ended.
func (a *attempt) crashLoop(ctx context.Context, name string) error {
	who := fmt.Sprintf("%s_%s(%s)", a.id.Name, a.id.Namespace, a.id.uid)
	a.event(name, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", name, who))
	a.state.backoff(name, fmt.Sprintf("back-off 10s restarting failed container=%s pod=%s", name, who))
	if err := a.write(ctx); err != nil {
		return err
	}
	return a.pause(ctx, a.node.pace.Backoff)
}

// stopDaemon is the daemon's end by SIGTERM: it takes its conf with it.
func (a *attempt) stopDaemon(ctx context.Context) {
	p := a.process
	if p == nil {
		return
	}
	if !p.handles {
		a.endProcess(2, "Error", "")
		return
	}
	a.say(p, time.Now(), "caught terminated, stopping...", "Stopped monitoring, closing channel ...", "ConfigWatcher done")
	if sleep(ctx, a.node.pace.ConfGone) != nil {
		return
	}
	a.say(p, time.Now(), "Delete old config @ /host/etc/cni/net.d/00-multus.conf")
	a.node.setConf(false, "SIGTERM")
	a.say(p, time.Now(), "multus daemon is exited")
	a.endProcess(0, "", "")
}
