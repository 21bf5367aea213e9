package rollback

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Bounds of what a node may report. They are those of the scripts, and hold
// whoever wrote the report.
const (
	longestConf   = 64 << 10
	longestLine   = 2 * longestConf
	longestReport = 8 << 20
	mostFiles     = 100
)

var folderForm = regexp.MustCompile(`^folder (yes|no|-) (-|[0-9]{1,10}) (-|[0-7]{1,5})$`)

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseLook reads the report of the look script: strictly, since whoever can
// write to the node's log may have written it.
func parseLook(report []byte, nonce, dir string) (ConfDir, error) {
	found := ConfDir{Path: dir}
	lines := bufio.NewScanner(bytes.NewReader(report))
	lines.Buffer(nil, longestLine)
	if !lines.Scan() || lines.Text() != "vlan50-look 1 "+nonce {
		return found, fmt.Errorf("its report does not begin as it must: %q", cut(lines.Text()))
	}
	for count := 0; lines.Scan(); count++ {
		words := strings.Split(lines.Text(), " ")
		switch {
		case lines.Text() == fmt.Sprintf("end %d %s", count, nonce):
			if lines.Scan() {
				return found, fmt.Errorf("its report goes on after its end: %q", cut(lines.Text()))
			}
			return found, lines.Err()
		case words[0] == "fail" && len(words) == 2:
			return found, lookFailure(words[1], dir)
		case count == 0 && folderForm.MatchString(lines.Text()):
			if words[1] == "no" {
				found.Locked = fmt.Sprintf("the folder %s belongs to user %s (mode %s), where a node Pod without privileges may not write: use --node-access=manual", dir, words[2], words[3])
			}
			count-- // it is no file
			continue
		case count == mostFiles:
			return found, lookFailure("too-many-files", dir)
		}
		if err := found.add(words); err != nil {
			return found, fmt.Errorf("its report has a line that cannot be read (%w): %q", err, cut(lines.Text()))
		}
	}
	if err := lines.Err(); err != nil {
		return found, fmt.Errorf("its report cannot be read: %w", err)
	}
	return found, errors.New("its report has no end: it was cut short")
}

func lookFailure(word, dir string) error {
	switch word {
	case "no-folder":
		return fmt.Errorf("the folder %s cannot be entered", dir)
	case "unreadable":
		return fmt.Errorf("a file in %s cannot be read (does the node enforce SELinux?)", dir)
	case "too-many-files":
		return fmt.Errorf("%s holds more than %d files: that is no CNI conf dir", dir, mostFiles)
	}
	return fmt.Errorf("looking into %s failed: %q", dir, cut(word))
}

// errChanged says that a file was written while it was looked at: another look
// sees it whole.
var errChanged = errors.New("it changed while it was read")

// add reads one line: SECTION KIND SIZE SHA256 NAME CONTENT.
func (d *ConfDir) add(words []string) error {
	if len(words) != 6 {
		return fmt.Errorf("%d fields", len(words))
	}
	file, err := parseFile(words[1], words[2], words[3], words[4], words[5])
	if err != nil {
		return err
	}
	switch words[0] {
	case "conf":
		d.Files = append(d.Files, file)
	case "backup":
		d.Backups = append(d.Backups, file)
	default:
		return errors.New("no such section")
	}
	return nil
}

func parseFile(kind, size, sum, name, content string) (File, error) {
	file := File{Kind: FileKind(kind)}
	switch file.Kind {
	case RegularFile, Directory, Symlink, OtherFile:
	default:
		return file, errors.New("no such kind")
	}
	raw, err := base64.StdEncoding.DecodeString(name)
	if err != nil || len(raw) == 0 || bytes.ContainsAny(raw, "/\x00") {
		return file, errors.New("no file name")
	}
	file.Name = string(raw)
	if file.Size, err = strconv.ParseInt(size, 10, 64); err != nil || file.Size < 0 {
		return file, errors.New("no size")
	}
	if sum == "-" {
		return file, nil
	}
	file.SHA256 = sum
	return file, file.read(content)
}

