package multus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func hostVolume(name, at string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: at}}}
}

// thick is the upstream DaemonSet of thick Multus.
func thick() *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{}
	ds.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{
			Name:         "install-multus-binary",
			Command:      []string{"/usr/src/multus-cni/bin/install_multus", "-d", "/host/opt/cni/bin", "-t", "thick"},
			VolumeMounts: []corev1.VolumeMount{{Name: "cnibin", MountPath: "/host/opt/cni/bin"}},
		}},
		Containers: []corev1.Container{{
			Name: "kube-multus", Image: "multus-cni:v4.3.0-thick",
			Command: []string{"/usr/src/multus-cni/bin/multus-daemon"},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "hostroot", MountPath: "/hostroot"},
				{Name: "cni", MountPath: "/host/etc/cni/net.d"},
				{Name: "config", MountPath: "/etc/cni/net.d/multus.d"},
			},
		}},
		Volumes: []corev1.Volume{
			hostVolume("hostroot", "/"), hostVolume("cni", "/etc/cni/net.d"), hostVolume("cnibin", "/opt/cni/bin"),
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "multus-daemon-config"},
			}}},
		},
	}
	return ds
}

func thin() *appsv1.DaemonSet {
	ds := thick()
	spec := &ds.Spec.Template.Spec
	spec.InitContainers[0].Command = []string{"/install_multus"}
	spec.InitContainers[0].Args = []string{"--type", "thin"}
	spec.Containers[0].Image = "multus-cni:v4.3.0"
	spec.Containers[0].Command = []string{"/thin_entrypoint"}
	spec.Containers[0].Args = []string{"--multus-conf-file=auto", "--cni-conf-dir=/host/etc/cni/net.d"}
	return ds
}

func daemonConfig(text string) []corev1.ConfigMap {
	return []corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Name: "multus-daemon-config"},
		Data:       map[string]string{"daemon-config.json": text},
	}}
}

func TestHostPathsOf(t *testing.T) {
	const upstream = `{"chrootDir": "/hostroot", "cniConfigDir": "/host/etc/cni/net.d", "binDir": "/opt/cni/bin"}`
	type change = func(*corev1.PodSpec)
	for name, row := range map[string]struct {
		ds     *appsv1.DaemonSet
		change change
		config []corev1.ConfigMap
		want   HostPaths
		err    string
	}{
		"upstream thick": {
			ds: thick(), config: daemonConfig(upstream),
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"upstream thin": {
			ds:   thin(),
			want: HostPaths{Image: "multus-cni:v4.3.0", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"k3s: all of its data folder at the same path": {
			ds: thick(), config: daemonConfig(upstream),
			change: func(spec *corev1.PodSpec) {
				spec.Volumes[1].HostPath.Path = "/var/lib/rancher/k3s/agent/etc/cni/net.d"
				spec.Volumes[2] = hostVolume("data", "/var/lib/rancher/k3s/data")
				spec.InitContainers[0].Command[2] = "/var/lib/rancher/k3s/data/cni"
				spec.InitContainers[0].VolumeMounts[0] = corev1.VolumeMount{Name: "data", MountPath: "/var/lib/rancher/k3s/data"}
			},
			want: HostPaths{
				Thick: true, Image: "multus-cni:v4.3.0-thick",
				ConfDir: "/var/lib/rancher/k3s/agent/etc/cni/net.d", BinDir: "/var/lib/rancher/k3s/data/cni",
			},
		},
		"conf dir below the mount of the whole host": {
			ds: thick(), config: daemonConfig(`{"cniConfigDir": "/hostroot/etc/cni/net.d/"}`),
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"sub path": {
			ds: thick(), config: daemonConfig(upstream),
			change: func(spec *corev1.PodSpec) {
				spec.Volumes[1].HostPath.Path = "/etc"
				spec.Containers[0].VolumeMounts[1].SubPath = "cni/net.d"
			},
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"the configuration has a path and a key of its own": {
			ds: thick(),
			change: func(spec *corev1.PodSpec) {
				spec.Containers[0].Args = []string{"-config", "/config/multus.json"}
				spec.Containers[0].VolumeMounts[2].MountPath = "/config"
				spec.Volumes[3].ConfigMap.Items = []corev1.KeyToPath{{Key: "daemon-config.json", Path: "multus.json"}}
			},
			config: daemonConfig(upstream),
			want:   HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"the installer is a cp": {
			ds: thick(), config: daemonConfig(upstream),
			change: func(spec *corev1.PodSpec) {
				spec.InitContainers[0].Command = []string{"cp", "/usr/src/multus-cni/bin/multus-shim", "/host/opt/cni/bin/multus-shim"}
			},
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"a sidecar comes first": {
			ds: thin(),
			change: func(spec *corev1.PodSpec) {
				spec.Containers = append([]corev1.Container{{Name: "metrics", Image: "proxy:1"}}, spec.Containers...)
			},
			want: HostPaths{Image: "multus-cni:v4.3.0", ConfDir: "/etc/cni/net.d", BinDir: "/opt/cni/bin"},
		},
		"no conf dir in the configuration": {
			ds: thick(), config: daemonConfig(`{}`),
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", BinDir: "/opt/cni/bin"},
			err:  "keeps its CNI conf in /etc/cni/net.d, which is in none of its hostPath volumes",
		},
		"broken configuration": {
			ds: thick(), config: daemonConfig(`{"cniConfigDir": `),
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", BinDir: "/opt/cni/bin"},
			err:  "is not valid JSON",
		},
		"the ConfigMap is gone": {
			ds:   thick(),
			want: HostPaths{Thick: true, Image: "multus-cni:v4.3.0-thick", BinDir: "/opt/cni/bin"},
			err:  "ConfigMap multus-daemon-config, which holds the daemon's configuration, is not there",
		},
		"no container at all": {
			ds: &appsv1.DaemonSet{}, err: "it has no container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if row.change != nil {
				row.change(&row.ds.Spec.Template.Spec)
			}
			got, err := HostPathsOf(row.ds, row.config)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if text := errorText(err); row.err == "" && text != "" || !strings.Contains(text, row.err) {
				t.Errorf("error %q, want %q", text, row.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
