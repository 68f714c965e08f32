#!/bin/sh
# Builds the library for Java and Kotlin on this machine: build/jvm/mote-jvm.jar, with the native library for it inside.
#   CMAKE=cmake JOBS=2 scripts/build_jvm.sh
# OUT=FOLDER: the jar goes there; BUILD=FOLDER: with the native library of a build that is there.
set -eu

cd "$(dirname "$0")/.."
out="${OUT:-build/jvm}"
build="${BUILD:-build/jvm}"
classes=$out/classes

if [ "$build" != build/jvm ]; then
  "${CMAKE:-cmake}" "$build" -DMOTE_BUILD_JAVA=ON >/dev/null
else
  # Static libraries where there are any, so that the one in the jar needs none.
  static=""
  for name in libpcre2-8:PCRE2_pcre2-8 libutf8proc:UTF8PROC_utf8proc; do
    archive="$(pkg-config --variable=libdir "${name%%:*}")/${name%%:*}.a"
    if [ -f "$archive" ]; then static="$static -Dpkgcfg_lib_${name##*:}=$archive"; fi
  done
  # shellcheck disable=SC2086
  "${CMAKE:-cmake}" --preset jvm $static >/dev/null
fi
"${CMAKE:-cmake}" --build "$build" --parallel "${JOBS:-2}" --target mote_java

scripts/compile_jvm.sh "$classes"

# The library is stored as it is: to inflate it takes longer than everything else before the first token.
system="$(uname -s | sed 's/Linux/linux/; s/Darwin/macos/; s/.*_NT-.*/windows/')"
machine="$(uname -m | sed 's/arm64/aarch64/')"
native="$out/native/ai/mote/native/$system-$machine"
rm -rf $out/native
mkdir -p "$native"
find "$build/apps/android/mote/src/main/cpp" -maxdepth 1 \( -name libmote.so -o -name libmote.dylib -o -name mote.dll \) \
  -exec cp {} "$native/" \;
jar --create --file $out/mote-jvm.jar -C "$classes" .
jar --update --no-compress --file $out/mote-jvm.jar -C $out/native .