// read decodes the content and holds it to size and checksum.
func (f *File) read(content string) error {
	if content == "-" {
		content = ""
	}
	var err error
	if f.Content, err = base64.StdEncoding.DecodeString(content); err != nil {
		return errors.New("no content")
	}
	if f.Content == nil {
		f.Content = []byte{}
	}
	if !sumForm.MatchString(f.SHA256) || Checksum(f.Content) != f.SHA256 || int64(len(f.Content)) != f.Size {
		return errChanged
	}
	return nil
}

// Checksum is the SHA-256 in the form of sha256sum.
func Checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// acted is what a script that changes a node has done.
type acted struct {
	// removed, absent and restored name confs; copies name the backups of those
	// that were removed.
	removed, absent, restored, present []string
	copies                             map[string]string
	moved                              []string
	binaries                           map[string]string // name: removed, absent, differs, unproven
	// stopped is why the script gave up; what stands above was done all the same.
	// stale: the conf dir is no longer as it was judged.
	stopped string
	stale   bool
}

var copyForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// parseAct reads a termination message, as strictly.
func parseAct(message, nonce string) (acted, error) {
	done := acted{copies: map[string]string{}, binaries: map[string]string{}}
	lines := strings.Split(strings.TrimSuffix(message, "\n"), "\n")
	if lines[0] != "vlan50-act 1 "+nonce {
		return done, fmt.Errorf("its report does not begin as it must: %q", cut(lines[0]))
	}
	for i, line := range lines[1:] {
		words := strings.Split(line, " ")
		if line == "end "+nonce && i == len(lines)-2 {
			return done, nil
		}
		if !done.note(words) {
			return done, fmt.Errorf("its report has a line that cannot be read: %q", cut(line))
		}
	}
	return done, errors.New("its report has no end: it was cut short")
}

// note reads one line of the report.
func (a *acted) note(words []string) bool {
	for _, word := range words[1:] {
		if !copyForm.MatchString(word) {
			return false
		}
	}
	switch {
	case words[0] == "stop" && (len(words) == 2 || len(words) == 3):
		a.stopped = stopReason(words[1], words[2:])
		a.stale = words[1] == "primary" || words[1] == "changed"
	case words[0] == "removed" && len(words) == 4 && sumForm.MatchString(words[2]):
		a.removed = append(a.removed, words[1])
		a.copies[words[1]] = words[3]
	case words[0] == "restored" && len(words) == 3:
		a.restored = append(a.restored, words[1])
	case len(words) != 2 && words[0] != "moved":
		return false
	case words[0] == "absent":
		a.absent = append(a.absent, words[1])
	case words[0] == "present":
		a.present = append(a.present, words[1])
	case words[0] == "moved" && len(words) == 3:
		a.moved = append(a.moved, words[1])
	case strings.HasPrefix(words[0], "binary-"):
		a.binaries[words[1]] = strings.TrimPrefix(words[0], "binary-")
	default:
		return false
	}
	return true
}

// stopReason says in words why a script gave up.
func stopReason(word string, rest []string) string {
	name := strings.Join(rest, " ")
	switch word {
	case "no-folder":
		return "the conf dir cannot be entered"
	case "primary":
		return "the conf that would take over has changed since it was judged"
	case "changed":
		return name + " has changed since it was judged"
	case "backup-folder":
		return "the folder " + BackupDir + " cannot be made in the conf dir"
	case "backup":
		return "no proven copy of " + name + " could be made (is the disk full?)"
	case "remove", "remove-binary":
		return name + " cannot be removed"
	case "write":
		return name + " cannot be written"
	case "conflict":
		return "another " + name + " is there already: it is left alone"
	}
	return word + " " + name
}

// cut keeps a hostile line short.
func cut(text string) string {
	if len(text) > 120 {
		return text[:120] + "..."
	}
	return text
}
