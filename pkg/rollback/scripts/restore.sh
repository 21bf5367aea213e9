# Puts the conf $NAME back byte for byte ($SHA256), from the backup $COPY on the
# node or, where that is not as it was, from $CONTENT (base64).

if [ -e "./$NAME" ] || [ -L "./$NAME" ]; then
  [ -f "./$NAME" ] && [ "$(sum "./$NAME")" = "$SHA256" ] || stop conflict "$NAME"
  say "present $NAME"
  finish 0
fi
new=./.vlan50-new
rm -f "$new"
if [ -n "$COPY" ] && [ -f "./$BACKUP_DIR/$COPY" ] && [ "$(sum "./$BACKUP_DIR/$COPY")" = "$SHA256" ]; then
  cp -p "./$BACKUP_DIR/$COPY" "$new" || stop write "$NAME"
elif [ -n "$CONTENT" ]; then
  printf %s "$CONTENT" | base64 -d >"$new" || stop write "$NAME"
else
  stop backup "$NAME"
fi
if [ "$(sum "$new")" != "$SHA256" ]; then
  rm -f "$new"
  stop write "$NAME"
fi
flush "$new"
mv -f "$new" "./$NAME" || stop write "$NAME"
say "restored $NAME $SHA256"
finish 0
