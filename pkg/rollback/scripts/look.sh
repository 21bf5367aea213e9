# Lists the CNI conf dir in $CONF_DIR and the backups in it, and changes nothing.
# Runs in any POSIX shell with coreutils or busybox. Names and contents are
# base64, so that no file name can pretend to be a line of this report.
set -u
export LC_ALL=C
longest=65536 # no conf is longer; what is longer is not read
most=100

encode() { base64 | tr -d '\n'; }

count=0
list() { # SECTION FOLDER
  for file in "$2"/* "$2"/.[!.]* "$2"/..?*; do
    [ -e "$file" ] || [ -L "$file" ] || continue
    count=$((count + 1))
    if [ "$count" -gt "$most" ]; then
      echo "fail too-many-files"
      exit 1
    fi
    kind=other size=0 sum=- text=- read=no
    if [ -L "$file" ]; then
      kind=link
      # A target in another folder would be looked for in this container.
      case "$(readlink "$file")" in
      */*) ;;
      *) [ -f "$file" ] && read=yes ;;
      esac
    elif [ -f "$file" ]; then
      kind=file read=yes
    elif [ -d "$file" ]; then
      kind=dir
    fi
    if [ "$read" = yes ]; then
      if ! size=$(wc -c <"$file"); then
        echo "fail unreadable"
        exit 1
      fi
      size=$((size))
      # What is no conf is nobody's business but its owner's.
      case $1:${file##*/} in
      backup:* | *.conf | *.conflist | *.json)
        if [ "$size" -le "$longest" ]; then
          sum=$(sha256sum <"$file" | cut -d' ' -f1)
          [ "$size" -eq 0 ] || text=$(encode <"$file")
        fi
        ;;
      esac
    fi
    name=$(printf %s "${file##*/}" | encode)
    echo "$1 $kind $size $sum $name $text"
  done
}

echo "vlan50-look 1 $NONCE"
if ! cd "$CONF_DIR"; then
  echo "fail no-folder"
  exit 1
fi
# A folder that may not be listed looks like an empty one.
ls -a . >/dev/null 2>&1 && { [ ! -d "./$BACKUP_DIR" ] || ls -a "./$BACKUP_DIR" >/dev/null 2>&1; } || {
  echo "fail unreadable"
  exit 1
}
# A Pod without capabilities writes as any user does, by owner and mode; this mount
# is read-only, and cannot be tried.
may=- owner=- mode=-
if owner=$(stat -c %u . 2>/dev/null) && group=$(stat -c %g .) && mode=$(stat -c %a .); then
  bits=$((0$mode))
  if [ "$owner" = "$(id -u)" ]; then
    bits=$((bits >> 6))
  elif [ "$group" = "$(id -g)" ]; then
    bits=$((bits >> 3))
  fi
  may=yes
  [ $((bits & 2)) -ne 0 ] || may=no
else
  owner=- mode=-
fi
echo "folder $may $owner $mode"
list conf .
[ -L "./$BACKUP_DIR" ] || [ ! -d "./$BACKUP_DIR" ] || list backup "./$BACKUP_DIR"
echo "end $count $NONCE"
