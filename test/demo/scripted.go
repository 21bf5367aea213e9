package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/apiserver"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// scripted is a real API server with a scripted node.
type scripted struct {
	dir    string
	server *apiserver.Server
	node   *scriptednode.Node
}

func enterScripted(ctx context.Context, dir string, out io.Writer) (stage, error) {
	server, err := apiserver.Start(ctx, filepath.Join(dir, "server"), out)
	if err != nil {
		return nil, err
	}
	s := &scripted{dir: dir, server: server}
	if err := s.populate(ctx); err != nil {
		server.Stop()
		return nil, err
	}
	return s, nil
}

func (s *scripted) populate(ctx context.Context) error {
	config, err := s.server.Config()
	if err != nil {
		return err
	}
	if err := s.server.WriteKubeconfig(s.kubeconfig(), ""); err != nil {
		return err
	}
	if err := scriptednode.InstallCRD(ctx, config); err != nil {
		return err
	}
	site := scriptednode.Reference()
	if err := site.Apply(ctx, config); err != nil {
		return err
	}
	if err := os.WriteFile(s.manifest(), site.CanaryManifest(), 0o600); err != nil {
		return err
	}
	if s.node, err = scriptednode.New(config, site, scriptednode.Options{Pace: pace()}); err != nil {
		return err
	}
	return s.node.Start(ctx)
}

// pace is that of a real node, with the waits that only bore cut short.
func pace() scriptednode.Pace {
	pace := scriptednode.Measured()
	pace.Retry = 2 * time.Second
	pace.Guard, pace.GuardWait = 1500*time.Millisecond, 3*time.Second
	return pace
}

func (s *scripted) kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

func (s *scripted) manifest() string { return filepath.Join(s.dir, "canary.yaml") }

func (s *scripted) set(ctx context.Context, scene scene) error {
	script := scriptednode.Pass()
	if scene.noMacvlan {
		script = scriptednode.MissingPlugin("macvlan")
	}
	s.node.Play(script)
	switch scene.multus {
	case restarted:
		return s.node.RestartDaemonSet(ctx, scriptednode.Daemon{ConfAfterReady: 3 * time.Second})
	case open:
		return s.node.RestartDaemonSet(ctx, scriptednode.Daemon{ConfAfterReady: 8 * time.Second, LogLevel: "error"})
	case untouched:
	}
	return nil
}

func (s *scripted) leave() error {
	s.node.Stop()
	s.server.Stop()
	return s.node.Err()
}
