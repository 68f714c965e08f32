#!/bin/sh
# Compiles the classes of the Java and Kotlin API into a folder:
#   scripts/compile_jvm.sh FOLDER [ANDROID_JAR]
# With the jar of an Android SDK also those that only Android has.
set -eu

cd "$(dirname "$0")/.."
classes="$1" android="${2:-}"
tools=build/jvm-tools
lib=$tools/kotlinc/lib
serialization=$tools/kotlinx-serialization-core.jar:$tools/kotlinx-serialization-json.jar
sources=apps/android/mote/src/main
java=$sources/java kotlin=$sources/kotlin
if [ -n "$android" ]; then
  java="$java apps/android/mote/src/android/java" kotlin="$kotlin apps/android/mote/src/android/kotlin"
fi

rm -rf "$classes"
mkdir -p "$classes"
# What runs on Android has no more than this level everywhere.
# shellcheck disable=SC2086
find $java -name '*.java' >"$classes.txt"
javac -Xlint:all,-options,-serial,-classfile,-path -Werror --release 8 -cp "$classes:$android" -d "$classes" @"$classes.txt"
# Kotlin 2.0's metadata can be read by compilers from 1.9 on.
# shellcheck disable=SC2086
bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -module-name mote -language-version 2.0 -api-version 2.0 \
  -jvm-target 1.8 -Xlambdas=class -Xsam-conversions=class -Xstring-concat=inline -Xexplicit-api=strict -Werror \
  -Xsuppress-version-warnings -Xplugin=$lib/kotlinx-serialization-compiler-plugin.jar \
  -cp "$classes:$android:$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$serialization" -d "$classes" $kotlin
