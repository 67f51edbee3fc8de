#!/bin/sh
# Give an engine two images: image.sh ENGINE IMAGE FOLDER
# IMAGE is Debian's smallest system with Python, IMAGE-small only BusyBox. They are made in FOLDER by debootstrap, as root.
set -e
engine=$1 image=$2 folder=$3
"$engine" info >/dev/null 2>&1 || { echo "\`$engine info\` fails"; exit 1; }
give() {
  tar -C "$1" --one-file-system -c . | "$engine" import - "$2" >"$folder/log" 2>&1 || { tail -1 "$folder/log"; exit 1; }
}
"$engine" image inspect "$image" "$image-small" >/dev/null 2>&1 && exit
if ! test -e "$folder/made"; then
  command -v debootstrap >/dev/null || { echo "debootstrap is not installed"; exit 1; }
  rm -rf "$folder" && mkdir -p "$folder/small/bin" "$folder/small/tmp"
  echo "making the images $image and $image-small, once (300 MB, about two minutes)"
  debootstrap --variant=minbase --include=python3,busybox-static,ca-certificates stable "$folder/root" \
    >"$folder/log" 2>&1 || { tail -3 "$folder/log"; exit 1; }
  cp "$folder/root/bin/busybox" "$folder/small/bin/"
  for name in sh cat env timeout wget grep sed; do ln -s busybox "$folder/small/bin/$name"; done
  touch "$folder/made"
fi
give "$folder/root" "$image"
give "$folder/small" "$image-small"
