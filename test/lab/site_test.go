//go:build linux

package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// unpacked is a lab whose manifests are written and whose node is not there.
func unpacked(t *testing.T) *Lab {
	t.Helper()
	l := &Lab{Node{dir: t.TempDir()}}
	references := map[string]string{}
	for _, img := range images(nil) {
		references[img.name] = imagePrefix + img.name + "@sha256:" + strings.Repeat("0", 64)
	}
	if err := l.writeManifests(references); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestManifestsFitTheNode checks that the reference site and the node that the
// lab makes speak of the same folders, interface and address.
func TestManifestsFitTheNode(t *testing.T) {
	l := unpacked(t)
	site, err := l.Reference()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		BinDir string `json:"binDir"`
	}
	if err := json.Unmarshal([]byte(site.DaemonConfig.Data["daemon-config.json"]), &config); err != nil {
		t.Fatal(err)
	}
	var network struct {
		Master string `json:"master"`
	}
	if err := json.Unmarshal([]byte(site.Network.Spec.Config), &network); err != nil {
		t.Fatal(err)
	}
	spec := site.DaemonSet.Spec.Template.Spec
	confs := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "cni" })
	canary := new(corev1.Pod)
	if err := l.readManifest(manifestCanary, canary); err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct{ what, got, want string }{
		{"binDir", config.BinDir, node.BinDir},
		{"conf folder", spec.Volumes[confs].HostPath.Path, node.ConfDir},
		{"DaemonSet's node", spec.NodeSelector[corev1.LabelHostname], node.Name},
		{"canary's node", canary.Spec.NodeSelector[corev1.LabelHostname], node.Name},
		{"parent interface", network.Master, node.VLANInterface},
		{"guard's address", env(canary, "ADDRESS"), node.CanaryAddress},
		{"DaemonSet", site.DaemonSet.Namespace + "/" + site.DaemonSet.Name, SystemNamespace + "/" + DaemonSetName},
		{"daemon's configuration", site.DaemonConfig.Name, DaemonConfig},
		{"network", site.Network.Namespace + "/" + site.Network.Name, Namespace + "/" + NetworkName},
		{"guard", site.Guard.Namespace + "/" + site.Guard.Name, Namespace + "/" + GuardName},
		{"canary", canary.Namespace + "/" + canary.Name, Namespace + "/" + CanaryName},
	} {
		if check.got != check.want {
			t.Errorf("%s: %q in the manifests, %q in the lab", check.what, check.got, check.want)
		}
	}
	if asked := canary.Annotations[nadv1.NetworkAttachmentAnnot]; !strings.Contains(asked, node.CanaryAddress+"/") {
		t.Errorf("the canary asks for %s, not for %s", asked, node.CanaryAddress)
	}
}

func env(pod *corev1.Pod, name string) string {
	for _, variable := range pod.Spec.InitContainers[0].Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

func TestManifestsNameImagesByDigest(t *testing.T) {
	l := unpacked(t)
	files, err := filepath.Glob(l.Manifest("*.yaml"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%d manifests (%v), want 6", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			_, image, found := strings.Cut(line, "image: ")
			if found && !strings.HasPrefix(image, imagePrefix) || found && !strings.Contains(image, "@sha256:0") {
				t.Errorf("%s: image %q is not one of the lab's by digest", filepath.Base(file), strings.TrimSpace(image))
			}
		}
	}
}

func TestLookIn(t *testing.T) {
	whole, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dynamic, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, file := range []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{"usr/bin/runc", whole, 0o755},
		{"usr/bin/ctr", whole, 0o644},
		{"usr/bin/busybox", dynamic, 0o755},
		{"usr/bin/containerd", nil, 0o755},
		{"usr/bin/bridge", whole[:len(whole)/2], 0o755},
		{"usr/sbin/bridge", whole, 0o755},
	} {
		path := filepath.Join(root, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.content, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		program packaged
		want    string
	}{
		{"a program", packaged{name: "runc"}, filepath.Join(root, "usr/bin/runc")},
		{"a file that cannot be run", packaged{name: "ctr"}, ""},
		{"one that is not static where it must be", packaged{name: "busybox", static: true}, ""},
		{"an empty file", packaged{name: "containerd"}, ""},
		{"a whole one after one that is cut short", packaged{name: "bridge"}, filepath.Join(root, "usr/sbin/bridge")},
		{"one that is not there", packaged{name: "multus"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lookIn(root, test.program); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestProcessState(t *testing.T) {
	if gone, zombie := state(os.Getpid()); gone || zombie {
		t.Errorf("this process: gone %t, zombie %t", gone, zombie)
	}
	// Above the highest PID that Linux gives.
	if gone, _ := state(1 << 23); !gone {
		t.Error("a process that cannot be is there")
	}
}
