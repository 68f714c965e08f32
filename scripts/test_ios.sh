#!/bin/sh
# Builds the Swift package from source and tests it, and what the app's screens show:
#   scripts/test_ios.sh MODEL.mote [SWIFT_TEST_ARGUMENT ...]
# ROOT=FOLDER: by the Swift of a Debian there (scripts/fetch_swift.sh), as root; without it, by this machine's. LIBRARY=FOLDER: with the
# libmote there in place of the core's sources, which take long to compile. OUT (build/ios): where all that is built is kept.
# MOTE_SEQUENCES=10000: as many steps of random lifecycles; MOTE_TOKENS=100000: as many tokens while memory is watched. BENCH=1:
# measures instead what Swift adds to a token.
set -eu

model="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
shift
cd "$(dirname "$0")/.."
out="$(mkdir -p "${OUT:-build/ios}" && cd "${OUT:-build/ios}" && pwd)"
cp "$model" "$out/demo.mote"
mkdir -p "$out/lib"
if [ -n "${LIBRARY:-}" ]; then
  package="package-installed"
  "${PYTHON:-python3}" scripts/make_swift_package.py "$out/$package" --installed
  cp -L "$LIBRARY"/libmote.* "$out/lib/"
  # Those that another system may have in another version.
  if command -v ldd >/dev/null; then
    ldd "$LIBRARY/libmote.so" | awk '/pcre2|utf8proc/ { print $3 }' | xargs -r -I FILE cp -L FILE "$out/lib/"
  fi
else
  package=package
  scripts/swift_package.sh "$out/$package"
fi

# inside COMMAND: where Swift is, in the package's folder
here="$out"
if [ -n "${ROOT:-}" ]; then
  root="$(cd "$ROOT" && pwd)"
  here=/mote
fi
rm -rf "$out/chat"
cp -Rp apps/ios/Chat "$out/chat"
cat >"$out/inside.sh" <<END
set -eu
export PATH="\$PATH:/usr/libexec/swift/bin" LIBRARY_PATH=$here/lib LD_LIBRARY_PATH=$here/lib MOTE_DEMO=$here/demo.mote
export MOTE_TEST_SHAPES=1 MOTE_PACKAGE=$here/$package MOTE_SEQUENCES=${MOTE_SEQUENCES:-200} MOTE_TOKENS=${MOTE_TOKENS:-4000}
cd $here/$package
eval "\$1"
END
inside() {
  if [ -z "${ROOT:-}" ]; then
    sh "$out/inside.sh" "$1"
    return
  fi
  mkdir -p "$root/mote"
  # shellcheck disable=SC2016
  unshare -m sh -c 'mount --bind "$1" "$2/mote" && mount -t proc proc "$2/proc" && mount --bind /dev "$2/dev" && exec chroot "$2" \
    /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 sh /mote/inside.sh "$3"' sh "$out" "$root" "$1"
}

log="$out/build.log"
inside "swift build -c release --build-tests ${JOBS:+-j $JOBS}" >"$log" 2>&1 || { grep -E 'error:' "$log" >&2 || tail -20 "$log" >&2; exit 1; }
if grep -E "/(Sources/Mote|Tests)[^:]*\.swift:.*warning:" "$log" >&2; then exit 1; fi
if [ -n "${BENCH:-}" ]; then
  inside "swift build -c release --product mote-bench >/dev/null && .build/release/mote-bench $here/demo.mote"
  exit
fi

inside "rm -rf ../symbols && mkdir ../symbols
  headers=Sources/CMote && if [ -d Sources/CMote/include ]; then headers=Sources/CMote/include; fi
  for module in Mote MoteFoundationModels; do
    swift symbolgraph-extract -module-name \$module -I .build/release/Modules -I \$headers -minimum-access-level public \
      -target \$(swiftc -print-target-info | sed -n 's/.*\"triple\": \"\\(.*\\)\".*/\\1/p' | head -1) -output-dir ../symbols
  done" >>"$log" 2>&1 || { tail -5 "$log" >&2; exit 1; }
"${PYTHON:-python3}" scripts/swift_api.py "$out/symbols" Mote MoteFoundationModels >"$out/mote.api"
diff -u apps/ios/Mote/mote.api "$out/mote.api" || {
  echo "The API has changed. If that is meant: cp $out/mote.api apps/ios/Mote/mote.api" >&2
  exit 1
}
inside "swift test -c release --skip-build $*" >"$out/test.log" 2>&1 || { cat "$out/test.log" >&2; exit 1; }
# With what was built for the library: its core takes long. Swift 6.0's Observation for Linux lacks a function that it never calls.
missing=
if [ "$(uname -s)" = Linux ]; then missing="-Xlinker --allow-shlib-undefined"; fi
inside "cd ../chat && swift test -c release --scratch-path $here/$package/.build $missing ${JOBS:+-j $JOBS} $*" >"$out/chat.log" 2>&1 || {
  grep -E 'error:' "$out/chat.log" >&2 || tail -20 "$out/chat.log" >&2
  exit 1
}
if grep -E "/chat/[^:]*\.swift:.*warning:" "$out/chat.log" >&2; then exit 1; fi
grep -hE 'All tests|prefilled|bytes more|Executed .* tests' "$out/test.log" "$out/chat.log" | tail -7
