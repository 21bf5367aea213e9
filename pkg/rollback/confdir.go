package rollback

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

// File is one entry of a node's conf dir.
type File struct {
	Name string
	Kind FileKind
	Size int64
	// SHA256 and Content are empty where the file was not read: it is no regular
	// file, or too long for a conf.
	SHA256  string
	Content []byte
}

// FileKind says what an entry of a directory is.
type FileKind string

// The kinds of entries.
const (
	RegularFile FileKind = "file"
	Directory   FileKind = "dir"
	Symlink     FileKind = "link"
	OtherFile   FileKind = "other"
)

// BackupDir is the folder inside the conf dir that keeps what was taken away.
// The CNI loaders read no folders, and none of the suffixes in it.
const BackupDir = "vlan50-backup"

// credentialDir is where thin Multus keeps its kubeconfig, inside the conf dir.
const credentialDir = "multus.d"

// ConfDir is what a node's conf dir holds.
type ConfDir struct {
	Path string
	// Locked is why a node Pod may not write there; empty where it may, or where
	// the node does not tell.
	Locked  string
	Files   []File
	Backups []File
}

// Conf is a CNI conf that the runtime would load, read by the runtime's rules.
type Conf struct {
	File
	// Network and Type are the conf's name and its (first) plugin's type.
	Network, Type string
	// Problem is why the runtime could not use it.
	Problem string
}

// Finding is what a rollback has to do in a conf dir, and whether it may.
type Finding struct {
	// Multus are the confs that put Multus in the chain: to be removed.
	Multus []Conf
	// Credentials: thin Multus has left its folder with a kubeconfig.
	Credentials bool
	// Primary is the conf that is first once those are gone.
	Primary *Conf
	// Problem is why nothing may be removed; empty where all is well.
	Problem string
	// Foreign: the problem is a file of Multus' name that is not Multus'.
	Foreign bool
}

// Clean reports whether nothing of Multus is left.
func (f Finding) Clean() bool { return len(f.Multus) == 0 && !f.Credentials }

// multusNames are the names that only Multus gives its own conf
// (pkg/server/config/manager.go, cmd/thin_entrypoint).
func multusNames() []string { return []string{"00-multus.conf", "00-multus.conflist"} }

