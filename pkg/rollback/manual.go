package rollback

import (
	"fmt"
	"strings"
)

// removeLines are the shell lines that an operator runs on a node, as root, in
// the place of a node Pod. Each line goes on only if the one before it held.
func (r *Rollback) removeLines(n NodeState) string {
	at := stamp(r.Now())
	return inDir(n, fmt.Sprintf(`
  ls -l
  # There must be another conf after Multus' own, and it must be valid JSON;
  # without one, stop here: the node could start no Pod.
  ls | grep -E '\.(conf|conflist|json)$'
  for conf in 00-multus.conf 00-multus.conflist; do
    [ -e "$conf" ] || continue
    # Only what says that it is Multus', or is empty.
    [ ! -s "$conf" ] || grep -Eq '"type" *: *"multus(-shim)?"' "$conf" || continue
    mkdir -p -m 700 %[1]s &&
      cp -p "$conf" "%[1]s/$conf.%[2]s" &&
      sha256sum "$conf" "%[1]s/$conf.%[2]s" &&
      cmp "$conf" "%[1]s/$conf.%[2]s" &&
      rm "$conf"
  done
  ls -l . %[1]s`, BackupDir, at))
}

// restoreLines put the newest kept conf back.
func restoreLines(n NodeState) string {
	return inDir(n, fmt.Sprintf(`
  ls -l %[1]s
  # The newest copy, under its own name; nothing is overwritten.
  newest=$(ls -t %[1]s/00-multus.conf*.* | grep -v '\.sha256$' | head -n 1) &&
    name=$(basename "$newest" | sed -E 's/^(00-multus\.conf(list)?)\..*/\1/') &&
    [ ! -e "$name" ] && [ -s "$newest" ] && cp -p "$newest" ".$name.new" && mv ".$name.new" "$name"
  ls -l`, BackupDir))
}

// inDir runs lines in the node's conf dir, in a shell of their own so that a
// wrong folder ends them.
func inDir(n NodeState, lines string) string {
	dirs := n.KnownDirs
	if n.ConfDir != "" {
		dirs = []string{n.ConfDir}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# On node %s, as root", n.Name)
	if len(dirs) > 1 {
		fmt.Fprintf(&b, ", for the one of these folders that the container runtime reads:\n#   %s", strings.Join(dirs, "\n#   "))
	}
	fmt.Fprintf(&b, "\n(cd %s || exit 1%s\n)\n", quote(dirs[0]), lines)
	return b.String()
}

// quote makes one word of a path for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
