#!/bin/sh
# Prints what others can call of the jar of build_jvm.sh: apps/android/mote/mote.api, which tests compare.
set -eu

cd "$(dirname "$0")/.."
out="${OUT:-build/jvm}"
jar --list --file $out/mote-jvm.jar | grep '\.class$' | grep -v 'CallsKt\|WhenMappings' | LC_ALL=C sort >$out/classes.txt
# shellcheck disable=SC2046
javap -protected -cp $out/mote-jvm.jar $(sed 's/\.class$//; s|/|.|g' $out/classes.txt) |
  awk '/^Compiled from|access\$/ { next } /^[a-z]/ { is_public = /^public/ } is_public'
