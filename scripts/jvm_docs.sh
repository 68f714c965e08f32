#!/bin/sh
# Writes the reference of the Java and Kotlin API, with build/jvm-tools of fetch_jvm_tools.sh:
#   scripts/jvm_docs.sh [FOLDER]
# build/jvm-docs unless given. Kotlin's part is shown as Java sees it; `gradle :mote:dokkaGenerate` (apps/android/README.md) shows it as Kotlin.
set -eu

cd "$(dirname "$0")/.."
out="${1:-build/jvm-docs}"
tools=build/jvm-tools
lib=$tools/kotlinc/lib
java=apps/android/mote/src/main/java
kotlin=apps/android/mote/src/main/kotlin
runtime="$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$tools/kotlinx-serialization-core.jar:$tools/kotlinx-serialization-json.jar"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# The compiler's tool for annotations writes Kotlin's declarations as Java, comments included. It asks for a processor, which it does not
# run then.
kapt=plugin:org.jetbrains.kotlin.kapt3
opens=""
for package in api code comp file main model parser tree util; do
  opens="$opens --add-opens=jdk.compiler/com.sun.tools.javac.$package=ALL-UNNAMED"
done
JAVA_OPTS="${JAVA_OPTS:-} $opens" bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -nowarn -module-name mote \
  -language-version 2.0 -Xsuppress-version-warnings -Xplugin=$lib/kotlin-annotation-processing.jar -P $kapt:aptMode=stubs \
  -P $kapt:processors=none -P $kapt:apclasspath=$lib/kotlin-stdlib.jar \
  -P "$kapt:stubs=$work/stubs" -P "$kapt:sources=$work/sources" -P "$kapt:classes=$work/classes" \
  -Xplugin=$lib/kotlinx-serialization-compiler-plugin.jar -cp "$runtime" -d "$work/classes" $java $kotlin

rm -rf "$out"
find $java "$work/stubs" -name '*.java' -not -name '*CallsKt.java' >"$work/files"
javadoc -quiet -Xdoclint:none -windowtitle Mote -doctitle "Mote for Java and Kotlin" -encoding UTF-8 -notimestamp -cp "$runtime:$lib/annotations-13.0.jar" \
  -d "$out" @"$work/files"
