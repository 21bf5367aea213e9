// Command controlplane runs etcd and kube-apiserver in one process, for tests.
//
// Everything it needs (keys, tokens, etcd's data) lies in one directory, so
// that starting it again on the same directory is a restart of the same
// cluster. What follows "--" goes to kube-apiserver as it is and wins over the
// defaults set here.
//
// It is never a production control plane: etcd has no authentication and
// listens on loopback.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	genericapiserver "k8s.io/apiserver/pkg/server"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// etcdStart is far above the second that etcd takes on an idle machine.
const etcdStart = time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory of keys, tokens and data; made if missing")
	address := flags.String("bind-address", "127.0.0.1", "address to serve on")
	port := flags.Int("secure-port", 6443, "port to serve on")
	withStdin := flags.Bool("exit-with-stdin", false, "shut down when standard input ends, so that no server outlives the test that started it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("--dir is required")
	}

	files, err := prepare(*dir)
	if err != nil {
		return err
	}
	endpoint, stop, err := startEtcd(filepath.Join(*dir, "etcd"))
	if err != nil {
		return err
	}
	defer stop()

	if *withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			genericapiserver.RequestShutdown()
		}()
	}

	server := app.NewAPIServerCommand()
	server.SetArgs(append(files.flags(endpoint, *address, *port), flags.Args()...))
	return server.Execute()
}

// startEtcd runs a one-member etcd on free loopback ports.
func startEtcd(dir string) (endpoint string, stop func(), err error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	// The data dies with the test run; waiting for the disk would only be slow.
	config.UnsafeNoFsync = true
	if err := loopback(config); err != nil {
		return "", nil, err
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return "", nil, fmt.Errorf("starting etcd: %w", err)
	case <-time.After(etcdStart):
		etcd.Close()
		return "", nil, fmt.Errorf("etcd was not ready after %s", etcdStart)
	}
	return "http://" + etcd.Clients[0].Addr().String(), etcd.Close, nil
}
