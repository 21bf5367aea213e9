package scriptednode

import (
	"fmt"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The containers of the Multus DaemonSet.
const (
	daemonContainer    = "kube-multus"
	installerContainer = "install-multus-binary"
	pluginsContainer   = "cni-plugins"
)

// daemonConfigMap is the name of the daemon's configuration; it stands beside
// the DaemonSet.
const daemonConfigMap = "multus-daemon-config"

func (s Site) nodeObject(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.nodeLabels(name)}}
}

func (s Site) networkObject() *nadv1.NetworkAttachmentDefinition {
	return &nadv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: s.Network, Namespace: s.Namespace},
		Spec:       nadv1.NetworkAttachmentDefinitionSpec{Config: s.networkConfig()},
	}
}

func (s Site) guardObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: s.Guard, Namespace: s.Namespace},
		Data:       map[string]string{"guard.sh": guardScript},
	}
}

func (s Site) daemonConfigObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: daemonConfigMap, Namespace: s.DaemonSet.Namespace,
			Labels: map[string]string{"app": "multus", "tier": "node"},
		},
		Data: map[string]string{"daemon-config.json": fmt.Sprintf(`{
    "chrootDir": "/hostroot",
    "cniVersion": "0.3.1",
    "logLevel": "verbose",
    "logToStderr": true,
    "cniConfigDir": "/host/etc/cni/net.d",
    "multusAutoconfigDir": "/host/etc/cni/net.d",
    "multusConfigFile": "auto",
    "socketDir": "/host/run/multus/",
    "binDir": %q
}
`, s.BinDir)},
	}
}

// daemonSetObject looks like the thick Multus DaemonSet on a k3s node: binDir
// mounted at its own path, and the reference CNI plugins put beside k3s's.
func (s Site) daemonSetObject() *appsv1.DaemonSet {
	strategy := s.UpdateStrategy
	if strategy == "" {
		strategy = appsv1.RollingUpdateDaemonSetStrategyType
	}
	labels := s.podLabels()
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: s.DaemonSet.Name, Namespace: s.DaemonSet.Namespace, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: s.selector()},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: strategy},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       s.daemonSpec(),
			},
		},
	}
}

func (s Site) daemonSpec() corev1.PodSpec {
	var privileged *corev1.SecurityContext
	if s.Privileged {
		privileged = &corev1.SecurityContext{Privileged: new(true)}
	}
	return corev1.PodSpec{
		HostNetwork:                   true,
		HostPID:                       true,
		ServiceAccountName:            "multus",
		TerminationGracePeriodSeconds: new(int64(30)),
		NodeSelector:                  s.daemonNodeSelector(),
		Tolerations: []corev1.Toleration{
			{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		},
		InitContainers: []corev1.Container{
			{
				Name: installerContainer, Image: s.Images.Multus, SecurityContext: privileged,
				Command:                  []string{"/usr/src/multus-cni/bin/install_multus", "-d", "/host/opt/cni/bin", "-t", "thick"},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts:             []corev1.VolumeMount{{Name: "cnibin", MountPath: "/host/opt/cni/bin"}},
			},
			{
				Name: pluginsContainer, Image: s.Images.Plugins, SecurityContext: privileged,
				Command:      []string{"cp", "/plugins/macvlan", "/plugins/static", "/host/opt/cni/bin/"},
				VolumeMounts: []corev1.VolumeMount{{Name: "cnibin", MountPath: "/host/opt/cni/bin"}},
			},
		},
		Containers: []corev1.Container{s.daemonProcess(privileged)},
		Volumes: []corev1.Volume{
			hostPath("cni", s.ConfDir),
			hostPath("cnibin", s.BinDir),
			hostPath("host-run", "/run"),
			hostPath("host-run-netns", "/run/netns"),
			hostPath("hostroot", "/"),
			{Name: daemonConfigMap, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: daemonConfigMap},
			}}},
		},
	}
}

func (s Site) daemonProcess(privileged *corev1.SecurityContext) corev1.Container {
	limits := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("50Mi"),
	}
	return corev1.Container{
		Name: daemonContainer, Image: s.Images.Multus, SecurityContext: privileged,
		Command:                  []string{"/usr/src/multus-cni/bin/multus-daemon"},
		Resources:                corev1.ResourceRequirements{Requests: limits, Limits: limits},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Env: []corev1.EnvVar{{
			Name:      "MULTUS_NODE_NAME",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "cni", MountPath: "/host/etc/cni/net.d"},
			{Name: "cnibin", MountPath: s.BinDir},
			{Name: "host-run", MountPath: "/host/run"},
			{Name: "host-run-netns", MountPath: "/run/netns"},
			{Name: "hostroot", MountPath: "/hostroot"},
			{Name: daemonConfigMap, MountPath: "/etc/cni/net.d/multus.d", ReadOnly: true},
		},
	}
}

func hostPath(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}
