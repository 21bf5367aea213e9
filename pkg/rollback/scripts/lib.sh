# Shared by the scripts that change a node. $RESULT is the Pod's termination
# message.
set -u
export LC_ALL=C
umask 077

say() { printf '%s\n' "$*" >>"$RESULT"; }
finish() {
  say "end $NONCE"
  exit "$1"
}
stop() {
  say "stop $*"
  finish 1
}
sum() { sha256sum <"$1" 2>/dev/null | cut -d' ' -f1; }
flush() { sync "$1" 2>/dev/null || sync; }

# folder makes sure that backups land in the conf dir and nowhere else.
folder() {
  [ ! -L "./$BACKUP_DIR" ] && mkdir -p "./$BACKUP_DIR" && [ -d "./$BACKUP_DIR" ] || stop backup-folder
}

say "vlan50-act 1 $NONCE"
cd "$CONF_DIR" || stop no-folder
