#!/bin/sh
# Builds the Swift package from source and tests it, and what the app's screens show:
#   scripts/test_ios.sh MODEL.mote [SWIFT_TEST_ARGUMENT ...]
# ROOT=FOLDER: by the Swift of a Debian there (scripts/fetch_swift.sh), as root; without it, by this machine's. LIBRARY=FOLDER: with the
# libmote there in place of the core's sources, which take long to compile. OUT (build/ios): where all that is built is kept.
# MOTE_SEQUENCES=10000: as many steps of random lifecycles; MOTE_TOKENS=100000: as many tokens while memory is watched. BENCH=1:
# measures instead what Swift adds to a token. DOWNLOADS=1: kills instead downloads of 200 MB at 50 random points, by PYTHON with pytest.
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

rm -rf "$out/chat"
cp -RpL apps/ios/Chat "$out/chat"
# inside.sh COMMAND [ARGUMENT ...]: by Swift, in the package's folder; enter.sh: the same from here
cat >"$out/inside.sh" <<END
set -eu
export PATH="\$PATH:/usr/libexec/swift/bin" LIBRARY_PATH="$out/lib" LD_LIBRARY_PATH="$out/lib" MOTE_DEMO="$out/demo.mote"
export MOTE_TEST_SHAPES=1 MOTE_PACKAGE="$out/$package" MOTE_SEQUENCES=${MOTE_SEQUENCES:-200} MOTE_TOKENS=${MOTE_TOKENS:-4000}
cd "$out/$package"
exec "\$@"
END
if [ -n "${ROOT:-}" ]; then
  root="$(cd "$ROOT" && pwd)"
  mkdir -p "$root$out"
  cat >"$out/enter.sh" <<END
exec unshare -m sh -ec 'mount --bind "$out" "$root$out"; mount -t proc proc "$root/proc"; mount --bind /dev "$root/dev"
  exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 sh "$out/inside.sh" "\$@"' sh "\$@"
END
else
  cp "$out/inside.sh" "$out/enter.sh"
fi
inside() { sh "$out/enter.sh" sh -euc "$1"; }

flags="-c release -debug-info-format none"  # compiles faster
log="$out/build.log"
inside "swift build $flags --build-tests ${JOBS:+-j $JOBS}" >"$log" 2>&1 || { grep -E 'error:' "$log" >&2 || tail -20 "$log" >&2; exit 1; }
if grep -E "/(Sources/Mote|Tests)[^:]*\.swift:.*warning:" "$log" >&2; then exit 1; fi
if [ -n "${BENCH:-}" ]; then
  inside "swift build $flags --product mote-bench >/dev/null && .build/release/mote-bench $out/demo.mote"
  exit
fi
if [ -n "${DOWNLOADS:-}" ]; then
  rm -rf "$out/downloads"
  MOTE_DOWNLOAD_CLIENT="sh '$out/enter.sh' .build/release/mote-pull" MOTE_DOWNLOAD_BYTES=200000000 MOTE_DOWNLOAD_KILLS=50 \
    "${PYTHON:-python3}" -m pytest -s --basetemp "$out/downloads" tests/mote/test_killed_download.py
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
# The reference, whose links must lead somewhere.
inside "rm -rf ../reference && \$(command -v docc || echo xcrun docc) convert Sources/Mote/Mote.docc --additional-symbol-graph-dir ../symbols --output-path ../reference \
  --transform-for-static-hosting --warnings-as-errors" >"$out/reference.log" 2>&1 || { cat "$out/reference.log" >&2; exit 1; }
inside "swift test $flags --skip-build $*" >"$out/test.log" 2>&1 || { cat "$out/test.log" >&2; exit 1; }
# With what was built for the library: its core takes long. Swift 6.0's Observation for Linux lacks a function that it never calls.
missing=
if [ "$(uname -s)" = Linux ]; then missing="-Xlinker --allow-shlib-undefined"; fi
inside "cd ../chat && swift test $flags --scratch-path $out/$package/.build $missing ${JOBS:+-j $JOBS} $*" >"$out/chat.log" 2>&1 || {
  grep -E 'error:' "$out/chat.log" >&2 || tail -20 "$out/chat.log" >&2
  exit 1
}
if grep -E "/chat/[^:]*\.swift:.*warning:" "$out/chat.log" >&2; then exit 1; fi
grep -hE 'All tests|prefilled|bytes more|Executed .* tests' "$out/test.log" "$out/chat.log" | tail -7
