package cmd

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// Set by the release build; a plain build reads them from the build info.
var (
	version = ""
	commit  = ""
	date    = ""
)

// versionInfo is the document that version prints.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`

	Server string `json:"server,omitempty"`
	Multus string `json:"multus,omitempty"`
}

func newCmdVersion(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	server, daemonSet := false, ""
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool, and of the server with --server",
		Example: strings.TrimSpace(`
  # This tool; needs no cluster
  kubectl vlan50 version

  # And the API server and the Multus image
  kubectl vlan50 version --server`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			info := clientVersion()
			if server {
				if err := info.addServer(command.Context(), config, daemonSet); err != nil {
					return err
				}
			}
			info.print(streams)
			return nil
		},
	}
	command.Flags().BoolVar(&server, "server", server, "Also print the API server's version and the Multus image")
	command.Flags().StringVar(&daemonSet, "daemonset", daemonSet, "The Multus DaemonSet, [NAMESPACE/]NAME")
	return command
}

func clientVersion() versionInfo {
	info := versionInfo{
		Version: version, Commit: commit, Date: date,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if ok && info.Version == "" {
		info.Version = build.Main.Version
	}
	if info.Version == "" {
		info.Version = "(devel)"
	}
	if !ok {
		return info
	}
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision" && info.Commit == "":
			info.Commit = setting.Value
		case setting.Key == "vcs.time" && info.Date == "":
			info.Date = setting.Value
		}
	}
	return info
}

// addServer asks the cluster: one request for its version, one or a few for the
// DaemonSet.
func (v *versionInfo) addServer(ctx context.Context, flags *genericclioptions.ConfigFlags, setting string) error {
	config, err := restConfig(flags)
	if err != nil {
		return reachError(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return reachError(err)
	}
	server, err := client.ServerVersion()
	if err != nil {
		return reachError(fmt.Errorf("asking the API server for its version: %w", err))
	}
	v.Server = server.GitVersion
	clients, err := cluster.New(config)
	if err != nil {
		return reachError(err)
	}
	v.Multus = multusImage(ctx, clients, setting)
	return nil
}

// multusImage says what Multus runs, or why that is not known: neither keeps
// the rest from being printed.
func multusImage(ctx context.Context, clients *cluster.Clients, setting string) string {
	ref, _, err := target.FindDaemonSet(ctx, clients.Apps, setting)
	if err != nil {
		return "unknown: " + err.Error()
	}
	ds, err := clients.Apps.DaemonSets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "unknown: " + err.Error()
	}
	if containers := ds.Spec.Template.Spec.Containers; len(containers) > 0 {
		return fmt.Sprintf("%s (DaemonSet %s)", containers[0].Image, ref)
	}
	return fmt.Sprintf("unknown: DaemonSet %s has no container", ref)
}

func (v *versionInfo) print(streams genericiooptions.IOStreams) {
	for _, line := range []struct{ name, value string }{
		{"version", v.Version},
		{"commit", v.Commit},
		{"date", v.Date},
		{"go", v.Go},
		{"platform", v.Platform},
		{"server", v.Server},
		{"multus", v.Multus},
	} {
		if line.value != "" {
			fmt.Fprintf(streams.Out, "%-9s %s\n", line.name+":", report.Line(line.value))
		}
	}
}
