package rollback

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// line is one line of a look's report.
func line(section, name, content string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s file %d %s %s %s\n", section, len(content), Checksum([]byte(content)), encode([]byte(name)), encode([]byte(content)))
}

func TestLookReportIsReadStrictly(t *testing.T) {
	t.Parallel()
	const begin, end = "vlan50-look 1 n0nce\n", "end 1 n0nce\n"
	good := line("conf", "00-multus.conf", multusConf)
	for name, row := range map[string]struct{ report, want string }{
		"whole":                           {begin + good + end, ""},
		"with the folder's owner":         {begin + "folder no 998 755\n" + good + end, ""},
		"the owner in the middle":         {begin + good + "folder yes 0 755\n" + end, "4 fields"},
		"an owner that is none":           {begin + "folder no root;rm 755\n" + good + end, "4 fields"},
		"nothing":                         {"", "does not begin"},
		"another run's":                   {strings.ReplaceAll(begin+good+end, "n0nce", "0ther"), "does not begin"},
		"cut short":                       {begin + good, "has no end"},
		"a line is missing":               {begin + end, "cannot be read"},
		"an end in the middle":            {begin + "end 0 n0nce\n" + good, "goes on after its end"},
		"another version":                 {"vlan50-look 2 n0nce\n" + good + end, "does not begin"},
		"a field too many":                {begin + strings.TrimSpace(good) + " x\n" + end, "7 fields"},
		"no such section":                 {begin + line("shadow", "x", "y") + end, "no such section"},
		"no such kind":                    {begin + strings.Replace(good, " file ", " socket ", 1) + end, "no such kind"},
		"the checksum is another's":       {begin + strings.Replace(good, Checksum([]byte(multusConf)), Checksum(nil), 1) + end, "changed while it was read"},
		"the size is another's":           {begin + strings.Replace(good, fmt.Sprintf(" %d ", len(multusConf)), " 1 ", 1) + end, "changed while it was read"},
		"a size below zero":               {begin + strings.Replace(good, fmt.Sprintf(" %d ", len(multusConf)), " -1 ", 1) + end, "no size"},
		"a path for a name":               {begin + line("conf", "../../etc/passwd", "x") + end, "no file name"},
		"no name":                         {begin + "conf file 0 - - -\n" + end, "no file name"},
		"more files than there may be":    {begin + strings.Repeat(good, mostFiles+1) + end, "more than 100 files"},
		"a line without end":              {begin + strings.Repeat("x", longestLine+1), "cannot be read"},
		"terminal controls in a bad line": {begin + "\x1b]0;title\x07\n" + end, "1 fields"},
		"it could not enter":              {begin + "fail no-folder\n", "cannot be entered"},
		"it could not read":               {begin + "fail unreadable\n", "SELinux"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := parseLook([]byte(row.report), "n0nce", "/etc/cni/net.d")
			switch {
			case row.want == "" && err != nil:
				t.Error(err)
			case row.want == "" && len(dir.Files) != 1:
				t.Errorf("%d files", len(dir.Files))
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

func TestActReportIsReadStrictly(t *testing.T) {
	t.Parallel()
	sum := Checksum(nil)
	for name, row := range map[string]struct{ message, want string }{
		"whole":               {"vlan50-act 1 n0nce\nremoved 00-multus.conf " + sum + " 00-multus.conf.x\nbinary-removed multus\nend n0nce\n", ""},
		"nothing":             {"", "does not begin"},
		"another run's":       {"vlan50-act 1 0ther\nend 0ther\n", "does not begin"},
		"cut short":           {"vlan50-act 1 n0nce\nremoved 00-multus.conf " + sum + " 00-multus.conf.x\n", "has no end"},
		"goes on":             {"vlan50-act 1 n0nce\nend n0nce\nremoved x " + sum + " y\n", "cannot be read"},
		"no checksum":         {"vlan50-act 1 n0nce\nremoved 00-multus.conf abc x\nend n0nce\n", "cannot be read"},
		"a path in a name":    {"vlan50-act 1 n0nce\nabsent ../x\nend n0nce\n", "cannot be read"},
		"a word of its own":   {"vlan50-act 1 n0nce\nformatted disk\nend n0nce\n", "cannot be read"},
		"a control character": {"vlan50-act 1 n0nce\nabsent \x1b[2J\nend n0nce\n", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseAct(row.message, "n0nce")
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

// Whatever a report holds, it is read without harm and never beyond its bounds.
func FuzzParseLook(f *testing.F) {
	f.Add([]byte("vlan50-look 1 n\n" + line("conf", "a.conf", "{}") + line("backup", "b", "") + "end 2 n\n"))
	f.Add([]byte("vlan50-look 1 n\nconf link 0 - eA== -\nend 1 n\n"))
	f.Fuzz(func(t *testing.T, report []byte) {
		dir, err := parseLook(report, "n", "/etc/cni/net.d")
		if err != nil {
			return
		}
		if len(dir.Files)+len(dir.Backups) > mostFiles {
			t.Errorf("%d files", len(dir.Files)+len(dir.Backups))
		}
		finding := Find(dir)
		for _, conf := range finding.Multus {
			if finding.Problem == "" && !safeName.MatchString(conf.Name) {
				t.Errorf("%q would be handed to a shell", conf.Name)
			}
		}
		for _, b := range Backups(dir.Backups) {
			if Checksum(b.Content) != b.SHA256 {
				t.Errorf("backup %q is not proven", b.File)
			}
		}
	})
}

func FuzzParseAct(f *testing.F) {
	f.Add("vlan50-act 1 n\nremoved 00-multus.conf " + Checksum(nil) + " c\nstop changed x\nend n\n")
	f.Fuzz(func(t *testing.T, message string) {
		done, err := parseAct(message, "n")
		if err != nil {
			return
		}
		for _, name := range append(append(done.removed, done.absent...), done.moved...) {
			if !copyForm.MatchString(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}
