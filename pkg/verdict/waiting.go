package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// isImageReason: kubelet's waiting reasons for an image that cannot be had
// (pkg/kubelet/images/types.go).
func isImageReason(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}

// isConfigReason: kubelet's waiting reasons for a container that cannot be made
// (pkg/kubelet/container/sync_result.go).
func isConfigReason(reason string) bool {
	switch reason {
	case "CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "PreStartHookError", "RunContainerError", "PostStartHookError":
		return true
	}
	return false
}

// waiting is rule 8.
func waiting(s *scene) *finding {
	for _, c := range s.containers() {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch {
		case isImageReason(w.Reason):
			return s.imageBlocked(c, w)
		case isConfigReason(w.Reason):
			f := &finding{
				cause: ContainerConfigError, lines: append(waitingLines(c.Name, w), eventLines(newestOf(s.ev.pulls))...),
				message: fmt.Sprintf("%s: container %s cannot be made: %s", s.who(), c.Name, cmp.Or(firstLine(w.Message), w.Reason)),
			}
			return f.standing(s.ev.pulls...)
		}
	}
	return s.waitingByEvents()
}

// waitingByEvents is rule 8 where the statuses do not tell yet, or no more, what
// a container waits for.
func (s *scene) waitingByEvents() *finding {
	newest := newestOf(s.ev.pulls)
	if len(newest) == 0 || s.running() || !s.sandboxStands() {
		return nil
	}
	message, at := plainMessage(newest[0]), evidence.EventTime(newest[0])
	if s.ev.got.After(at) || s.finishedAt().After(at) {
		return nil // it got on since
	}
	f := &finding{lines: eventLines(newest)}
	switch {
	case isImageEvent(newest[0].Reason, message):
		f.cause, f.names.image = ImagePull, s.imageInEvents()
		f.message = fmt.Sprintf("%s: a container's image cannot be had: %s", s.who(), firstLine(message))
	case newest[0].Reason == "Failed" && strings.HasPrefix(message, "Error: "):
		f.cause = ContainerConfigError
		f.message = fmt.Sprintf("%s: a container cannot be made: %s", s.who(), firstLine(message))
	default:
		return nil
	}
	return f.standing(s.ev.pulls...)
}

// isImageEvent tells kubelet's events about an image from those about a
// container (pkg/kubelet/images, pkg/kubelet/events).
func isImageEvent(reason, message string) bool {
	switch reason {
	case "ErrImageNeverPull", "InspectFailed":
		return true
	case "BackOff":
		return strings.HasPrefix(message, "Back-off pulling image")
	}
	return strings.HasPrefix(message, "Failed to pull image") || isImageReason(strings.TrimPrefix(message, "Error: "))
}

// imageInEvents finds the image in kubelet's `Failed to pull image "x"` and
// `Back-off pulling image "x"`, the newest first.
func (s *scene) imageInEvents() string {
	for _, ev := range slices.Backward(s.ev.pulls) {
		if _, rest, ok := strings.Cut(plainMessage(ev), ` image "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			return name
		}
	}
	return ""
}

func (s *scene) imageBlocked(c corev1.ContainerStatus, w *corev1.ContainerStateWaiting) *finding {
	image := cmp.Or(s.imageOf(c.Name), c.Image)
	f := &finding{
		cause: ImagePull, names: names{image: image},
		lines:   append(waitingLines(c.Name, w), eventLines(newestOf(s.ev.pulls))...),
		message: fmt.Sprintf("%s: container %s has no image %s: %s", s.who(), c.Name, image, cmp.Or(firstLine(w.Message), w.Reason)),
	}
	f.standing(s.ev.pulls...)
	if w.Reason == "ErrImageNeverPull" || w.Reason == "InvalidImageName" {
		f.seen = 2 // kubelet does not try again with another outcome
	}
	return f
}

func (s *scene) imageOf(container string) string {
	for _, list := range [][]corev1.Container{s.pod.Spec.InitContainers, s.pod.Spec.Containers} {
		for _, c := range list {
			if c.Name == container {
				return c.Image
			}
		}
	}
	return ""
}

func waitingLines(name string, w *corev1.ContainerStateWaiting) []Line {
	text := "container " + name + " waits: " + w.Reason
	if w.Message != "" {
		text += ": " + w.Message
	}
	return []Line{{Source: sourcePod, Text: text}}
}

func newestOf(events []*corev1.Event) []*corev1.Event {
	if len(events) == 0 {
		return nil
	}
	return events[len(events)-1:]
}
