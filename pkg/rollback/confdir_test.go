package rollback

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file is a regular file as a look gives it.
func file(name, content string) File {
	return File{Name: name, Kind: RegularFile, Size: int64(len(content)), SHA256: Checksum([]byte(content)), Content: []byte(content)}
}

func TestFind(t *testing.T) {
	t.Parallel()
	thick, flannel := file("00-multus.conf", multusConf), file("10-flannel.conflist", flannelConf)
	for name, row := range map[string]struct {
		files   []File
		multus  []string
		primary string
		problem string
		foreign bool
	}{
		"thick Multus over flannel": {
			files: []File{thick, flannel}, multus: []string{"00-multus.conf"}, primary: "10-flannel.conflist",
		},
		"no Multus": {
			files: []File{flannel}, primary: "10-flannel.conflist",
		},
		"thin Multus writes a list": {
			files:  []File{file("00-multus.conflist", `{"name":"m","plugins":[{"type":"multus"}]}`), flannel},
			multus: []string{"00-multus.conflist"}, primary: "10-flannel.conflist",
		},
		"both forms, left by an upgrade": {
			files:  []File{thick, file("00-multus.conflist", `{"name":"m","plugins":[{"type":"multus-shim"}]}`), flannel},
			multus: []string{"00-multus.conf", "00-multus.conflist"}, primary: "10-flannel.conflist",
		},
		"a name of the site's own": {
			files: []File{file("05-site.conf", multusConf), flannel}, multus: []string{"05-site.conf"}, primary: "10-flannel.conflist",
		},
		"emptied": {
			files: []File{file("00-multus.conf", ""), flannel}, multus: []string{"00-multus.conf"}, primary: "10-flannel.conflist",
		},
		"the file is of somebody else": {
			files: []File{file("00-multus.conf", `{"type":"bridge"}`), flannel}, problem: "is no conf of Multus (its type is bridge)", foreign: true,
		},
		"the file cannot be read as a conf": {
			files: []File{file("00-multus.conf", `{"type":`), flannel}, problem: "is no conf of Multus (it is not valid", foreign: true,
		},
		"the file is a link to elsewhere": {
			files: []File{{Name: "00-multus.conf", Kind: Symlink}, flannel}, problem: "symlink", foreign: true,
		},
		"no other conf": {
			files: []File{thick}, multus: []string{"00-multus.conf"}, problem: "no other CNI conf",
		},
		"the other conf was renamed by thin Multus": {
			files: []File{thick, file("10-flannel.conflist.old", flannelConf)}, multus: []string{"00-multus.conf"}, problem: "10-flannel.conflist.old looks like the primary one",
		},
		"the other conf is broken": {
			files: []File{thick, file("10-flannel.conflist", "{")}, multus: []string{"00-multus.conf"}, problem: "it is not valid",
		},
		"the other conf is empty": {
			files: []File{thick, file("10-flannel.conflist", "")}, multus: []string{"00-multus.conf"}, problem: "it is empty",
		},
		"a broken conf stands before the good one": {
			files: []File{thick, file("05-junk.conf", "{}"), flannel}, multus: []string{"00-multus.conf"}, problem: "05-junk.conf would be the node's first CNI conf, and cannot be used (it has no type)",
		},
		"a broken conf stands behind the good one": {
			files: []File{thick, flannel, file("99-junk.conf", "{}")}, multus: []string{"00-multus.conf"}, primary: "10-flannel.conflist",
		},
		"a list without plugins": {
			files: []File{thick, file("10-x.conflist", `{"name":"x","plugins":[]}`)}, multus: []string{"00-multus.conf"}, problem: "it has no plugins",
		},
		"a list without a name": {
			files: []File{thick, file("10-x.conflist", `{"plugins":[{"type":"ptp"}]}`)}, multus: []string{"00-multus.conf"}, problem: "it has no name",
		},
		"a list with a plugin that is no object": {
			files: []File{thick, file("10-x.conflist", `{"name":"x","plugins":[{"type":"ptp"}, 7]}`)}, multus: []string{"00-multus.conf"}, problem: "its plugin 2 has no type",
		},
		"a list that the runtime's library does not take: its version is no text": {
			files: []File{thick, file("10-x.conflist", `{"name":"x","cniVersion":1,"plugins":[{"type":"ptp"}]}`)}, multus: []string{"00-multus.conf"}, problem: "cniVersion",
		},
		"a list that the runtime's library does not take: it heeds the case of names": {
			files: []File{thick, file("10-x.conflist", `{"Name":"x","plugins":[{"type":"ptp"}]}`)}, multus: []string{"00-multus.conf"}, problem: "no name",
		},
		"a single conf with capabilities that are none": {
			files: []File{thick, file("10-x.conf", `{"name":"x","type":"ptp","capabilities":7}`)}, multus: []string{"00-multus.conf"}, problem: "capabilities",
		},
		"a single conf": {
			files: []File{thick, file("05-x.conf", `{"name":"x","type":"ptp"}`), flannel}, multus: []string{"00-multus.conf"}, primary: "05-x.conf",
		},
		"a list in a file for single confs": {
			files: []File{thick, file("10-x.conf", flannelConf)}, multus: []string{"00-multus.conf"}, problem: "it has no type",
		},
		"a pipe of that name": {
			files: []File{thick, {Name: "05-x.conf", Kind: OtherFile}, flannel}, multus: []string{"00-multus.conf"}, problem: "it is no regular file",
		},
		"too long for a conf": {
			files: []File{thick, {Name: "05-x.conf", Kind: RegularFile, Size: 1 << 30}, flannel}, multus: []string{"00-multus.conf"}, problem: "too long",
		},
		"folders and other files do not count": {
			files:  []File{thick, {Name: "05-x.conf", Kind: Directory}, file("05-x.conf.bak", "{"), file("README", ""), flannel},
			multus: []string{"00-multus.conf"}, primary: "10-flannel.conflist",
		},
		"hidden confs count, as for the runtime": {
			files: []File{thick, file(".05.conf", `{"type":"ptp"}`), flannel}, multus: []string{"00-multus.conf"}, primary: ".05.conf",
		},
		"a Multus conf with a name for no shell": {
			files: []File{file("00 $(reboot).conf", multusConf), flannel}, multus: []string{"00 $(reboot).conf"}, problem: "not safe to handle",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Find(ConfDir{Path: "/etc/cni/net.d", Files: row.files})
			var multus []string
			for _, conf := range got.Multus {
				multus = append(multus, conf.Name)
			}
			if diff := cmp.Diff(row.multus, multus); diff != "" {
				t.Errorf("to be removed (-want +got)\n%s", diff)
			}
			if row.primary != "" && (got.Primary == nil || got.Primary.Name != row.primary) {
				t.Errorf("primary %+v, want %s", got.Primary, row.primary)
			}
			if row.problem == "" && got.Problem != "" || !strings.Contains(got.Problem, row.problem) || got.Foreign != row.foreign {
				t.Errorf("problem %q (foreign: %t), want %q", got.Problem, got.Foreign, row.problem)
			}
		})
	}
}

func TestBackups(t *testing.T) {
	t.Parallel()
	old, older := multusConf, multusConf+" "
	name := func(at, content string) string { return "00-multus.conf." + at + "." + Checksum([]byte(content))[:12] }
	vouch := func(name, content string) File {
		return file(name+".sha256", Checksum([]byte(content))+"  "+name+"\n")
	}
	first, second := name("20260314T120000Z", older), name("20260315T120000Z", old)
	files := []File{
		file(first, older), vouch(first, older),
		file(second, old), vouch(second, old),
		file(name("20260316T120000Z", "unvouched"), "unvouched"),
		file("00-multus.conf.20260317T120000Z.000000000000", "another content than its name says"),
		file("passwd.20260317T120000Z."+Checksum(nil)[:12], ""),
		file(".new", "cut short"),
		{Name: "multus.d.20260314T120000Z", Kind: Directory},
	}
	var got []string
	for _, b := range Backups(files) {
		got = append(got, b.File)
	}
	if diff := cmp.Diff([]string{second, first}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
