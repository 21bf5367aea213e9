package rollback

import (
	_ "embed" // the scripts
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

//go:embed scripts/look.sh
var lookScript string

//go:embed scripts/lib.sh
var libScript string

//go:embed scripts/remove.sh
var removeScript string

//go:embed scripts/restore.sh
var restoreScript string

// Labels of the Pods that a rollback makes. None of them outlives the command;
// one that a killed command left is found by them.
const (
	PodLabel    = "vlan50.dev/rollback"
	NodePodRole = "node"
	ProbeRole   = "probe"
	// StatusRole is a node Pod that only looks, for `rollback status`.
	StatusRole = "status"

	podPrefix = "vlan50-rollback-"
	managedBy = "app.kubernetes.io/managed-by=kubectl-vlan50"
)

// Paths inside the node Pod.
const (
	confMount = "/node/conf"
	binMount  = "/node/bin"
	// binaryCopies is where the Multus image has the plugins that it installs.
	binaryCopies = "/usr/src/multus-cni/bin"
)

// The node kills a Pod that its command could not delete.
const (
	nodePodDeadline = time.Minute
	probeDeadline   = 3 * time.Minute
)

// DefaultNodeImage is used where the Multus image on the node has no shell.
const DefaultNodeImage = "busybox:1.37.0@sha256:9db7b59979c38555a39def84a31fb98b5296952f9e3afd4f6f11f05b07adfab0"

// Ground is where and with what node Pods and probes run.
type Ground struct {
	Namespace string
	Image     string
	// PullSecrets are those of the DaemonSet: a kubelet may ask for them though
	// the image is there.
	PullSecrets []corev1.LocalObjectReference
}

// nodeJob is one script for one node.
type nodeJob struct {
	name, node string
	confDir    string
	// binDir is mounted only where plugins are to be removed.
	binDir   string
	script   string
	readOnly bool
	env      map[string]string
}

// podName is a name of our own choice, so that a Pod whose create was not
// answered is found again.
func podName(role, id string) string { return podPrefix + role + "-" + id }

// nodePod starts even on a node whose CNI is broken: it uses the node's network
// and no scheduler. It has no token, no capability, no privilege, and sees
// nothing of the node but the conf dir.
func (g Ground) nodePod(job nodeJob) *corev1.Pod {
	pod := g.pod(job.name, job.node, NodePodRole, nodePodDeadline)
	pod.Spec.HostNetwork = true
	pod.Spec.DNSPolicy = corev1.DNSDefault
	container := corev1.Container{
		Name: "node", Image: g.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:                []string{"/bin/sh", "-c", job.script},
		Env:                    environment(job.env),
		Resources:              smallResources(),
		TerminationMessagePath: corev1.TerminationMessagePathDefault,
		SecurityContext: &corev1.SecurityContext{
			// The confs belong to root and are nobody else's to read.
			RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0),
			Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	mount := func(name, host, inside string, readOnly bool) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			// Directory: the runtime would make a folder that is missing.
			HostPath: &corev1.HostPathVolumeSource{Path: host, Type: ptr.To(corev1.HostPathDirectory)},
		}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: inside, ReadOnly: readOnly})
	}
	mount("conf", job.confDir, confMount, job.readOnly)
	if job.binDir != "" {
		mount("bin", job.binDir, binMount, job.readOnly)
	}
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}

// probePod is an ordinary Pod: on the Pod network, without annotations, within
// the strictest Pod Security level.
func (g Ground) probePod(name, node string) *corev1.Pod {
	pod := g.pod(name, node, ProbeRole, probeDeadline)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Spec.Containers = []corev1.Container{{
		Name: "probe", Image: g.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:   []string{"/bin/sleep", "120"},
		Resources: smallResources(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}}
	return pod
}

// pod is what both have in common.
func (g Ground) pod(name, node, role string, deadline time.Duration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: g.Namespace,
			Labels: map[string]string{PodLabel: role, "app.kubernetes.io/managed-by": "kubectl-vlan50"},
		},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         new(int64(deadline / time.Second)),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			ImagePullSecrets:              g.PullSecrets,
			// No taint may drive it away.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
}

// smallResources let the Pod into namespaces with a quota.
func smallResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

func environment(values map[string]string) []corev1.EnvVar {
	env := make([]corev1.EnvVar, 0, len(values))
	for name, value := range values {
		// A $ would be taken for a reference to another variable.
		env = append(env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")})
	}
	slices.SortFunc(env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return env
}

// lookJob lists a conf dir and changes nothing.
func lookJob(node, confDir, nonce string) nodeJob {
	return nodeJob{node: node, confDir: confDir, readOnly: true, script: lookScript, env: map[string]string{
		"NONCE": nonce, "CONF_DIR": confMount, "BACKUP_DIR": BackupDir,
	}}
}

// removal is what a remove job takes away.
type removal struct {
	finding     Finding
	credentials bool
	binDir      string
	binaries    []string
}

// removeJob takes the found confs away, if all is still as it was found.
func removeJob(node, confDir, nonce string, now time.Time, r removal) nodeJob {
	var items []string
	for _, conf := range r.finding.Multus {
		items = append(items, conf.Name+":"+conf.SHA256)
	}
	credentials := "no"
	if r.credentials {
		credentials = "yes"
	}
	return nodeJob{node: node, confDir: confDir, binDir: r.binDir, script: libScript + removeScript, env: map[string]string{
		"NONCE": nonce, "CONF_DIR": confMount, "BACKUP_DIR": BackupDir, "RESULT": corev1.TerminationMessagePathDefault,
		"STAMP": stamp(now), "ITEMS": strings.Join(items, " "), "CREDENTIALS": credentials,
		"PRIMARY": r.finding.Primary.Name, "PRIMARY_SHA256": r.finding.Primary.SHA256,
		"BINARIES": strings.Join(r.binaries, " "), "BIN_DIR": binMount, "BINARY_COPIES": binaryCopies,
	}}
}

// restoreJob puts one conf back.
func restoreJob(node, confDir, nonce string, b Backup) nodeJob {
	return nodeJob{node: node, confDir: confDir, script: libScript + restoreScript, env: map[string]string{
		"NONCE": nonce, "CONF_DIR": confMount, "BACKUP_DIR": BackupDir, "RESULT": corev1.TerminationMessagePathDefault,
		"NAME": b.Conf, "SHA256": b.SHA256, "COPY": b.File, "CONTENT": b.content(),
	}}
}

// stamp is a time as the names of backups carry it.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// multusBinaries are what the installer copies (cmd/install_multus).
func multusBinaries() []string { return []string{"multus-shim", "multus", "passthru"} }

// KnownConfDirs are where distributions keep their CNI confs, for a node on
// which no DaemonSet tells: k3s, microk8s, and the standard place, which rke2
// uses as well.
func KnownConfDirs(node *corev1.Node) []string {
	k3s := "/var/lib/rancher/k3s/agent/etc/cni/net.d"
	dirs := []string{"/etc/cni/net.d", k3s, "/var/lib/rancher/rke2/agent/etc/cni/net.d", "/var/snap/microk8s/current/args/cni-network"}
	if strings.Contains(node.Status.NodeInfo.KubeletVersion, "+k3s") {
		dirs[0], dirs[1] = dirs[1], dirs[0]
	}
	return dirs
}

// PlainDir reports whether a folder may be mounted into a node Pod: an absolute
// path that names a conf dir, and not half the node.
func PlainDir(dir string) bool {
	return path.IsAbs(dir) && path.Clean(dir) == dir && strings.Count(dir, "/") >= 2 && !strings.ContainsAny(dir, ":\n")
}
