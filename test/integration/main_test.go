//go:build integration

// Package integration runs the built binary against a real kube-apiserver, with
// a scripted node in the place of scheduler, kubelet, DaemonSet controller and
// Multus.
package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// plane is the control plane of the whole run; every test has a site of its own
// on it.
var plane struct {
	server *apiserver.Server
	config *rest.Config
	binary string
}

// parallel is how many tests run at once where the command line does not say:
// they wait for most of their time, whatever the number of processors.
const parallel = 8

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	klog.SetLogger(logr.Discard()) // what the tests break on purpose
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "vlan50-integration-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if plane.binary, err = buildBinary(ctx, dir); err != nil {
		return 1, err
	}
	if plane.server, err = apiserver.Start(ctx, filepath.Join(dir, "server"), os.Stderr); err != nil {
		return 1, err
	}
	defer plane.server.Stop()
	if plane.config, err = plane.server.Config(); err != nil {
		return 1, err
	}
	if err := scriptednode.InstallCRD(ctx, plane.config); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// buildBinary builds the tool as users get it, under its plugin name.
func buildBinary(ctx context.Context, dir string) (string, error) {
	root, err := buildcache.Root(ctx)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "bin", "kubectl-vlan50")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/kubectl-vlan50")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return binary, nil
}