// safeName are the names that are handed to a shell on a node.
var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$`)

// Find judges a conf dir. Its rules, in order:
//
//   - a conf whose type is Multus' is to be removed, whatever its name;
//   - so is an empty file of the name that only Multus writes: it can say no
//     type, and blocks the node's network;
//   - any other file of that name is somebody else's work: stop;
//   - a conf to be removed must have a name that is safe to hand to a shell;
//   - once those are gone, the first conf must be one that the runtime can use:
//     a first one that it cannot use leaves the node without network.
func Find(dir ConfDir) Finding {
	var finding Finding
	var rest []Conf
	stranger := ""
	for _, conf := range Confs(dir.Files) {
		switch named := slices.Contains(multusNames(), conf.Name); {
		case isMultusType(conf.Type), named && conf.Kind == RegularFile && conf.Size == 0:
			finding.Multus = append(finding.Multus, conf)
		case named:
			stranger = foreign(dir, conf)
		default:
			rest = append(rest, conf)
		}
	}
	if stranger != "" {
		finding.Problem, finding.Foreign = stranger, true
		return finding
	}
	for _, conf := range finding.Multus {
		if !safeName.MatchString(conf.Name) {
			finding.Problem = fmt.Sprintf("the Multus conf %q in %s has a name that is not safe to handle: rename it by hand", conf.Name, dir.Path)
			return finding
		}
	}
	finding.Credentials = slices.ContainsFunc(dir.Files, func(f File) bool { return f.Name == credentialDir && f.Kind == Directory })
	finding.Primary, finding.Problem = primary(dir, rest)
	if len(finding.Multus)+len(rest) == 0 && renamed(dir) == "" {
		finding.Problem = fmt.Sprintf("no CNI conf is in %s, not even Multus': where the node's runtime reads another folder name that with --cni-conf-dir, else bring the node's own conf back first", dir.Path)
	}
	return finding
}

func foreign(dir ConfDir, conf Conf) string {
	why := "its type is " + conf.Type
	if conf.Type == "" {
		why = conf.Problem
	}
	return fmt.Sprintf("%s/%s is no conf of Multus (%s): it is left alone; look at it by hand", dir.Path, conf.Name, why)
}

// primary is the first of the confs that stay.
func primary(dir ConfDir, rest []Conf) (*Conf, string) {
	if len(rest) == 0 {
		return nil, fmt.Sprintf("no other CNI conf is in %s: without Multus' own the node could start no Pod%s", dir.Path, renamed(dir))
	}
	first := rest[0]
	if first.Problem != "" {
		return nil, fmt.Sprintf("%s/%s would be the node's first CNI conf, and cannot be used (%s): without Multus' own the node could start no Pod",
			dir.Path, first.Name, first.Problem)
	}
	return &first, ""
}

// renamed is a hint at a conf that Multus itself has put out of the way
// (--rename-conf-file of thin Multus).
func renamed(dir ConfDir) string {
	for _, file := range dir.Files {
		if name, ok := strings.CutSuffix(file.Name, ".old"); ok && isConfName(name) {
			return fmt.Sprintf("; %s looks like the primary one, renamed: give it its name back first", file.Name)
		}
	}
	return ""
}

// Confs are the files that the runtime takes for confs, in its order. Their
// rules are those of libcni and go-cni (libcni.ConfFiles, loadFromConfDir),
// which take the first and give up if it is bad.
func Confs(files []File) []Conf {
	var confs []Conf
	for _, file := range files {
		if file.Kind != Directory && isConfName(file.Name) {
			confs = append(confs, readConf(file))
		}
	}
	slices.SortFunc(confs, func(a, b Conf) int { return strings.Compare(a.Name, b.Name) })
	return confs
}

func isConfName(name string) bool {
	return slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(name))
}

func isMultusType(name string) bool { return name == "multus" || name == "multus-shim" }

// readConf reads a conf as far as the runtime does before it uses it.
func readConf(file File) Conf {
	conf := Conf{File: file}
	switch {
	case file.Kind == Symlink && file.Content == nil:
		conf.Problem = "it is a symlink to another folder, which cannot be looked into from here"
		return conf
	case file.Kind == OtherFile:
		conf.Problem = "it is no regular file"
		return conf
	case file.Size == 0:
		conf.Problem = "it is empty"
		return conf
	case file.Content == nil:
		conf.Problem = fmt.Sprintf("it is too long for a conf (%d bytes)", file.Size)
		return conf
	}
	var fields struct {
		Name    string            `json:"name"`
		Type    string            `json:"type"`
		Plugins []json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal(file.Content, &fields); err != nil {
		conf.Problem = "it is not valid: " + strings.Join(strings.Fields(err.Error()), " ")
		return conf
	}
	conf.Network, conf.Type = fields.Name, fields.Type
	switch list := path.Ext(file.Name) == ".conflist"; {
	case list:
		conf.Type, conf.Problem = firstType(fields.Plugins)
		if conf.Problem == "" && fields.Name == "" {
			conf.Problem = "it has no name"
		}
	case conf.Type == "":
		conf.Problem = "it has no type"
	}
	if conf.Problem == "" {
		conf.Problem = refusal(file)
	}
	return conf
}

// refusal is why the library that every runtime loads its confs with would not
// take a conf that looks well.
func refusal(file File) string {
	load := libcni.ConfListFromBytes
	if path.Ext(file.Name) != ".conflist" {
		load = listOfOne
	}
	if _, err := load(file.Content); err != nil {
		return "it is not valid: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return ""
}

// listOfOne reads a conf of a single plugin as go-cni does, as a list of one.
func listOfOne(content []byte) (*libcni.NetworkConfigList, error) {
	conf, err := libcni.ConfFromBytes(content)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf)
}

// firstType is the type of the plugin that makes the interface.
func firstType(plugins []json.RawMessage) (name, problem string) {
	if len(plugins) == 0 {
		return "", "it has no plugins"
	}
	for i, raw := range plugins {
		var plugin struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &plugin); err != nil || plugin.Type == "" {
			return name, fmt.Sprintf("its plugin %d has no type", i+1)
		}
		if i == 0 {
			name = plugin.Type
		}
	}
	return name, ""
}
