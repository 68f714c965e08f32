#!/bin/sh
# Builds the core for 64-bit Windows and runs its tests under wine; then the same model there and here, which must say the same:
#   PATH=.venv/bin:$PATH scripts/test_windows.sh FILE.mote RUNNER
# RUNNER: this machine's mote-runner. `make windows` calls it. JOBS: how many at a time.
set -eu

cd "$(dirname "$0")/.."
file="$1" runner="$2" jobs="${JOBS:-$(getconf _NPROCESSORS_ONLN)}"
host=x86_64-w64-mingw32
dependencies=build/windows-dependencies
export WINEPREFIX="$PWD/build/wine" WINEDEBUG=-all

wine="$(command -v wine64 || command -v /usr/lib/wine/wine64 || command -v wine || true)"
if [ -z "$wine" ] || ! command -v $host-g++-posix >/dev/null; then
  echo "make windows: needs g++-mingw-w64-x86-64-posix and wine64 (apt-get install them)" >&2
  exit 1
fi

if [ ! -f $dependencies/complete ]; then
  HOST=$host CC=$host-gcc-posix AR=$host-ar RANLIB=$host-ranlib \
    scripts/build_dependencies.sh $dependencies pcre2 utf8proc flatbuffers nlohmann_json cli11
  touch $dependencies/complete
fi
# Shaders and Vulkan's headers are the same everywhere.
cmake -S backends/vulkan/shaders -B build/vulkan -G Ninja
cmake --build build/vulkan --parallel "$jobs"
cmake --preset windows -DMOTE_VULKAN=ON -DMOTE_VULKAN_FILES=build/vulkan
cmake --build --preset windows --parallel "$jobs"
# wine takes Vulkan from its driver of a display; without one the tests of a device are skipped.
screen=""
if command -v xvfb-run >/dev/null; then screen="xvfb-run -a"; fi
# shellcheck disable=SC2086
$screen ctest --preset windows --parallel "$jobs"

python scripts/compare_instruction_sets.py --windows "$file"

# Names that are not ASCII, bytes as they are on both sides, and the exit status of what cannot be opened.
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp "$file" "$folder/modèle 模型.mote"
printf 'Say "Grüße".\nThanks\n' >"$folder/lines.txt"
there() { "$wine" build/windows/runner/cli/mote-runner.exe "$@"; }
check() {
  name="$1"; shift
  there "$@" <"$folder/lines.txt" >"$folder/there" 2>/dev/null || { echo "$name: fails on Windows" >&2; exit 1; }
  "$runner" "$@" <"$folder/lines.txt" >"$folder/here" 2>/dev/null
  cmp "$folder/here" "$folder/there"
  echo "mote-runner $name: the same"
}
check run run "$folder/modèle 模型.mote" "def main():" --raw --greedy -n 64
check "run -" run "$file" - --greedy -n 64
check chat chat "$file" --greedy -n 60
check tokenize tokenize "$file" "naïve 模型 🙂"
check inspect inspect "$file"
check verify verify "$file"
if there run "$folder/missing.mote" x >"$folder/there" 2>&1; then exit 1; fi
grep -q "missing.mote: cannot be opened: No such file or directory" "$folder/there"
