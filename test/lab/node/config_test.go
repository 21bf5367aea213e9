//go:build linux

package node

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestEveryServiceHasACommand(t *testing.T) {
	got := slices.Sorted(maps.Keys(commands()))
	want := slices.Sorted(slices.Values(Services()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services and commands differ (-services +commands):\n%s", diff)
	}
	for name, argv := range commands() {
		if !strings.HasPrefix(argv[0], ToolDir+"/") {
			t.Errorf("%s runs %s, which is not one of the lab's tools", name, argv[0])
		}
	}
}

// TestConfigurationsParse guards the hand-written files against slips.
func TestConfigurationsParse(t *testing.T) {
	for name, content := range map[string]string{
		"flannel.conflist": FlannelConf,
		"kubelet.yaml":     kubeletConfig,
		"kubeconfig":       kubeconfigFor("https://127.0.0.1:1234", "Y2E=", "token"),
	} {
		var parsed map[string]any
		if err := yaml.UnmarshalStrict([]byte(content), &parsed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(parsed) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func TestMainLeavesOtherCommandsAlone(t *testing.T) {
	for _, args := range [][]string{{"lab"}, {"lab", "up"}, {"lab", "shell", "true"}} {
		if _, mine := Main(args); mine {
			t.Errorf("%v was taken for the lab's own process", args)
		}
	}
}
