//go:build linux

package lab

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// k3sPlugins are the CNI plugins that k3s ships. macvlan and static are not
// among them: the DaemonSet's init container has to bring those.
func k3sPlugins() []string {
	return []string{"bandwidth", "bridge", "firewall", "flannel", "host-local", "loopback", "portmap"}
}

// programs are all that the lab builds: the node's own, Multus, the CNI plugins
// and a kubectl.
func programs() []buildcache.Program {
	all := []buildcache.Program{
		apiserver.Program(),
		{Name: "nodeparts", Module: "test/cluster", Package: "./cmd/nodeparts", Cold: 10 * time.Minute},
		{Name: "kubectl", Module: "test/lab/programs/kubectl", Package: ".", Cold: 2 * time.Minute},
		fromModule("flannel", "github.com/containernetworking/plugins/plugins/meta/flannel", "flannel"),
		fromModule("multus", "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/passthru-cni", "passthru"),
	}
	for _, command := range []string{"install_multus", "multus-daemon", "multus-shim"} {
		all = append(all, fromModule("multus", "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/"+command, command))
	}
	for _, plugin := range []string{
		"ipam/host-local", "ipam/static", "main/bridge", "main/loopback", "main/macvlan",
		"meta/bandwidth", "meta/firewall", "meta/portmap",
	} {
		all = append(all, fromModule("multus", "github.com/containernetworking/plugins/plugins/"+plugin, path.Base(plugin)))
	}
	return all
}

func fromModule(module, pkg, name string) buildcache.Program {
	return buildcache.Program{Name: name, Module: "test/lab/programs/" + module, Package: pkg, Cold: time.Minute}
}

// buildPrograms gives the path of each program by name.
func buildPrograms(ctx context.Context, progress io.Writer) (map[string]string, error) {
	paths := map[string]string{}
	for _, program := range programs() {
		binary, err := buildcache.Build(ctx, program, progress)
		if err != nil {
			return nil, fmt.Errorf("preparing the lab's programs: %w", err)
		}
		paths[program.Name] = binary
	}
	return paths, nil
}
