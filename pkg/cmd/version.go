package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// unknown stands for what a build did not record.
const unknown = "unknown"

// versionInfo is the document that version prints.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	// Sum is the module's checksum as in the Go checksum database; only
	// "go install module@version" records it, which in turn knows no commit.
	Sum      string `json:"sum,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`

	Server string `json:"server,omitempty"`
	Multus string `json:"multus,omitempty"`
}

func newCmdVersion(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	server, daemonSet, output := false, "", ""
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool, and of the server with --server",
		Example: example(`
  # This tool; needs no cluster
  kubectl vlan50 version

  # And the API server and the Multus image
  kubectl vlan50 version --server`),
		Args: func(command *cobra.Command, args []string) error { return usage(noArgs(command, args)) },
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := versionPrinter(output)
			if err != nil {
				return usage(err)
			}
			build, _ := debug.ReadBuildInfo()
			info := clientVersion(build)
			var asking error
			if server {
				asking = info.addServer(command.Context(), config, daemonSet)
			}
			// What this tool knows of itself is printed though the server may be away.
			if err := printer(streams.Out, info); err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
			return asking
		},
	}
	command.Flags().BoolVar(&server, "server", server, "Also print the API server's version and the Multus image")
	command.Flags().StringVar(&daemonSet, "daemonset", daemonSet, "The Multus DaemonSet, [NAMESPACE/]NAME")
	command.Flags().StringVarP(&output, "output", "o", output, "Output format. One of: (json, yaml)")
	return command
}

// clientVersion reads what the go command recorded in the binary, which is the
// one source for every way of building it:
//   - in a checkout (a release build is one) the version comes from the tag,
//     commit and date from the version control system;
//   - "go install module@version" knows the version and the module's checksum;
//     a pseudo-version holds commit and date as well;
//   - a build with -buildvcs=false or outside a checkout knows nothing.
func clientVersion(build *debug.BuildInfo) versionInfo {
	info := versionInfo{
		Version: "(devel)", Commit: unknown, Date: unknown,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build == nil {
		return info
	}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	info.Sum = build.Main.Sum
	if commit, date, ok := fromPseudoVersion(build.Main.Version); ok {
		info.Commit, info.Date = commit, date
	}
	info.addSettings(build.Settings)
	return info
}

// addSettings takes what the version control system said, where it was asked.
func (v *versionInfo) addSettings(settings []debug.BuildSetting) {
	modified := ""
	for _, setting := range settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.time":
			v.Date = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = " with local changes"
			}
		}
	}
	v.Commit += modified
}

// pseudoVersion matches the end of a pseudo-version, a date and the start of a
// commit; https://go.dev/ref/mod#pseudo-versions.
var pseudoVersion = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(?:\+[0-9A-Za-z.-]+)?$`)

func fromPseudoVersion(version string) (commit, date string, ok bool) {
	match := pseudoVersion.FindStringSubmatch(version)
	if match == nil {
		return "", "", false
	}
	at, err := time.Parse("20060102150405", match[1])
	if err != nil {
		return "", "", false
	}
	return match[2], at.Format(time.RFC3339), true
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
	server, err := client.ServerVersionWithContext(ctx)
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
	if container := multus.DaemonContainer(&ds.Spec.Template.Spec); container != nil {
		return fmt.Sprintf("%s (DaemonSet %s)", container.Image, ref)
	}
	return fmt.Sprintf("unknown: DaemonSet %s has no container", ref)
}

// versionPrinter gives the printer of a format; "" is the one for people.
func versionPrinter(format string) (func(io.Writer, versionInfo) error, error) {
	switch format {
	case "":
		return printVersion, nil
	case "json":
		return func(out io.Writer, info versionInfo) error {
			encoder := json.NewEncoder(out)
			encoder.SetIndent("", "    ")
			return encoder.Encode(info)
		}, nil
	case "yaml":
		return func(out io.Writer, info versionInfo) error {
			text, err := yaml.Marshal(info)
			if err != nil {
				return err
			}
			_, err = out.Write(text)
			return err
		}, nil
	}
	return nil, fmt.Errorf("--output %q is none of json, yaml", format)
}

func printVersion(out io.Writer, info versionInfo) error {
	text := strings.Builder{}
	for _, line := range []struct{ name, value string }{
		{"version", info.Version},
		{"commit", info.Commit},
		{"date", info.Date},
		{"sum", info.Sum},
		{"go", info.Go},
		{"platform", info.Platform},
		{"server", info.Server},
		{"multus", info.Multus},
	} {
		if line.value != "" {
			fmt.Fprintf(&text, "%-9s %s\n", line.name+":", report.Line(line.value))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
