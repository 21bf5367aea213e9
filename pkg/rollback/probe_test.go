package rollback

import (
	"strings"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
)

// probeScene is a probe Pod as a watch shows it.
func probeScene(changes ...func(*scene)) scene {
	pod := Ground{Namespace: "kube-system", Image: "multus:thick"}.probePod("probe", "node-1")
	pod.Status.Phase = corev1.PodPending
	s := scene{pod: pod, since: time.Second}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func ready(s *scene) {
	s.pod.Status.Phase = corev1.PodRunning
	s.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func event(component, reason, message string, count int32) func(*scene) {
	return func(s *scene) {
		s.events = append(s.events, &corev1.Event{Reason: reason, Message: message, Count: count, Source: corev1.EventSource{Component: component}})
	}
}

func waiting(reason, message string) func(*scene) {
	return func(s *scene) {
		s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func after(d time.Duration) func(*scene) { return func(s *scene) { s.since = d } }

func TestJudgeProbe(t *testing.T) {
	t.Parallel()
	shim := `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "1": plugin type="multus-shim" name="multus-cni-network" failed (add): CmdAdd (shim): timed out waiting for the condition`
	for name, row := range map[string]struct {
		scene  scene
		ready  bool
		reason string
		kind   troubleKind
	}{
		"not there yet": {scene: probeScene()},
		"Ready":         {scene: probeScene(ready), ready: true},
		"Ready, but Multus noted what it did": {
			scene: probeScene(ready, func(s *scene) { s.pod.Annotations = map[string]string{nadv1.NetworkStatusAnnot: "[]"} }), reason: "Multus still makes the sandboxes",
		},
		"Multus says so before it is Ready": {
			scene: probeScene(event("multus", "AddedInterface", "Add eth0 [10.42.0.7/24] from cbr0", 1)), reason: "AddedInterface",
		},
		"one failed sandbox passes":       {scene: probeScene(event("kubelet", "FailedCreatePodSandBox", shim, 1))},
		"one failed sandbox for too long": {scene: probeScene(event("kubelet", "FailedCreatePodSandBox", shim, 1), after(sandboxPatience)), reason: "gets no sandbox: timed out waiting", kind: sandboxTrouble},
		"two failed sandboxes": {
			scene:  probeScene(event("kubelet", "FailedCreatePodSandBox", shim, 1), event("kubelet", "FailedCreatePodSandBox", shim, 1)),
			reason: "gets no sandbox", kind: sandboxTrouble,
		},
		"one event that counts two": {scene: probeScene(event("kubelet", "FailedCreatePodSandBox", shim, 2)), reason: "gets no sandbox", kind: sandboxTrouble},
		"no CNI a moment ago":       {scene: probeScene(event("kubelet", "NetworkNotReady", "network is not ready: cni plugin not initialized", 3))},
		"no CNI at all":             {scene: probeScene(event("kubelet", "NetworkNotReady", "network is not ready: cni plugin not initialized", 3), after(sandboxPatience)), reason: "cni plugin not initialized", kind: sandboxTrouble},
		"the image cannot be had": {
			scene: probeScene(waiting("ImagePullBackOff", `Back-off pulling image "multus:thick"`)), reason: "says nothing about the network", kind: imageTrouble,
		},
		"a registry that is slow to answer": {scene: probeScene(waiting("ErrImagePull", "i/o timeout"))},
		"the sandbox's own image cannot be had": {
			scene:  probeScene(event("kubelet", "FailedCreatePodSandBox", "Failed to create pod sandbox: failed to get sandbox image: not found", 2)),
			reason: "says nothing about the network", kind: imageTrouble,
		},
		"an image without sleep": {
			scene: probeScene(func(s *scene) {
				s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "StartError", Message: `exec: "/bin/sleep": no such file or directory`, ExitCode: 128,
				}}}}
			}), reason: "cannot run sleep", kind: shellTrouble,
		},
		"the node refused it": {
			scene: probeScene(func(s *scene) {
				s.pod.Status.Phase, s.pod.Status.Reason, s.pod.Status.Message = corev1.PodFailed, "OutOfpods", "Node didn't have enough resource: pods"
			}),
			reason: "OutOfpods", kind: otherTrouble,
		},
		"an image that is pulled for too long": {
			scene:  probeScene(event("kubelet", "Pulling", `Pulling image "multus:thick"`, 1), after(probePatience+time.Second)),
			reason: "still being pulled after 1m31s", kind: imageTrouble,
		},
		"an image that is pulled":      {scene: probeScene(event("kubelet", "Pulling", `Pulling image "multus:thick"`, 1), after(sandboxPatience))},
		"nothing happens for too long": {scene: probeScene(after(probePatience + time.Second)), reason: "did not get Ready within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judgeProbe(row.scene, "multus:thick")
			if got.ready != row.ready || got.kind != row.kind {
				t.Errorf("ready %t, trouble %d: %s", got.ready, got.kind, got.reason)
			}
			if row.reason == "" && got.reason != "" || !strings.Contains(got.reason, row.reason) {
				t.Errorf("reason %q, want %q", got.reason, row.reason)
			}
		})
	}
}

