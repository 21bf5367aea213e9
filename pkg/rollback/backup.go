package rollback

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// Backup is one kept copy of a conf.
type Backup struct {
	// Conf is the name of the file that it was taken from.
	Conf   string    `json:"conf"`
	SHA256 string    `json:"sha256"`
	Time   time.Time `json:"time"`
	// File is its name in the node's BackupDir; empty where only this machine
	// has it.
	File string `json:"file,omitempty"`
	// Dir is the folder that it was taken from; empty in copies of early versions,
	// and on the node, where the copy lies in it.
	Dir string `json:"dir,omitempty"`
	// Size is that of the conf.
	Size int64 `json:"size"`
	// Content is base64 in a file.
	Content []byte `json:"content,omitempty"`
}

func (b Backup) content() string { return base64.StdEncoding.EncodeToString(b.Content) }

// Backups are the proven copies among the files of a BackupDir, the newest
// first: those whose name and checksum file agree with their content.
func Backups(files []File) []Backup {
	var backups []Backup
	for _, file := range files {
		b, ok := parseBackup(file)
		if ok && vouched(files, file) {
			backups = append(backups, b)
		}
	}
	Newest(backups)
	return backups
}

// Newest orders copies, the newest first.
func Newest(backups []Backup) {
	slices.SortFunc(backups, func(a, b Backup) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Conf, b.Conf), strings.Compare(a.File, b.File))
	})
}

// newerThan is the time of a copy that is made now. The newest copy is what was
// removed last, also where somebody's clock was ahead when an older one was made.
func newerThan(now time.Time, files []File) time.Time {
	for _, b := range Backups(files) {
		if !b.Time.Before(now.Truncate(time.Second)) {
			now = b.Time.Add(time.Second)
		}
	}
	return now
}

// parseBackup reads CONF.TIME.SHORTSUM.
func parseBackup(file File) (Backup, bool) {
	rest, short, ok := cutLast(file.Name, ".")
	if !ok || file.Kind != RegularFile || len(short) != 12 || !strings.HasPrefix(file.SHA256, short) {
		return Backup{}, false
	}
	conf, at, ok := cutLast(rest, ".")
	if !ok || !safeName.MatchString(conf) || !isConfName(conf) {
		return Backup{}, false
	}
	taken, err := time.Parse("20060102T150405Z", at)
	if err != nil {
		return Backup{}, false
	}
	return Backup{Conf: conf, SHA256: file.SHA256, Time: taken, File: file.Name, Size: file.Size, Content: file.Content}, true
}

// vouched reports whether the checksum file beside a copy names its content.
func vouched(files []File, of File) bool {
	want := of.SHA256 + "  " + of.Name
	return slices.ContainsFunc(files, func(f File) bool {
		return f.Name == of.Name+".sha256" && strings.TrimSpace(string(f.Content)) == want
	})
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
