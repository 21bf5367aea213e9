package cmd

import (
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// rollbackTimeout is the default of a rollback: it visits each node twice, and
// the time in which somebody reads the plan or works on a node counts.
const rollbackTimeout = 30 * time.Minute

// rollbackSite is which site and how its nodes are reached: the same for a
// rollback and its status.
type rollbackSite struct {
	target targetFlags

	networks           []string
	access, image      string
	namespace          string
	nodes              []string
	confDir, pluginDir string
}

func (f *rollbackSite) add(command *cobra.Command) {
	f.target.addNames(command)
	flags := command.Flags()
	flags.StringVar(&f.target.Timeout, "timeout", "", fmt.Sprintf("How long to go on, with a unit; 0s for ever (default %s; VLAN50_TIMEOUT)", rollbackTimeout))
	flags.StringArrayVar(&f.networks, "network", nil, "A NetworkAttachmentDefinition to delete besides the canary's, [NAMESPACE/]NAME; may be repeated")
	flags.StringVar(&f.access, "node-access", string(rollback.AccessPod), `How the nodes' files are reached: "pod", a short-lived Pod that sees the CNI conf dir alone, or "manual", shell lines for you to run`)
	flags.StringVar(&f.image, "node-image", "", "Image of node Pods and probes: sh with coreutils or busybox (default the thick Multus image on the node, else "+rollback.DefaultNodeImage+")")
	flags.StringVar(&f.namespace, "node-namespace", "", "Namespace of node Pods and probes (default the DaemonSet's)")
	flags.StringArrayVar(&f.nodes, "node", nil, "A node to visit; may be repeated (default those with a daemon Pod, all where there is none)")
	flags.StringVar(&f.confDir, "cni-conf-dir", "", "The nodes' CNI conf dir (default as the DaemonSet has it, else the known places)")
	flags.StringVar(&f.pluginDir, "cni-bin-dir", "", "The nodes' CNI plugin dir, for --remove-binaries (default as the DaemonSet has it)")
}

// toRollback makes clients and settings.
func (f *rollbackSite) toRollback(flags *genericclioptions.ConfigFlags, progress report.Progress) (*rollback.Rollback, time.Duration, error) {
	access := rollback.NodeAccess(f.access)
	if access != rollback.AccessPod && access != rollback.AccessManual {
		return nil, 0, usage(fmt.Errorf("--node-access %q is none of pod, manual", f.access))
	}
	settings, err := f.target.resolve(flags)
	if err != nil {
		return nil, 0, usage(err)
	}
	timeout, err := target.Duration("timeout", settings.Timeout, rollbackTimeout)
	if err != nil {
		return nil, 0, usage(err)
	}
	r := &rollback.Rollback{
		Canary: settings.canary, DaemonSetNamed: settings.DaemonSet != "", Access: access,
		NodeImage: f.image, NodeNamespace: f.namespace, Nodes: f.nodes, ConfDir: f.confDir, BinDir: f.pluginDir,
		DryRun: canary.DryRunNone, Holder: holder(time.Now()) + " for a rollback", Notify: progress.Note, Now: time.Now,
	}
	if err := f.names(r, settings.DaemonSet); err != nil {
		return nil, 0, usage(err)
	}
	config, err := restConfig(flags)
	if err != nil {
		return nil, 0, err
	}
	if r.Clients, err = rollback.NewClients(config); err != nil {
		return nil, 0, reachError(err)
	}
	store, process, err := localState(config.Host)
	if err != nil {
		return nil, 0, err
	}
	r.Store, r.Process = store, process
	return r, timeout, nil
}

// names parses what names objects.
func (f *rollbackSite) names(r *rollback.Rollback, daemonSet string) (err error) {
	if daemonSet == "" {
		daemonSet = target.DefaultDaemonSet
	}
	if r.DaemonSet, err = target.ParseRef(daemonSet, "kube-system"); err != nil {
		return fmt.Errorf("DaemonSet %w", err)
	}
	for _, text := range f.networks {
		ref, err := target.ParseRef(text, r.Canary.Namespace)
		if err != nil {
			return fmt.Errorf("--network %w", err)
		}
		r.Networks = append(r.Networks, ref)
	}
	for flag, dir := range map[string]*string{"cni-conf-dir": &r.ConfDir, "cni-bin-dir": &r.BinDir} {
		if *dir == "" {
			continue
		}
		if *dir = path.Clean(*dir); !rollback.PlainDir(*dir) {
			return fmt.Errorf("--%s %q is no absolute path of a folder that may be mounted into a Pod", flag, *dir)
		}
	}
	return nil
}
