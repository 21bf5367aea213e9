package cmd

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

// targetFlags are the flags that have a variable and a key in the config file.
type targetFlags struct {
	target.Settings
	file string
}

// resolved are the settings, parsed.
type resolved struct {
	target.Settings
	canary          evidence.Ref
	timeout, settle time.Duration
}

// add gives a command all of them; addNames those that name objects.
func (f *targetFlags) add(command *cobra.Command) {
	f.addNames(command)
	flags := command.Flags()
	flags.StringVar(&f.Timeout, "timeout", "", fmt.Sprintf("How long to go on without a verdict, with a unit; 0s for ever (default %s; VLAN50_TIMEOUT)", target.DefaultTimeout))
	flags.StringVar(&f.Settle, "settle", "", fmt.Sprintf("How long to wait after the daemon is Ready where its log cannot tell (default %s; VLAN50_SETTLE)", target.DefaultSettle))
}

func (f *targetFlags) addNames(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Canary, "canary", "", "The canary Pod, [NAMESPACE/]NAME (default "+target.DefaultCanary+"; VLAN50_CANARY)")
	flags.StringVar(&f.DaemonSet, "daemonset", "", "The Multus DaemonSet, [NAMESPACE/]NAME (default "+target.DefaultDaemonSet+", else the one that runs Multus; VLAN50_DAEMONSET)")
	flags.StringVar(&f.file, "config", "", "Config file (default kubectl-vlan50/config.yaml in the user's config folder; VLAN50_CONFIG)")
}

// named reports whether the user named the canary on the command line.
func (f *targetFlags) named(command *cobra.Command) bool {
	return command.Flags().Changed("canary") || command.Flags().Changed("namespace")
}

func (f *targetFlags) resolve(config *genericclioptions.ConfigFlags) (resolved, error) {
	settings, err := target.Resolve(f.Settings, os.Getenv, f.file, contextName(config))
	if err != nil {
		return resolved{}, err
	}
	r := resolved{Settings: settings}
	if r.canary, err = canaryRef(settings.Canary, config); err != nil {
		return r, err
	}
	if settings.DaemonSet != "" {
		if _, err := target.ParseRef(settings.DaemonSet, "kube-system"); err != nil {
			return r, fmt.Errorf("DaemonSet %w", err)
		}
	}
	if r.timeout, err = target.Duration("timeout", settings.Timeout, target.DefaultTimeout); err != nil {
		return r, err
	}
	r.settle, err = target.Duration("settle", settings.Settle, target.DefaultSettle)
	return r, err
}

// canaryRef puts -n over the default's namespace; a namespace in the name
// itself must not contradict it.
func canaryRef(setting string, config *genericclioptions.ConfigFlags) (evidence.Ref, error) {
	standard, err := target.ParseRef(target.DefaultCanary, "")
	if err != nil {
		return standard, err
	}
	namespace := *config.Namespace
	if setting == "" {
		if namespace != "" {
			standard.Namespace = namespace
		}
		return standard, nil
	}
	fallback := namespace
	if fallback == "" {
		fallback = standard.Namespace
	}
	ref, err := target.ParseRef(setting, fallback)
	if err != nil {
		return ref, fmt.Errorf("canary %w", err)
	}
	if namespace != "" && ref.Namespace != namespace {
		return ref, fmt.Errorf("canary %s is not in the namespace %s that -n names", ref, namespace)
	}
	return ref, nil
}

// contextName is the kube context in use, empty where there is no kubeconfig.
func contextName(config *genericclioptions.ConfigFlags) string {
	if *config.Context != "" {
		return *config.Context
	}
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}
