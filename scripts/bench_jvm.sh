#!/bin/sh
# Measures what Java and Kotlin add to a token over the C API, with the jar of build_jvm.sh: nanoseconds, least of RUNS runs.
#   scripts/bench_jvm.sh MODEL.mote [RUNS]
set -eu

model="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
runs="${2:-200}"
cd "$(dirname "$0")/.."
tools=build/jvm-tools
lib=$tools/kotlinc/lib
native=build/jvm/apps/android/mote/src/main/cpp
classes=build/jvm/bench-classes
path="build/jvm/mote-jvm.jar:$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$tools/kotlinx-serialization-core.jar"

"${CC:-cc}" -O2 -I. apps/android/mote/src/bench/stream.c -o build/jvm/stream -L$native -lmote -Wl,-rpath,"$PWD/$native"
rm -rf "$classes"
bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -jvm-target 17 -cp "$path" -d "$classes" apps/android/mote/src/bench/Stream.kt
c="$(build/jvm/stream "$model" "$runs")"
java="$(java -cp "$classes:$path" ai.mote.bench.StreamKt "$model" "$runs")"
set -- $java
echo "C API $c ns a token, Java $1 ns (+$(($1 - c))), Kotlin's Flow $2 ns (+$(($2 - c)))"
