// Package target finds out what a command is about: which canary, which
// DaemonSet, from flags, variables, the config file and the cluster.
package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// The reference site, the last resort of every setting.
const (
	DefaultCanary    = "downloads/vlan50-canary"
	DefaultDaemonSet = "kube-system/kube-multus-ds"
	DefaultTimeout   = 5 * time.Minute
	DefaultSettle    = 10 * time.Second
)

// Settings are the values that have a flag, a VLAN50_* variable and a key in
// the config file. An empty one is not set.
type Settings struct {
	Canary    string `json:"canary,omitempty"`
	DaemonSet string `json:"daemonSet,omitempty"`
	Timeout   string `json:"timeout,omitempty"`
	Settle    string `json:"settle,omitempty"`
}

// file is the config file: settings for all contexts, and sections by context.
type file struct {
	Settings `json:",inline"`
	Contexts map[string]Settings `json:"contexts,omitempty"`
}

// over gives the settings of s where they are set, else those of base.
func (s Settings) over(base Settings) Settings {
	pick := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	return Settings{
		Canary: pick(s.Canary, base.Canary), DaemonSet: pick(s.DaemonSet, base.DaemonSet),
		Timeout: pick(s.Timeout, base.Timeout), Settle: pick(s.Settle, base.Settle),
	}
}

// Resolve applies the precedence: flag, variable, file (the context's section
// before the general part), default. An explicit path must exist; the default
// one need not.
func Resolve(flags Settings, getenv func(string) string, path, context string) (Settings, error) {
	explicit := path != ""
	if !explicit {
		path = getenv("VLAN50_CONFIG")
		explicit = path != ""
	}
	if !explicit {
		if dir, err := os.UserConfigDir(); err == nil {
			path = filepath.Join(dir, "kubectl-vlan50", "config.yaml")
		}
	}
	fromFile, err := read(path, explicit, context)
	if err != nil {
		return Settings{}, err
	}
	variables := Settings{
		Canary: getenv("VLAN50_CANARY"), DaemonSet: getenv("VLAN50_DAEMONSET"),
		Timeout: getenv("VLAN50_TIMEOUT"), Settle: getenv("VLAN50_SETTLE"),
	}
	return flags.over(variables).over(fromFile), nil
}

func read(path string, explicit bool, context string) (Settings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("reading the config file: %w", err)
	}
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		// The parser lists what it found in lines of their own.
		return Settings{}, fmt.Errorf("config file %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	return f.Contexts[context].over(f.Settings), nil
}

// ParseRef reads [namespace/]name. A missing namespace is taken from fallback.
func ParseRef(text, fallback string) (evidence.Ref, error) {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		namespace, name = fallback, text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return evidence.Ref{}, fmt.Errorf("%q is not of the form [NAMESPACE/]NAME", text)
	}
	return evidence.Ref{Namespace: namespace, Name: name}, nil
}

// Duration reads a setting with a unit; empty gives the default.
func Duration(name, text string, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s %q is no duration: give a number with a unit, such as 90s or 5m", name, text)
	}
	return d, nil
}
