# Takes the confs in $ITEMS (NAME:SHA256 ...) away from $CONF_DIR: copied aside
# and proven first, each only while it is what was judged.

# keep leaves a proven copy of $1 (checksum $2) in the backups, named in $copy.
# A copy with the same content that is there already is taken, under the present
# time: the newest one is what was removed last.
keep() {
  folder
  short=$(printf %.12s "$2")
  copy=$1.$STAMP.$short
  to=./$BACKUP_DIR/$copy
  for old in "./$BACKUP_DIR/$1".*."$short"; do
    if [ "$old" != "$to" ] && [ -f "$old" ] && [ "$(sum "$old")" = "$2" ]; then
      printf '%s  %s\n' "$2" "$copy" >"$to.sha256" && mv -f "$old" "$to" || stop backup "$1"
      rm -f "$old.sha256"
    fi
  done
  if [ ! -f "$to" ]; then
    cp -p "./$1" "./$BACKUP_DIR/.new" || stop backup "$1"
    flush "./$BACKUP_DIR/.new"
    mv -f "./$BACKUP_DIR/.new" "$to" || stop backup "$1"
  fi
  [ "$(sum "$to")" = "$2" ] || stop backup "$1"
  printf '%s  %s\n' "$2" "$copy" >"$to.sha256" || stop backup "$1"
  flush "$to.sha256"
}

# first is the conf that a runtime would take without those in $ITEMS, in its
# order: that of the bytes of their names.
first() {
  best=
  for file in ./* ./.*; do
    name=${file#./}
    case $name in
    *.conf | *.conflist | *.json) ;;
    *) continue ;;
    esac
    case " $ITEMS " in
    *" $name:"*) continue ;;
    esac
    if [ -d "$file" ] && [ ! -L "$file" ] || [ ! -e "$file" ] && [ ! -L "$file" ]; then
      continue
    fi
    if [ -z "$best" ] || expr "x$name" \< "x$best" >/dev/null; then
      best=$name
    fi
  done
}

# The conf that takes over must still be the one that was judged, and first.
first
[ "$best" = "$PRIMARY" ] || stop primary
[ -f "./$PRIMARY" ] && [ "$(sum "./$PRIMARY")" = "$PRIMARY_SHA256" ] || stop primary

for item in $ITEMS; do
  name=${item%%:*} want=${item#*:}
  if [ ! -e "./$name" ]; then
    say "absent $name"
    continue
  fi
  [ -f "./$name" ] && [ "$(sum "./$name")" = "$want" ] || stop changed "$name"
  keep "$name" "$want"
  # A daemon may write it again at once: that is seen by the next look, and is no
  # failure of this one.
  rm -f "./$name" || stop remove "$name"
  say "removed $name $want $copy"
done

if [ "$CREDENTIALS" = yes ] && [ -d ./multus.d ] && [ ! -L ./multus.d ]; then
  folder
  mv ./multus.d "./$BACKUP_DIR/multus.d.$STAMP" || stop remove multus.d
  say "moved multus.d multus.d.$STAMP"
fi

# A plugin is removed only where it is, byte for byte, the image's own copy.
for name in $BINARIES; do
  file=$BIN_DIR/$name own=$BINARY_COPIES/$name
  if [ ! -e "$file" ] && [ ! -L "$file" ]; then
    say "binary-absent $name"
  elif [ ! -f "$own" ]; then
    say "binary-unproven $name"
  elif [ -L "$file" ] || [ ! -f "$file" ] || [ "$(sum "$file")" != "$(sum "$own")" ]; then
    say "binary-differs $name"
  elif rm -f "$file"; then
    say "binary-removed $name"
  else
    stop remove-binary "$name"
  fi
done
finish 0
