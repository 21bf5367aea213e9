package scriptednode

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func (g Guard) play(ctx context.Context, a *attempt) error {
	if len(a.pod.Spec.InitContainers) == 0 {
		return nil
	}
	if len(a.requested) > 0 && !a.multus {
		g = Guard{Exit: 1, Message: guardNoInterface, For: a.node.pace.GuardWait}
	}
	if g.Message == "" && g.Exit == 0 {
		g.Message = "done"
		if addresses := requestedAddresses(a.requested); len(addresses) > 0 {
			g.Message = guardFound + addresses[0].Addr().String()
		}
	}
	if g.For == 0 {
		g.For = a.node.pace.Guard
	}
	name := a.pod.Spec.InitContainers[0].Name
	if err := a.runOne(ctx, name, g.Log, g.For); err != nil {
		return err
	}
	a.stop(name, g.Exit, "", g.Message)
	if g.Exit != 0 {
		return a.finish(ctx)
	}
	return a.write(ctx)
}

func (m Main) play(ctx context.Context, a *attempt) error {
	for i, c := range a.pod.Spec.InitContainers {
		if a.state.containers[c.Name].succeeded() && i == 0 {
			continue // the guard has run
		}
		if err := a.runOne(ctx, c.Name, nil, a.node.pace.Container); err != nil {
			return err
		}
		a.stop(c.Name, 0, "", "")
	}
	for _, c := range a.pod.Spec.Containers {
		a.start(c.Name)
		a.print(c.Name, m.Log...)
	}
	if err := a.write(ctx); err != nil || m.Runs {
		return err
	}
	if err := a.pause(ctx, a.node.pace.Container); err != nil {
		return err
	}
	for _, c := range a.pod.Spec.Containers {
		a.stop(c.Name, m.Exit, "", m.Message)
	}
	return a.finish(ctx)
}

// runOne starts a container, reports it, and waits for as long as it runs.
func (a *attempt) runOne(ctx context.Context, name string, log []string, d time.Duration) error {
	a.start(name)
	a.print(name, log...)
	if err := a.write(ctx); err != nil {
		return err
	}
	return a.pause(ctx, d)
}

// start starts a container, with the events of an image that is on the node.
func (a *attempt) start(name string) {
	image := a.image(name)
	a.event(name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", image))
	a.event(name, corev1.EventTypeNormal, "Created", "Container created")
	a.event(name, corev1.EventTypeNormal, "Started", "Container started")
	a.state.run(name, a.id.uid, time.Now())
	a.node.logs.open(a.id, name)
}

// stop ends a container; its message is also the last line it printed, as the
// guard script does it.
func (a *attempt) stop(name string, code int32, reason, message string) {
	if message != "" {
		a.print(name, message)
	}
	a.state.exit(name, code, reason, message, time.Now())
	a.node.logs.close(a.id, name)
}

func (a *attempt) print(name string, lines ...string) {
	for _, line := range lines {
		a.node.logs.print(a.id, name, time.Now(), line)
	}
}

func (a *attempt) image(name string) string {
	for _, c := range slices.Concat(a.pod.Spec.InitContainers, a.pod.Spec.Containers) {
		if c.Name == name {
			return c.Image
		}
	}
	return ""
}

func (p Pull) play(ctx context.Context, a *attempt) error {
	target := a.pod.Spec.Containers[0]
	if len(a.pod.Spec.InitContainers) > 0 && !p.Main {
		target = a.pod.Spec.InitContainers[0]
	}
	cause := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", target.Image, target.Image, target.Image)
	a.event(target.Name, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", target.Image))
	a.event(target.Name, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: rpc error: code = NotFound desc = %s", target.Image, cause))
	a.event(target.Name, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
	if err := a.wait(ctx, target.Name, "ErrImagePull", "rpc error: code = NotFound desc = "+cause); err != nil {
		return err
	}
	for {
		if err := a.pause(ctx, a.node.pace.Retry); err != nil {
			return err
		}
		a.event(target.Name, corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", target.Image))
		a.event(target.Name, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
		if err := a.wait(ctx, target.Name, "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: rpc error: code = NotFound desc = %s", target.Image, cause)); err != nil {
			return err
		}
	}
}

// wait reports a container as waiting.
func (a *attempt) wait(ctx context.Context, name, reason, message string) error {
	a.state.containers[name].state = waiting(reason, message)
	a.node.logs.waits(a.id, name, reason)
	return a.write(ctx)
}
