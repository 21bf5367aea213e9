//go:build krew

package krew

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
)

// workflow is what a test wants to know of a workflow file.
type workflow struct {
	Env  map[string]any
	Jobs map[string]struct {
		Uses  string
		Steps []struct{ Uses, Run string }
	}
}

// pinned is an action by its full commit, or a workflow of this repository.
var pinned = regexp.MustCompile(`^(\./|[\w-]+/[\w./-]+@[0-9a-f]{40}$)`)

func TestWorkflows(t *testing.T) {
	root, err := buildcache.Root(t.Context())
	check(t, err)
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	check(t, err)
	actions, makes, toolchains := 0, []string{}, map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		var w workflow
		check(t, yaml.Unmarshal(text, &w))
		version, _ := w.Env["GO_VERSION"].(string)
		toolchains[version] = append(toolchains[version], filepath.Base(file))
		for name, job := range w.Jobs {
			used := []string{}
			if job.Uses != "" {
				used = append(used, job.Uses)
			}
			for _, step := range job.Steps {
				if step.Uses != "" {
					used = append(used, step.Uses)
				}
				makes = append(makes, strings.TrimPrefix(step.Run, "make "))
			}
			for _, action := range used {
				if actions++; !pinned.MatchString(action) {
					t.Errorf("%s, job %s: %s is not pinned by its commit", filepath.Base(file), name, action)
				}
			}
		}
	}
	if actions == 0 {
		t.Errorf("no action in any of %s", files)
	}
	// The release must be built by the Go that the checks ran with: its bytes depend on it.
	if len(toolchains) != 1 {
		t.Errorf("the workflows differ in GO_VERSION: %v", toolchains)
	}
	for _, target := range []string{"lint", "unit", "integration", "test-krew"} {
		if !strings.Contains(" "+strings.Join(makes, " ")+" ", " "+target+" ") {
			t.Errorf("no workflow runs make %s", target)
		}
	}
}
