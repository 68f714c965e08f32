#!/bin/sh
# Assembles the Swift package with all that it is built from, builds it and tests it:
#   scripts/test_ios.sh MODEL.mote [SWIFT_TEST_ARGUMENT ...]
# ROOT=FOLDER: by the Swift of a Debian there (scripts/fetch_swift.sh), as root; without it, by this machine's.
# OUT (build/ios): where the package is built and what it needs is kept. MOTE_SEQUENCES=10000: as many steps of random lifecycles;
# MOTE_TOKENS=100000: as many tokens while memory is watched. BENCH=1: measures instead what Swift adds to a token.
set -eu

model="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
shift
cd "$(dirname "$0")/.."
out="${OUT:-build/ios}"
mkdir -p "$out"

scripts/swift_package.sh "$out/package"
cp "$model" "$out/demo.mote"

# inside COMMAND: where Swift is, in the package's folder
if [ -n "${ROOT:-}" ]; then
  root="$(cd "$ROOT" && pwd)"
  inside() {
    mkdir -p "$root/mote"
    unshare -m sh -c 'mount --bind "$1" "$2/mote" && mount -t proc proc "$2/proc" && mount --bind /dev "$2/dev" && exec chroot "$2" \
      /usr/bin/env -i PATH=/usr/bin:/bin:/usr/libexec/swift/bin HOME=/root LANG=C.UTF-8 $3 sh -ec "cd /mote/package && $4"' \
      sh "$PWD/$out" "$root" "$settings" "$1"
  }
  here=/mote
else
  inside() { (cd "$out/package" && env $settings sh -ec "$1"); }
  here="$PWD/$out"
fi
settings="MOTE_DEMO=$here/demo.mote MOTE_TEST_SHAPES=1 MOTE_SEQUENCES=${MOTE_SEQUENCES:-200} MOTE_TOKENS=${MOTE_TOKENS:-4000}"
build="swift build -c release --build-tests ${JOBS:+-j $JOBS}"

log="$out/build.log"
inside "$build" >"$log" 2>&1 || { grep -E 'error:' "$log" >&2 || tail -20 "$log" >&2; exit 1; }
if grep -E "^/mote/package/(Sources/Mote|Tests).*warning:" "$log" >&2; then exit 1; fi
if [ -n "${BENCH:-}" ]; then
  inside ".build/release/mote-bench $here/demo.mote"
  exit
fi
inside "rm -rf ../symbols && mkdir ../symbols && for module in Mote MoteFoundationModels; do
  swift symbolgraph-extract -module-name \$module -I .build/release/Modules -I Sources/CMote/include -I .build/release/CMote.build \
    -target \$(swiftc -print-target-info | sed -n 's/.*\"triple\": \"\\(.*\\)\".*/\\1/p' | head -1) -minimum-access-level public -output-dir ../symbols
done" >>"$log" 2>&1 || { tail -5 "$log" >&2; exit 1; }
"${PYTHON:-python3}" scripts/swift_api.py "$out/symbols" Mote MoteFoundationModels >"$out/mote.api"
diff -u apps/ios/Mote/mote.api "$out/mote.api" || {
  echo "The API has changed. If that is meant: cp $out/mote.api apps/ios/Mote/mote.api" >&2
  exit 1
}
inside "swift test -c release --skip-build $*" >"$out/test.log" 2>&1 || { cat "$out/test.log" >&2; exit 1; }
grep -E 'Executed|prefilled|process' "$out/test.log"