// A network that drops what goes to the registry lets the Pod's own deadline come
// before any word of the image.
func TestPodThatIsEndedByItsDeadline(t *testing.T) {
	t.Parallel()
	ended := func(s *scene) {
		s.pod.Status.Phase, s.pod.Status.Reason, s.pod.Status.Message = corev1.PodFailed, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", ExitCode: 137}}}}
	}
	pulling, pulled := event("kubelet", "Pulling", "Pulling image", 1), event("kubelet", "Pulled", "Successfully pulled image", 1)
	for name, row := range map[string]struct {
		scene scene
		want  troubleKind
		text  string
	}{
		"while its image was pulled": {probeScene(ended, pulling), imageTrouble, "--node-image"},
		"while its script ran":       {probeScene(ended, pulling, pulled), otherTrouble, "DeadlineExceeded"},
		"with the image on the node": {probeScene(ended, pulled), otherTrouble, "DeadlineExceeded"},
		"late, with an image pulled": {probeScene(pulled), noTrouble, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := podTrouble(row.scene)
			if got.kind != row.want || !strings.Contains(got.explain("multus:thick", "node-1"), row.text) {
				t.Errorf("trouble %d: %s", got.kind, got.explain("multus:thick", "node-1"))
			}
		})
	}
	if got := late(probeScene(pulling, after(nodePatience))); got.kind != imageTrouble {
		t.Errorf("late: trouble %d: %s", got.kind, got.text)
	}
	if got := late(probeScene(after(nodePatience))); got.kind != otherTrouble {
		t.Errorf("late: trouble %d: %s", got.kind, got.text)
	}
}

// The promises about the Pods that are put on nodes.
func TestPodsAskForLittle(t *testing.T) {
	t.Parallel()
	ground := Ground{Namespace: "kube-system", Image: "multus:thick"}
	finding := Find(ConfDir{Path: "/etc/cni/net.d", Files: []File{file("00-multus.conf", multusConf), file("10-flannel.conflist", flannelConf)}})
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		mounts map[string]bool // host path: read-only
	}{
		"look":    {ground.nodePod(lookJob("node-1", "/etc/cni/net.d", "n")), map[string]bool{"/etc/cni/net.d": true}},
		"remove":  {ground.nodePod(removeJob("node-1", "/etc/cni/net.d", "n", noon(), removal{finding: finding})), map[string]bool{"/etc/cni/net.d": false}},
		"plugins": {ground.nodePod(removeJob("node-1", "/etc/cni/net.d", "n", noon(), removal{finding: finding, binDir: "/opt/cni/bin", binaries: multusBinaries()})), map[string]bool{"/etc/cni/net.d": false, "/opt/cni/bin": false}},
		"restore": {ground.nodePod(restoreJob("node-1", "/etc/cni/net.d", "n", Backup{Conf: "00-multus.conf"})), map[string]bool{"/etc/cni/net.d": false}},
		"probe":   {ground.probePod("probe", "node-1"), map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := row.pod.Spec
			security := spec.Containers[0].SecurityContext
			switch {
			case spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken:
				t.Error("it gets a token")
			case security.Privileged != nil && *security.Privileged, *security.AllowPrivilegeEscalation, !*security.ReadOnlyRootFilesystem:
				t.Errorf("privileges: %+v", security)
			case len(security.Capabilities.Drop) != 1 || security.Capabilities.Drop[0] != "ALL" || len(security.Capabilities.Add) > 0:
				t.Errorf("capabilities: %+v", security.Capabilities)
			case spec.RestartPolicy != corev1.RestartPolicyNever || spec.ActiveDeadlineSeconds == nil:
				t.Errorf("it could outlive its command: %s %v", spec.RestartPolicy, spec.ActiveDeadlineSeconds)
			case spec.NodeName != "node-1" || len(row.pod.Annotations) > 0 || spec.HostPID || spec.HostIPC:
				t.Errorf("node %s, annotations %v", spec.NodeName, row.pod.Annotations)
			case spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent:
				t.Errorf("pull policy %s", spec.Containers[0].ImagePullPolicy)
			}
			mounts := map[string]bool{}
			for i, volume := range spec.Volumes {
				if volume.HostPath == nil || *volume.HostPath.Type != corev1.HostPathDirectory {
					t.Errorf("volume %+v", volume)
					continue
				}
				mounts[volume.HostPath.Path] = spec.Containers[0].VolumeMounts[i].ReadOnly
			}
			if len(mounts) != len(row.mounts) {
				t.Errorf("mounts %v, want %v", mounts, row.mounts)
			}
			for path, readOnly := range row.mounts {
				if got, ok := mounts[path]; !ok || got != readOnly {
					t.Errorf("mounts %v, want %v", mounts, row.mounts)
				}
			}
		})
	}
}
