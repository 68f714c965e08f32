#!/bin/sh
# Puts a Swift package together that builds the core from source: apps/ios/Mote with everything it needs, ready to be used by its path or
# to be pushed to a repository of its own.
#   PYTHON=python3 scripts/swift_package.sh OUT
# Needs flatc 2.0.8. The sources of the libraries are kept in build/ios/dependencies; MOTE_SOURCES as in build_dependencies.sh.
set -eu

out="$(mkdir -p "$1" && cd "$1" && pwd)"
cd "$(dirname "$0")/.."
folder=build/ios/dependencies
names="pcre2 utf8proc flatbuffers nlohmann_json"
mkdir -p build/ios
if [ ! -f $folder/complete ]; then
  # shellcheck disable=SC2086
  UNPACK=1 scripts/build_dependencies.sh $folder $names >build/ios/dependencies.log 2>&1 || {
    # Where no release can be had, Debian may have the same archives.
    tail -3 build/ios/dependencies.log >&2
    echo "Taking the same archives from Debian" >&2
    scripts/debian_sources.sh build/ios/sources
    MOTE_SOURCES="$PWD/build/ios/sources" UNPACK=1 scripts/build_dependencies.sh $folder $names >/dev/null
  }
  touch $folder/complete
fi
"${PYTHON:-python3}" scripts/make_swift_package.py "$out" --dependencies $folder
