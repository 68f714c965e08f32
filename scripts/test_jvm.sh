#!/bin/sh
# Tests the library for Java and Kotlin: JUnit on the jar of build_jvm.sh, every call of JNI checked.
#   scripts/test_jvm.sh MODEL.mote [JAVA_OPTION ...]
# -Dmote.sequences=10000: as many random lifecycles; -Dmote.tokens=50000: as many tokens while memory is watched;
# SANITIZED=FILE: with a native library that has AddressSanitizer and UBSan. OUT=FOLDER: where the jar is.
# Reads what tests/jvm_files.py wrote to OUT/files.
set -eu

model="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
shift
cd "$(dirname "$0")/.."
out="${OUT:-build/jvm}"
tools=build/jvm-tools
lib=$tools/kotlinc/lib
tests=apps/android/mote/src/test
samples=apps/android/mote/src/samples
chat=apps/android/chat/src
classes=$out/test-classes
junit="$(scripts/jvm_junit.sh)"
runtime="$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$tools/kotlinx-serialization-core.jar:$tools/kotlinx-serialization-json.jar"
path="$out/mote-jvm.jar:$runtime:$lib/kotlin-test.jar:$junit"

rm -rf "$classes"
mkdir -p "$classes"
# Java alone, without Kotlin's library.
javac -Xlint:all,-options,-path,-classfile,-try -Werror -cp "$out/mote-jvm.jar:$junit" -d "$classes" $(find $tests/java -name '*.java')
javac -Xlint:all -Werror -cp $out/mote-jvm.jar -d "$classes" $samples/*.java
bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -nowarn -jvm-target 17 -cp "$classes:$path" \
  -Xplugin=$lib/kotlinx-serialization-compiler-plugin.jar -d "$classes" $tests/kotlin $samples/*.kt \
  $(find $chat/main/kotlin -name '*.kt' -not -path '*/ui/*') $chat/test/kotlin

# An app of the oldest Kotlin, with that one's library.
oldest=$tools/kotlinc-oldest
path_of_app="$out/mote-jvm.jar:$oldest/lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar"
bash $oldest/bin/kotlinc -no-stdlib -no-reflect -Werror -jvm-target 1.8 -cp "$path_of_app" -d $out/app-classes $tests/kotlin-oldest
java -cp "$out/app-classes:$path_of_app" AppKt "$model" | grep -q 'Mote demo'

OUT="$out" scripts/jvm_api.sh >$out/mote.api
diff -u apps/android/mote/mote.api $out/mote.api || {
  echo "The API has changed. If that is meant: scripts/jvm_api.sh > apps/android/mote/mote.api" >&2
  exit 1
}

# Java handles some signals itself, and keeps much to the end.
preload=""
if [ -n "${SANITIZED:-}" ]; then
  preload="$("${CXX:-g++}" -print-file-name=libasan.so):$("${CXX:-g++}" -print-file-name=libubsan.so)"
  export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1:detect_leaks=0
  set -- "-Dai.mote.library=$PWD/$SANITIZED" "$@"
fi

log=$out/test.log
status=0
LD_PRELOAD="$preload" java -Xcheck:jni -XX:-OmitStackTraceInFastThrow -ea "$@" -Dmote.demo="$model" -Dmote.files=$out/files \
  --add-opens java.base/java.io=ALL-UNNAMED -cp "$classes:$path" org.junit.platform.console.ConsoleLauncher --disable-banner --details=summary \
  --scan-classpath "$classes" --include-classname '.*' >"$log" 2>&1 || status=$?
if grep -q 'ERROR: AddressSanitizer\|runtime error:\|WARNING in native method\|FATAL ERROR in native method' "$log"; then
  echo "Native code or its use of JNI is wrong" >&2
  status=1
fi
if [ $status != 0 ]; then cat "$log" >&2; else tail -4 "$log"; fi
exit $status
