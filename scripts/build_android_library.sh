#!/bin/sh
# Builds libmote.so of the Java and Kotlin API for an ABI of Android, and prints its path:
#   ANDROID_NDK=FOLDER scripts/build_android_library.sh arm64-v8a|x86_64
# Without ANDROID_NDK by gcc for Linux, as near to it as that comes: to be checked, not to be shipped. arm64-v8a then needs what
# scripts/fetch_android_tools.sh fetches to build/android-tools.
set -eu

cd "$(dirname "$0")/.."
abi="$1"
cmake="${CMAKE:-cmake}"
case "$abi" in
  arm64-v8a) machine=aarch64 preset=android-arm64 ;;
  x86_64) machine=x86_64 preset=android-x86_64 ;;
  *) echo "$abi: must be arm64-v8a or x86_64" >&2; exit 2 ;;
esac

# with_static PREFIX: options that name libraries by their files
with_static() {
  printf -- '-Dpkgcfg_lib_PCRE2_pcre2-8=%s/libpcre2-8.a -Dpkgcfg_lib_UTF8PROC_utf8proc=%s/libutf8proc.a' "$1" "$1"
}

if [ -n "${ANDROID_NDK:-}" ]; then
  prefix="$PWD/build/$preset-dependencies"
  tools="$(echo "$ANDROID_NDK"/toolchains/llvm/prebuilt/*/bin)"
  if [ ! -f "$prefix/complete" ]; then
    HOST=$machine-linux-android CC="$tools/$machine-linux-android26-clang" AR="$tools/llvm-ar" RANLIB="$tools/llvm-ranlib" \
      scripts/build_dependencies.sh "$prefix" pcre2 utf8proc flatbuffers nlohmann_json >&2
    touch "$prefix/complete"
  fi
  export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" PATH="$prefix/bin:$PATH"
  options="$(with_static "$prefix/lib")"
else
  preset=$preset-gnu
  libraries=/usr/lib/x86_64-linux-gnu
  if [ $machine = aarch64 ]; then
    export PKG_CONFIG_SYSROOT_DIR="$PWD/build/android-tools/arm64"
    libraries="$PKG_CONFIG_SYSROOT_DIR/usr/lib/aarch64-linux-gnu"
    export PKG_CONFIG_LIBDIR="$libraries/pkgconfig"
  fi
  options="$(with_static $libraries)"
fi
# shellcheck disable=SC2086
"$cmake" --preset $preset $options >&2
"$cmake" --build build/$preset --parallel "${JOBS:-2}" --target mote_java >&2
echo build/$preset/apps/android/mote/src/main/cpp/libmote.so
