#!/bin/sh
# Prints what others can call of the jar of build_jvm.sh: apps/android/mote/mote.api, which tests compare.
set -eu

cd "$(dirname "$0")/.."
jar --list --file build/jvm/mote-jvm.jar | grep '\.class$' | grep -v 'CallsKt\|WhenMappings' | LC_ALL=C sort >build/jvm/classes.txt
# shellcheck disable=SC2046
javap -protected -cp build/jvm/mote-jvm.jar $(sed 's/\.class$//; s|/|.|g' build/jvm/classes.txt) |
  awk '/^Compiled from|access\$/ { next } /^[a-z]/ { is_public = /^public/ } is_public'
