#!/bin/sh
# Builds libmote.so of the Java and Kotlin API for an ABI of Android, and prints its path:
#   ANDROID_NDK=FOLDER scripts/build_android_library.sh arm64-v8a|x86_64 [OPTION ...]
# OPTION: one of CMake's, such as -DMOTE_FOR=model.mote. Without ANDROID_NDK by clang for Linux, as near to Android as that comes: to be
# checked, not to be shipped. BUILD=FOLDER: where it is built; PRESET: by another one than the ABI's. By `size` the libraries that it
# needs have objects as Mote's own sources have; by others they are compiled as one with it, which leaves out what it never asks them.
set -eu

cd "$(dirname "$0")/.."
abi="$1"
shift
case "$abi" in
  arm64-v8a) machine=aarch64 preset=android-arm64 ;;
  x86_64) machine=x86_64 preset=android-x86_64 ;;
  *) echo "$abi: must be arm64-v8a or x86_64" >&2; exit 2 ;;
esac

names="pcre2 utf8proc"
if [ -n "${ANDROID_NDK:-}" ]; then
  tools="$(echo "$ANDROID_NDK"/toolchains/llvm/prebuilt/*/bin)"
  export HOST=$machine-linux-android CC="$tools/$machine-linux-android26-clang" AR="$tools/llvm-ar" RANLIB="$tools/llvm-ranlib"
  names="$names flatbuffers nlohmann_json"
else
  preset=$preset-gnu
  clang="$(command -v clang-19 || command -v clang)" || { echo "clang: is missing: install clang-19, lld-19 and llvm-19" >&2; exit 1; }
  tools="$(dirname "$(readlink -f "$clang")")"
  export HOST=$machine-linux-gnu CC="$clang --target=$machine-linux-gnu" AR="$tools/llvm-ar" RANLIB="$tools/llvm-ranlib"
fi
preset="${PRESET:-$preset}"
prefix="$PWD/build/$preset-dependencies"
flags="-Oz -fomit-frame-pointer -ffunction-sections -fdata-sections"
if [ "$preset" != size ]; then flags="$flags -flto"; fi
if [ -z "$(find "$prefix/complete" -newer scripts/build_dependencies.sh 2>/dev/null)" ]; then
  # shellcheck disable=SC2086
  PCRE2_JIT=disable UTF8PROC_SMALLER=1 CFLAGS="$flags" LDFLAGS=-fuse-ld=lld scripts/build_dependencies.sh "$prefix" $names >&2
  touch "$prefix/complete"
fi
unset CC AR RANLIB
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" PATH="$prefix/bin:$PATH"
build="${BUILD:-build/$preset}"
# Vulkan's headers and shaders are the same for every machine. Where this one has them not, a library with Vulkan is refused.
if command -v glslc >/dev/null; then
  "${CMAKE:-cmake}" -S backends/vulkan/shaders -B build/vulkan -G Ninja >/dev/null
  "${CMAKE:-cmake}" --build build/vulkan >/dev/null
fi
"${CMAKE:-cmake}" --preset "$preset" -B "$build" "-Dpkgcfg_lib_PCRE2_pcre2-8=$prefix/lib/libpcre2-8.a" \
  "-Dpkgcfg_lib_UTF8PROC_utf8proc=$prefix/lib/libutf8proc.a" "$@" >&2
"${CMAKE:-cmake}" --build "$build" --parallel "${JOBS:-2}" --target mote_java >&2
echo "$build/apps/android/mote/src/main/cpp/libmote.so"
