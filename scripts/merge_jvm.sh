#!/bin/sh
# Makes one jar of those that scripts/build_jvm.sh made of the same sources on several machines, with the native libraries of all:
#   scripts/merge_jvm.sh OUT.jar JAR ...
set -eu

out="$1" first="$2"
shift
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/classes" "$work/native/ai/mote"

# unpack JAR [PART]
unpack() {
  jar="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
  shift
  (cd "$work/classes" && jar --extract --file "$jar" "$@")
}
for jar in "$@"; do unpack "$jar" ai/mote/native; done
unpack "$first"
mv "$work/classes/ai/mote/native" "$work/native/ai/mote/"
jar --create --file "$work/merged.jar" -C "$work/classes" .
jar --update --no-compress --file "$work/merged.jar" -C "$work/native" .
mv "$work/merged.jar" "$out"
ls "$work/native/ai/mote/native"
