//go:build lab && linux

package lab_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// TestPointsOfTheDaemonSet undoes each point of the reference DaemonSet that
// breaks something; the seventh, images by digest, does not.
func TestPointsOfTheDaemonSet(t *testing.T) {
	for _, s := range []scenario{
		{
			name:    "no binDir",
			arrange: changeSite(noBinDir),
			verdict: "fail", cause: "primary-plugin-unresolved",
			next: "binDir", seen: `failed to find plugin "flannel" in path [/opt/cni/bin]`,
		},
		{
			name:    "only the cni folder mounted",
			arrange: changeSite(onlyPluginFolder),
			verdict: "fail", cause: "primary-plugin-unresolved",
			next: "symlink", seen: `failed to find plugin "flannel" in path [` + node.BinDir + `]`,
		},
		{
			name: "no cni-plugins container",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				return errors.Join(l.RemovePlugins(), changeSite(noPluginsContainer)(ctx, l))
			},
			verdict: "fail", cause: "delegate-plugin-missing",
			next: "macvlan", seen: `failed to find plugin "macvlan" in path [` + node.BinDir + `]`,
		},
		{
			name:    "wrong conf dir",
			arrange: changeSite(wrongConfDir),
			// The daemon says what it misses only after two minutes of waiting.
			timeout: 5 * time.Minute,
			verdict: "fail", cause: "multus-conf-wrong-dir",
			next: "CNI conf folder", seen: "failed to find the primary CNI plugin",
		},
		{
			name: "wrong conf dir with a conf of its own",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				script := "mkdir -p /etc/cni/net.d && cp " + node.PrimaryConf + " /etc/cni/net.d/"
				return errors.Join(l.InNode(ctx, "sh", "-c", script), changeSite(wrongConfDir)(ctx, l))
			},
			verdict: "fail", cause: "multus-not-in-chain",
			next: "CNI conf folder", seen: steadyDaemon,
			proof: plainSandbox(confsAre("10-flannel.conflist")),
		},
		{
			name: "wrong installer directory",
			arrange: func(ctx context.Context, l *lab.Lab) error {
				return errors.Join(l.RemoveNode(node.BinDir+"/multus-shim"), changeSite(wrongInstallerDir)(ctx, l))
			},
			verdict: "fail", cause: "meta-plugin-missing",
			next: "multus-shim", seen: `failed to find plugin "multus-shim" in path [` + node.BinDir + `]`,
		},
		{
			name:    "nodeSelector matches nothing",
			arrange: changeSite(noNode),
			verdict: "inconclusive", cause: "rollout-zero-desired",
			next: "node selector", seen: noneDesired,
		},
	} {
		t.Run(s.name, s.run)
	}
}

// changeSite applies the reference site with a change.
func changeSite(change func(*lab.Site)) func(context.Context, *lab.Lab) error {
	return func(ctx context.Context, l *lab.Lab) error {
		site, err := l.Reference()
		if err != nil {
			return err
		}
		change(&site)
		return l.Apply(ctx, site)
	}
}

func noBinDir(site *lab.Site) {
	const file = "daemon-config.json"
	var kept []string
	for line := range strings.Lines(site.DaemonConfig.Data[file]) {
		if !strings.Contains(line, `"binDir"`) {
			kept = append(kept, line)
		}
	}
	site.DaemonConfig.Data[file] = strings.Join(kept, "")
	// A ConfigMap alone rolls nothing.
	site.DaemonSet.Spec.Template.Labels["config"] = "no-bin-dir"
}

func onlyPluginFolder(site *lab.Site) {
	spec := &site.DaemonSet.Spec.Template.Spec
	volume(spec, "k3s-cni-data").HostPath.Path = node.BinDir
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for j, mount := range containers[i].VolumeMounts {
				if mount.Name == "k3s-cni-data" {
					containers[i].VolumeMounts[j].MountPath = node.BinDir
				}
			}
		}
	}
}

func noPluginsContainer(site *lab.Site) {
	spec := &site.DaemonSet.Spec.Template.Spec
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == "cni-plugins" })
}

func wrongConfDir(site *lab.Site) {
	volume(&site.DaemonSet.Spec.Template.Spec, "cni").HostPath.Path = "/etc/cni/net.d"
}

func wrongInstallerDir(site *lab.Site) {
	const dir = "/opt/cni/bin"
	spec := &site.DaemonSet.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name:         "cnibin",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
	})
	installer := &spec.InitContainers[0]
	installer.VolumeMounts = []corev1.VolumeMount{{Name: "cnibin", MountPath: dir}}
	installer.Command[slices.Index(installer.Command, node.BinDir)] = dir
}

func noNode(site *lab.Site) {
	site.DaemonSet.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-2"}
}

func volume(spec *corev1.PodSpec, name string) *corev1.Volume {
	return &spec.Volumes[slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })]
}
