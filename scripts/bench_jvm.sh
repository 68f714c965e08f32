#!/bin/sh
# Measures what Java and Kotlin cost, with the jar of build_jvm.sh and the tests of test_jvm.sh:
#   scripts/bench_jvm.sh MODEL.mote [LARGE.mote]
# Nanoseconds a token over the C API; milliseconds from the start of a process to the first token, without those of an empty main;
# milliseconds to open LARGE; memory while tokens are streamed. RUNS: of which the least counts. OUT=FOLDER: where the jar is; TESTS: the tests.
set -eu

absolute() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }
model="$(absolute "$1")"
large="$(absolute "${2:-$1}")"
cd "$(dirname "$0")/.."
out="${OUT:-build/jvm}"
tests="${TESTS:-build/test-jvm}"
runs="${RUNS:-20}"
tools=build/jvm-tools
lib=$tools/kotlinc/lib
native="$(dirname "$(find $out/native -name 'libmote.*')")"
classes=$out/bench-classes
junit="$(scripts/jvm_junit.sh)"
path="$out/mote-jvm.jar:$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$tools/kotlinx-serialization-core.jar"

"${CC:-cc}" -O2 -I. apps/android/mote/src/bench/stream.c -o $out/stream -L"$native" -lmote -Wl,-rpath,"$PWD/$native"
rm -rf "$classes"
mkdir -p "$classes"
javac -cp "$path" -d "$classes" apps/android/mote/src/bench/ColdStart.java
bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -jvm-target 17 -cp "$path" -d "$classes" apps/android/mote/src/bench/Stream.kt
c="$($out/stream "$model" "$((runs * 10))")"
java="$(java -cp "$classes:$path" ai.mote.bench.StreamKt "$model" "$((runs * 10))")"
# shellcheck disable=SC2086
set -- $java
echo "C API $c ns a token, Java $1 ns (+$(($1 - c))), Kotlin's Flow $2 ns (+$(($2 - c)))"

# least ARGUMENT ...: milliseconds that a process with the class takes
least() {
  best=1000000
  for _ in $(seq "$runs"); do
    begin=$(date +%s%N)
    java -cp "$classes:$path" ai.mote.bench.ColdStart "$@"
    took=$((($(date +%s%N) - begin) / 1000000))
    if [ $took -lt $best ]; then best=$took; fi
  done
  echo $best
}
empty="$(least)"
first="$(least "$model")"
echo "process start to first token $first ms, $((first - empty)) more than an empty main"
echo "open $(basename "$large"): $(java -cp "$classes:$path" ai.mote.bench.ColdStart "$large" "$runs")"

java -Dmote.demo="$model" -Dmote.tokens=100000 -cp "$tests/test-classes:$path:$lib/kotlin-test.jar:$junit" \
  org.junit.platform.console.ConsoleLauncher --disable-banner --details=none --select-class ai.mote.MemoryTest \
  --select-class ai.mote.MemoryKotlinTest >$out/memory.log || { cat $out/memory.log >&2; exit 1; }
grep ' tokens, ' $out/memory.log
