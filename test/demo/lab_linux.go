package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// labMissing says why the lab cannot be used; empty where it can.
func labMissing(ctx context.Context) string {
	if err := lab.Check(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// reenter is for the lab, which runs this program again inside the node.
func reenter(args []string) (code int, mine bool) { return node.Main(args) }

// onLab is the lab, brought up for the demo unless it was up.
type onLab struct {
	lab *lab.Lab
	out io.Writer
	// was tells that the lab was up before, and stays.
	was bool
}

func enterLab(ctx context.Context, out io.Writer) (stage, error) {
	_, err := lab.Open()
	s := &onLab{out: out, was: err == nil}
	if s.lab, err = lab.Up(ctx, out); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *onLab) kubeconfig() string { return s.lab.Kubeconfig() }

func (s *onLab) manifest() string { return s.lab.CanaryManifest() }

func (s *onLab) set(ctx context.Context, scene scene) error {
	if err := s.lab.Reset(ctx); err != nil {
		return err
	}
	if scene.noMacvlan {
		return s.lab.RemovePlugins()
	}
	switch scene.multus {
	case restarted:
		_, err := s.lab.Kubectl(ctx, "rollout", "restart", "--namespace", lab.SystemNamespace, "daemonset/"+lab.DaemonSetName)
		return err
	case open:
		return s.holdOpen(ctx)
	case untouched:
	}
	return nil
}

// holdOpen makes the moment last in which a restarted daemon has not written
// its conf: on an idle machine it is over in half a second.
func (s *onLab) holdOpen(ctx context.Context) error {
	if err := s.silence(ctx); err != nil {
		return err
	}
	if err := s.lab.RestartMultus(ctx); err != nil {
		return err
	}
	return s.lab.RemoveNode(node.MultusConf)
}

// silence takes the lines of readiness out of the daemon's log.
func (s *onLab) silence(ctx context.Context) error {
	site, err := s.lab.Reference()
	if err != nil {
		return err
	}
	for file, config := range site.DaemonConfig.Data {
		site.DaemonConfig.Data[file] = strings.Replace(config, `"logLevel": "verbose"`, `"logLevel": "error"`, 1)
	}
	return s.lab.Apply(ctx, site)
}

// leaveWithin bounds the way back to the lab as it was.
const leaveWithin = 4 * time.Minute

func (s *onLab) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if s.was {
		return s.lab.Restore(ctx)
	}
	return lab.Down(ctx, s.out)
}
