package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// confFault reads the node's CNI conf folder, where it was listed.
func (s *scene) confFault() *finding {
	for _, hf := range s.hostFiles() {
		if f := s.dirFault(hf); f != nil {
			f.lines = append(f.lines, hostFilesLine(hf))
			return f
		}
	}
	return nil
}

// hostFiles gives the listings of the Pod's node in a fixed order.
func (s *scene) hostFiles() []evidence.HostFiles {
	var own []evidence.HostFiles
	for _, hf := range s.e.HostFiles {
		if hf.Node == s.node {
			own = append(own, hf)
		}
	}
	slices.SortFunc(own, func(a, b evidence.HostFiles) int { return strings.Compare(a.Dir, b.Dir) })
	return own
}

func (s *scene) dirFault(hf evidence.HostFiles) *finding {
	confs := confFiles(hf)
	if !isRuntimeDir(hf) {
		if i := slices.IndexFunc(confs, isMultusConf); i >= 0 {
			return &finding{
				cause: MultusConfWrongDir, names: names{dir: hf.RuntimeConfDir},
				message: fmt.Sprintf("%s lies in %s, but the runtime reads %s", confs[i].Name, hf.Dir, hf.RuntimeConfDir),
			}
		}
		return nil
	}
	if len(confs) == 0 {
		return nil
	}
	first := confs[0]
	if isMultusConf(first) {
		return nil
	}
	for _, file := range hf.Files {
		if isMultusFile(file.Name) {
			return &finding{
				cause:   MultusConfDisplaced,
				message: fmt.Sprintf("the first conf in %s is %s, and Multus' is there as %s", hf.Dir, first.Name, file.Name),
			}
		}
	}
	return nil
}

// isRuntimeDir reports a folder that the runtime reads, as far as is known.
func isRuntimeDir(hf evidence.HostFiles) bool {
	return hf.RuntimeConfDir == "" || path.Clean(hf.Dir) == path.Clean(hf.RuntimeConfDir)
}

// isMultusFile tells Multus' conf, under whatever ending it was given, from the
// folder multus.d and what lies in there: they are no confs and always present.
func isMultusFile(name string) bool {
	name = strings.ToLower(path.Base(name))
	return strings.Contains(name, "multus") && name != "multus.d" &&
		!strings.HasSuffix(name, ".kubeconfig") && !strings.HasSuffix(name, "daemon-config.json")
}

// confFiles gives what a runtime takes for confs, in its order: sorted by name,
// of the three extensions (libcni.ConfFiles).
func confFiles(hf evidence.HostFiles) []evidence.HostFile {
	var confs []evidence.HostFile
	for _, f := range hf.Files {
		switch path.Ext(f.Name) {
		case ".conf", ".conflist", ".json":
			confs = append(confs, f)
		}
	}
	slices.SortFunc(confs, func(a, b evidence.HostFile) int { return strings.Compare(a.Name, b.Name) })
	return confs
}

// isMultusConf tells Multus' conf by its content, by its name where there is
// none.
func isMultusConf(f evidence.HostFile) bool {
	if f.Content == "" {
		return strings.Contains(strings.ToLower(f.Name), "multus")
	}
	conf, err := multus.ParseNetConf(f.Content)
	return err == nil && isMetaPlugin(conf.Type)
}

// isBrokenConf reports a conf that no runtime can load.
func isBrokenConf(f evidence.HostFile) bool {
	if f.Size == 0 && strings.TrimSpace(f.Content) == "" {
		return true
	}
	if f.Content == "" {
		return false
	}
	var conf struct {
		Type    string            `json:"type"`
		Plugins []json.RawMessage `json:"plugins"`
	}
	// Where nothing names a plugin, libcni refuses what is valid JSON otherwise.
	return json.Unmarshal([]byte(f.Content), &conf) != nil || conf.Type == "" && len(conf.Plugins) == 0
}

func isMetaPlugin(plugin string) bool { return plugin == "multus" || plugin == "multus-shim" }

func hostFilesLine(hf evidence.HostFiles) Line {
	parts := make([]string, 0, len(hf.Files))
	for _, f := range hf.Files {
		parts = append(parts, fmt.Sprintf("%s (%d bytes)", f.Name, cmp.Or(f.Size, int64(len(f.Content)))))
	}
	slices.Sort(parts)
	return Line{Source: "host", Text: hf.Node + ":" + hf.Dir + ": " + strings.Join(parts, ", ")}
}
