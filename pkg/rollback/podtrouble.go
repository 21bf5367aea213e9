package rollback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// trouble is why a Pod of ours does not run, told by what is at fault.
type trouble struct {
	kind troubleKind
	text string
}

type troubleKind int

const (
	noTrouble troubleKind = iota
	imageTrouble
	shellTrouble // the image has no shell
	folderTrouble
	sandboxTrouble
	otherTrouble
)

// podTrouble judges a Pod that is not running. Its rules, in order:
//
//   - a Pod whose time was over while its image was pulled has no image, whatever
//     else its status says;
//   - a Pod that its node refused or ended says why in its status;
//   - an image that cannot be had never gets as far as a network;
//   - a container that cannot be started has an image without the program;
//   - a folder that is not there keeps the Pod from being made;
//   - a sandbox that failed at least twice is no passing trouble, and neither is
//     a runtime that has had no network for as long as that takes.
func podTrouble(s scene) trouble {
	status := s.pod.Status
	if outOfTime(s.pod) && pulling(s.events) {
		return trouble{imageTrouble, "its time was over while it was pulled"}
	}
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if t := containerTrouble(c); t.kind != noTrouble {
			return t
		}
	}
	if status.Phase == corev1.PodFailed && status.Reason != "" {
		return trouble{otherTrouble, strings.TrimSpace(status.Reason + ": " + status.Message)}
	}
	for _, event := range s.events {
		if event.Reason == "FailedMount" && strings.Contains(event.Message, "hostPath type check failed") {
			return trouble{folderTrouble, event.Message}
		}
	}
	return sandboxFailures(s)
}

// outOfTime reports whether the node ended a Pod by its activeDeadlineSeconds.
func outOfTime(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "DeadlineExceeded"
}

// pulling reports whether the kubelet has begun to pull the image, and not ended. A
// network that drops what goes to the registry never says no.
func pulling(events []*corev1.Event) bool {
	said := func(reason string) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.Reason == reason })
	}
	return said("Pulling") && !said("Pulled")
}

// late is the trouble of a Pod that has not run for as long as it may take.
func late(s scene) trouble {
	if pulling(s.events) {
		return trouble{imageTrouble, "it is still being pulled after " + s.since.Round(time.Second).String()}
	}
	return trouble{otherTrouble, "the Pod did not run in time: " + stateOf(s.pod)}
}

func containerTrouble(c corev1.ContainerStatus) trouble {
	if waiting := c.State.Waiting; waiting != nil {
		text := cmp.Or(waiting.Message, waiting.Reason)
		switch waiting.Reason {
		// ErrImagePull alone may be a registry that is slow to answer.
		case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
			return trouble{imageTrouble, text}
		case "CreateContainerError", "RunContainerError":
			return trouble{shellTrouble, text}
		case "CreateContainerConfigError":
			return trouble{otherTrouble, text}
		}
	}
	if ended := c.State.Terminated; ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun") {
		return trouble{shellTrouble, ended.Message}
	}
	return trouble{}
}

// sandboxFailures counts the failures to make the Pod's sandbox. That an image
// is missing can also show here: the sandbox's own one.
func sandboxFailures(s scene) trouble {
	count, newest := 0, ""
	for _, event := range s.events {
		switch event.Reason {
		case "FailedCreatePodSandBox":
			count += eventCount(event)
		case "NetworkNotReady":
			// The kubelet asks its runtime every 5 s (updateRuntimeUp), and tells
			// of what it knew last at each try: only its lasting counts.
		default:
			continue
		}
		newest = event.Message
	}
	if count < 2 && s.since < sandboxPatience {
		return trouble{}
	}
	switch {
	case newest == "":
		return trouble{}
	case strings.Contains(newest, "failed to get sandbox image"):
		return trouble{imageTrouble, newest}
	}
	return trouble{sandboxTrouble, cmp.Or(multus.ParseFailure(newest).Text, newest)}
}

func eventCount(event *corev1.Event) int {
	if event.Series != nil {
		return max(1, int(event.Series.Count))
	}
	return max(1, int(event.Count))
}

// explain says what the trouble means for a node Pod.
func (t trouble) explain(image, node string) string {
	switch t.kind {
	case imageTrouble:
		return fmt.Sprintf("the image %s is not on node %s and cannot be pulled (%s): name one that is there with --node-image, which the probes of --node-access=manual need as well", image, node, t.text)
	case shellTrouble:
		return fmt.Sprintf("the image %s does not run a shell (%s): name one that has sh and coreutils or busybox with --node-image; for the probes of --node-access=manual it needs sleep alone", image, t.text)
	case noTrouble, folderTrouble, sandboxTrouble, otherTrouble:
	}
	return t.text
}
