#!/bin/sh
# Puts a Swift package together that builds the core from source: apps/ios/Mote with everything it needs, ready to be used by its path or
# to be pushed to a repository of its own.
#   PYTHON=python3 scripts/swift_package.sh OUT
# Needs flatc 2.0.8. The sources of the libraries are kept in build/ios/dependencies; MOTE_SOURCES as in build_dependencies.sh.
set -eu

out="$(mkdir -p "$1" && cd "$1" && pwd)"
cd "$(dirname "$0")/.."
folder=build/ios/dependencies
if [ ! -f $folder/complete ]; then
  UNPACK=1 scripts/build_dependencies.sh $folder pcre2 utf8proc flatbuffers nlohmann_json >/dev/null
  touch $folder/complete
fi
"${PYTHON:-python3}" scripts/make_swift_package.py "$out" --dependencies $folder
