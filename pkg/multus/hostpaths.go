package multus

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Defaults of Multus itself (cmd/multus-daemon, pkg/server/config/generator.go,
// cmd/thin_entrypoint, cmd/install_multus), as paths inside its containers.
const (
	daemonConfigPath = "/etc/cni/net.d/multus.d/daemon-config.json"
	daemonConfDir    = "/etc/cni/net.d"
	thinConfDir      = "/host/etc/cni/net.d"
	installDir       = "/host/opt/cni/bin"
)

// HostPaths is where a Multus DaemonSet works on its nodes, and with which image.
type HostPaths struct {
	// Thick: a daemon serves the nodes' shims. Its image has a shell; that of
	// thin Multus has none.
	Thick bool
	// Image is the daemon's.
	Image string
	// ConfDir is the node's folder of CNI confs that Multus writes its own to.
	ConfDir string
	// BinDir is the node's folder that the installer copies plugins to; empty
	// where no installer is found.
	BinDir string
}

// HostPathsOf reads them from the DaemonSet. configs are the ConfigMaps it
// mounts, as far as they could be read. What it gives together with an error
// holds as well.
func HostPathsOf(ds *appsv1.DaemonSet, configs []corev1.ConfigMap) (HostPaths, error) {
	spec := &ds.Spec.Template.Spec
	daemon := DaemonContainer(spec)
	if daemon == nil {
		return HostPaths{}, errors.New("it has no container")
	}
	paths := HostPaths{Image: daemon.Image, Thick: isThick(daemon), BinDir: binDir(spec)}
	inside := thinConfDir
	if paths.Thick {
		var err error
		if inside, err = thickConfDir(spec, daemon, configs); err != nil {
			return paths, err
		}
	} else if dir := flagValue(words(daemon), "cni-conf-dir"); dir != "" {
		inside = dir
	}
	host, ok := hostPath(spec, daemon, inside)
	if !ok {
		return paths, fmt.Errorf("container %s keeps its CNI conf in %s, which is in none of its hostPath volumes", daemon.Name, inside)
	}
	paths.ConfDir = host
	return paths, nil
}

// DaemonConfigMaps names the ConfigMaps that the DaemonSet mounts, in the order
// of its volumes.
func DaemonConfigMaps(ds *appsv1.DaemonSet) []string {
	var names []string
	for _, volume := range ds.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			names = append(names, volume.ConfigMap.Name)
		}
	}
	return names
}

// DaemonContainer is the container that runs Multus: the one that says so by
// its command, name or image, else the first.
func DaemonContainer(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if strings.Contains(strings.Join(words(c), " ")+" "+c.Name+" "+c.Image, "multus") {
			return c
		}
	}
	if len(spec.Containers) == 0 {
		return nil
	}
	return &spec.Containers[0]
}

// isThick tells by the command, and where the image's own command runs, by the
// image's tag.
func isThick(c *corev1.Container) bool {
	all := strings.Join(words(c), " ")
	switch {
	case strings.Contains(all, "multus-daemon"):
		return true
	case strings.Contains(all, "entrypoint"):
		return false
	}
	return strings.Contains(c.Image, "thick")
}

func words(c *corev1.Container) []string { return slices.Concat(c.Command, c.Args) }

// flagValue gives the value of a flag in the forms -name=v, --name=v and --name v.
func flagValue(words []string, names ...string) string {
	for i, word := range words {
		name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || !slices.Contains(names, name) {
			continue
		}
		if inline {
			return value
		}
		if i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// thickConfDir is cniConfigDir of the daemon's configuration, as the daemon
// sees it.
func thickConfDir(spec *corev1.PodSpec, daemon *corev1.Container, configs []corev1.ConfigMap) (string, error) {
	file := flagValue(words(daemon), "config")
	if file == "" {
		file = daemonConfigPath
	}
	text, err := mountedText(spec, daemon, file, configs)
	if err != nil {
		return "", err
	}
	var config struct {
		CNIConfigDir string `json:"cniConfigDir"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return "", fmt.Errorf("the daemon's configuration (%s) is not valid JSON: %w", file, err)
	}
	if config.CNIConfigDir == "" {
		return daemonConfDir, nil
	}
	return config.CNIConfigDir, nil
}

// mountedText is the content of a file that a container has from a ConfigMap.
func mountedText(spec *corev1.PodSpec, c *corev1.Container, file string, configs []corev1.ConfigMap) (string, error) {
	mount, rest := mountOf(c, file)
	if mount == nil {
		return "", fmt.Errorf("no volume of container %s holds %s", c.Name, file)
	}
	source := volumeOf(spec, mount.Name).ConfigMap
	if source == nil {
		return "", fmt.Errorf("%s of container %s is not from a ConfigMap", file, c.Name)
	}
	key := path.Join(mount.SubPath, rest)
	for _, item := range source.Items {
		if path.Clean(item.Path) == key {
			key = item.Key
			break
		}
	}
	for i := range configs {
		if configs[i].Name != source.Name {
			continue
		}
		if text, ok := configs[i].Data[key]; ok {
			return text, nil
		}
		return "", fmt.Errorf("ConfigMap %s has no key %s", source.Name, key)
	}
	return "", fmt.Errorf("ConfigMap %s, which holds the daemon's configuration, is not there", source.Name)
}

// binDir is where the installer among the init containers copies plugins to.
func binDir(spec *corev1.PodSpec) string {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if inside := installTarget(words(c)); inside != "" {
			if host, ok := hostPath(spec, c, inside); ok {
				return host
			}
		}
	}
	return ""
}

// installTarget is the folder that an installer's command line names: that of
// install_multus, or of the cp that older manifests use.
func installTarget(words []string) string {
	switch all := strings.Join(words, " "); {
	case strings.Contains(all, "install_multus"):
		if dir := flagValue(words, "d", "dest-dir"); dir != "" {
			return dir
		}
		return installDir
	case len(words) > 2 && path.Base(words[0]) == "cp" && strings.Contains(all, "multus"):
		target := words[len(words)-1]
		if strings.HasPrefix(path.Base(target), "multus") {
			return path.Dir(target)
		}
		return path.Clean(target)
	}
	return ""
}

// hostPath is the node's path of what a container sees at inside.
func hostPath(spec *corev1.PodSpec, c *corev1.Container, inside string) (string, bool) {
	mount, rest := mountOf(c, inside)
	if mount == nil {
		return "", false
	}
	source := volumeOf(spec, mount.Name).HostPath
	if source == nil || !path.IsAbs(source.Path) {
		return "", false
	}
	return path.Join(source.Path, mount.SubPath, rest), true
}

// mountOf is the innermost mount that holds a path, and the path below it.
func mountOf(c *corev1.Container, inside string) (*corev1.VolumeMount, string) {
	inside = path.Clean(inside)
	var best *corev1.VolumeMount
	rest := ""
	for i := range c.VolumeMounts {
		at := path.Clean(c.VolumeMounts[i].MountPath)
		below, ok := strings.CutPrefix(inside, strings.TrimSuffix(at, "/")+"/")
		if at == inside {
			below, ok = "", true
		}
		if ok && (best == nil || len(at) > len(path.Clean(best.MountPath))) {
			best, rest = &c.VolumeMounts[i], below
		}
	}
	return best, rest
}

func volumeOf(spec *corev1.PodSpec, name string) corev1.Volume {
	for _, volume := range spec.Volumes {
		if volume.Name == name {
			return volume
		}
	}
	return corev1.Volume{}
}
