//go:build linux

package node

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestEveryServiceHasACommand(t *testing.T) {
	for _, m := range []machine{first, second} {
		for _, name := range m.services {
			if argv := m.command(name); len(argv) == 0 || !strings.HasPrefix(argv[0], ToolDir+"/") {
				t.Errorf("%s on %s runs %v, which is not one of the lab's tools", name, m.name, argv)
			}
		}
	}
}

// TestConfigurationsParse guards the hand-written files against slips.
func TestConfigurationsParse(t *testing.T) {
	for name, content := range map[string]string{
		"flannel.conflist": FlannelConf,
		"kubelet.yaml":     kubeletConfig(CgroupFolder(Name)),
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

func TestStateFolder(t *testing.T) {
	for _, test := range []struct {
		of   string
		args []string
		want string
	}{
		{"the first node", newInit("/cache/lab", first).Args, "/cache/lab"},
		{"the second node", newInit("/cache/lab", second).Args, ""},
		{"another process", []string{"sh", Name, "/cache/lab", "0"}, ""},
		{"one without a command line", []string{""}, ""},
	} {
		if got := StateFolder(test.args); got != test.want {
			t.Errorf("%s: %q, want %q", test.of, got, test.want)
		}
	}
}
