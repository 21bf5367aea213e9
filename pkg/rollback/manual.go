package rollback

import (
	"fmt"
	"strings"
)

// removeLines are the shell lines that an operator runs on a node, as root, in
// the place of a node Pod. They hold to its rules: nothing is removed where no
// other conf takes over, and a copy is what --undo and status know. A shell alone
// cannot read JSON: where the node has no python3, the operator must have looked.
func (r *Rollback) removeLines(n NodeState) string {
	return inDir(n, "00-multus.conf*", fmt.Sprintf(`
  export LC_ALL=C
  umask 077
  ls -l
  # The runtime takes the first conf by name. After Multus' own there must be
  # another one that is usable, or the node could start no Pod.
  next=$(ls -Ap | grep -E '\.(conf|conflist|json)$' | grep -vE '^00-multus\.conf(list)?$' | head -n 1)
  if [ -z "$next" ] || ! grep -q '"type"' "$next" || grep -Eq '"type" *: *"multus(-shim)?"' "$next"; then
    echo "no other usable CNI conf takes over: nothing was removed" >&2
    exit 1
  fi
  if command -v python3 >/dev/null; then
    python3 -c %[3]s "$next" || {
      echo "$next would take over, and is not usable: nothing was removed" >&2
      exit 1
    }
  elif [ "${USABLE:-}" != "$next" ]; then
    cat "$next" >&2
    echo "$next would take over, and without python3 only you can tell whether it is whole: nothing was removed. If it is, set USABLE='$next' and run these lines again" >&2
    exit 1
  fi
  for conf in 00-multus.conf 00-multus.conflist; do
    [ -e "$conf" ] || continue
    # Only what says that it is Multus', or is empty.
    [ ! -s "$conf" ] || grep -Eq '"type" *: *"multus(-shim)?"' "$conf" || continue
    sum=$(sha256sum <"$conf" | cut -c 1-64)
    copy=$conf.%[2]s.$(echo "$sum" | cut -c 1-12)
    mkdir -p %[1]s &&
      cp -p "$conf" "%[1]s/$copy" &&
      cmp "$conf" "%[1]s/$copy" &&
      echo "$sum  $copy" >"%[1]s/$copy.sha256" &&
      rm "$conf"
  done
  ls -l . %[1]s`, BackupDir, stamp(newerThan(r.Now(), n.Dir.Backups)), quote(usableConf)))
}

// usableConf holds a conf to what libcni asks of it.
const usableConf = `
import json, sys
conf = json.load(open(sys.argv[1]))
text = lambda value: isinstance(value, str) and value != ""
plugin = lambda value: isinstance(value, dict) and text(value.get("type"))
if sys.argv[1].endswith(".conflist"):
    usable = isinstance(conf, dict) and text(conf.get("name")) and bool(conf.get("plugins")) and isinstance(conf["plugins"], list) and all(map(plugin, conf["plugins"]))
else:
    usable = plugin(conf)
sys.exit(0 if usable and isinstance(conf.get("cniVersion", ""), str) else 1)
`

// restoreLines put the newest kept conf back.
func restoreLines(n NodeState) string {
	return inDir(n, BackupDir, fmt.Sprintf(`
  export LC_ALL=C
  ls -l %[1]s
  # The newest proven copy, under its own name; nothing is overwritten.
  newest=$(ls %[1]s | grep -E '^00-multus\.conf(list)?\.[0-9]{8}T[0-9]{6}Z\.[0-9a-f]{12}$' | sort -t . -k 3,3 | tail -n 1)
  [ -n "$newest" ] && [ -s "%[1]s/$newest" ] && (cd %[1]s && sha256sum -c "$newest.sha256") || exit 1
  name=$(echo "$newest" | sed -E 's/\.[0-9]{8}T.*//')
  [ ! -e "$name" ] && cp -p "%[1]s/$newest" ".$name.new" && mv ".$name.new" "$name"
  ls -l`, BackupDir))
}

// inDir runs lines in the node's conf dir, in a shell of their own so that a
// wrong folder ends them. Where the folder is not known it is the first that has
// what the lines are about.
func inDir(n NodeState, has, lines string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# On node %s, as root", n.Name)
	if n.ConfDir != "" {
		fmt.Fprintf(&b, "\n(cd %s || exit 1%s\n)\n", quote(n.ConfDir), lines)
		return b.String()
	}
	quoted := make([]string, len(n.KnownDirs))
	for i, dir := range n.KnownDirs {
		quoted[i] = quote(dir)
	}
	fmt.Fprintf(&b, `, in the first of these folders that has %[1]s.
# Where the container runtime reads another one, put it in their place.
(for dir in %[2]s; do
    ls -d "$dir"/%[1]s >/dev/null 2>&1 && break
  done
  ls -d "$dir"/%[1]s && cd "$dir" || exit 1%[3]s
)
`, has, strings.Join(quoted, " "), lines)
	return b.String()
}

// quote makes one word of a path for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
