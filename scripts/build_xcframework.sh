#!/bin/sh
# Builds CMote.xcframework, the core for Apple's systems by the preset `ios`, with kernels for every instruction set and optimised in
# debug builds too, and what a package needs to name it. Needs Xcode 16 or later, CMake, ninja and flatc 2.0.8:
#   scripts/build_xcframework.sh OUT [OPTION ...]
# OPTION: one of CMake's, such as -DMOTE_FOR=model.mote.
# OUT has then CMote.xcframework, CMote.xcframework.zip and its checksum in CMote.checksum:
#   scripts/make_swift_package.py PACKAGE --binary URL "$(cat OUT/CMote.checksum)"
set -eu

if [ "$(uname -s)" != Darwin ] || ! xcrun --find clang >/dev/null 2>&1; then
  echo "This machine has no Xcode: run on a Mac" >&2
  exit 1
fi
out="$(mkdir -p "$1" && cd "$1" && pwd)"
shift
options="$*"
cd "$(dirname "$0")/.."
work="$out/work"
mkdir -p "$work/headers"
cp runner/capi/mote.h "$work/headers/"
cp backends/coreai/runtime.h "$work/headers/mote_coreai.h"
printf 'module CMote {\n  header "mote.h"\n  header "mote_coreai.h"\n  export *\n}\n' >"$work/headers/module.modulemap"
# Names of libraries inside, such as PCRE2's, are not seen by apps that have their own.
echo '_mote_*' >"$work/exported"

# slice SDK SYSTEM VERSION PLATFORM ARCHITECTURE: $work/SDK-ARCHITECTURE/libmote.a
slice() {
  folder="$work/$1-$5"
  triple="$5-apple-$4"
  mkdir -p "$folder"
  flags="-target $triple -isysroot $(xcrun --sdk "$1" --show-sdk-path)"
  host="$(echo "$5" | sed s/arm64/aarch64/)-apple-darwin"
  CC="$(xcrun --find clang) $flags" HOST="$host" BUILD_CC=cc UTF8PROC_SMALLER=1 \
    scripts/build_dependencies.sh "$folder/prefix" pcre2 utf8proc flatbuffers nlohmann_json
  # shellcheck disable=SC2086
  PKG_CONFIG_LIBDIR="$folder/prefix/lib/pkgconfig" PATH="$folder/prefix/bin:$PATH" cmake --preset ios -B "$folder/build" \
    -DCMAKE_SYSTEM_NAME="$2" -DCMAKE_SYSTEM_PROCESSOR="$5" -DCMAKE_OSX_SYSROOT="$1" -DCMAKE_OSX_ARCHITECTURES="$5" \
    -DCMAKE_OSX_DEPLOYMENT_TARGET="$3" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_FIND_ROOT_PATH="$folder/prefix" -DMOTE_COREAI_SWIFT=OFF $options
  cmake --build "$folder/build" --parallel --target mote_capi mote_embedding mote_chat mote_xnnpack mote_kernels_archive
  # One object, so that no linker leaves kernels out that only register themselves.
  find "$folder/build" "$folder/prefix/lib" -name '*.a' >"$folder/archives"
  # shellcheck disable=SC2046
  xcrun --sdk "$1" clang++ -target "$triple" -nostdlib -r -Wl,-all_load -Wl,-exported_symbols_list,"$work/exported" \
    -o "$folder/mote.o" $(cat "$folder/archives")
  xcrun libtool -static -o "$folder/libmote.a" "$folder/mote.o"
}

# library SDK ARCHITECTURE ...: $work/SDK/libmote.a of the slices, an argument of xcodebuild
library() {
  mkdir -p "$work/$1"
  sdk="$1"
  shift
  slices=""
  for architecture in "$@"; do slices="$slices $work/$sdk-$architecture/libmote.a"; done
  # shellcheck disable=SC2086
  xcrun lipo -create $slices -output "$work/$sdk/libmote.a"
  arguments="${arguments:-} -library $work/$sdk/libmote.a -headers $work/headers"
}

slice iphoneos iOS 15.0 ios15.0 arm64
slice iphonesimulator iOS 15.0 ios15.0-simulator arm64
slice iphonesimulator iOS 15.0 ios15.0-simulator x86_64
slice macosx Darwin 12.0 macos12.0 arm64
slice macosx Darwin 12.0 macos12.0 x86_64
slice xros visionOS 1.0 xros1.0 arm64
slice xrsimulator visionOS 1.0 xros1.0-simulator arm64
library iphoneos arm64
library iphonesimulator arm64 x86_64
library macosx arm64 x86_64
library xros arm64
library xrsimulator arm64

rm -rf "$out/CMote.xcframework" "$out/CMote.xcframework.zip"
# shellcheck disable=SC2086
xcodebuild -create-xcframework $arguments -output "$out/CMote.xcframework"
(cd "$out" && ditto -c -k --keepParent CMote.xcframework CMote.xcframework.zip)
swift package compute-checksum "$out/CMote.xcframework.zip" >"$out/CMote.checksum"
echo "$out/CMote.xcframework.zip: $(cat "$out/CMote.checksum")"
