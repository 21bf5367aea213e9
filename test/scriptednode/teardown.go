package scriptednode

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// end takes a deleted Pod down and removes it from the API.
func (a *attempt) end(ctx context.Context) error {
	if a.pod == nil {
		return nil // never taken up: the API server ends it by itself
	}
	if err := a.node.alive.wait(ctx); err != nil {
		return err
	}
	teardown := a.worker.script.Teardown
	if err := a.fight(ctx, teardown.Stuck); err != nil {
		return err
	}
	took := a.node.pace.Remove
	switch {
	case a.worker.daemon:
		a.stopDaemon(ctx)
		took = a.node.pace.DaemonTeardown
	case a.state.sandbox:
		took = a.node.pace.Teardown
	}
	if err := a.pause(ctx, teardown.After+took); err != nil {
		return err
	}
	if !a.isDown {
		a.kill()
		a.down("deleted")
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	err := a.node.removePod(ctx, a.id)
	a.node.logs.forget(a.id)
	return err
}

// fight is a teardown that fails until the node is told to let go.
func (a *attempt) fight(ctx context.Context, text string) error {
	for text != "" && !a.node.stuck.passable() {
		a.event("", corev1.EventTypeWarning, "FailedKillPod", delError(a.id.uid, a.sandbox, text))
		timer := time.NewTimer(a.node.pace.Retry)
		defer timer.Stop()
		select {
		case <-a.node.stuck.door():
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill ends the containers of a Pod that was deleted while it ran. Those that
// never started end in the kubelet's words for it.
func (a *attempt) kill() {
	for _, c := range slices.Concat(a.pod.Spec.InitContainers, a.pod.Spec.Containers) {
		state := a.state.containers[c.Name]
		switch {
		case state.state.Running != nil:
			a.event(c.Name, corev1.EventTypeNormal, "Killing", "Stopping container "+c.Name)
			a.stop(c.Name, 137, "", "")
		case state.state.Terminated == nil:
			a.state.exit(c.Name, 137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated", time.Now())
		}
	}
}
