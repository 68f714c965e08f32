#!/bin/sh
# Builds the library and the app for Android and tests them as far as a machine without Android can:
#   scripts/test_android.sh MODEL.mote
# After scripts/fetch_android_tools.sh build/android-tools and scripts/test_jvm.sh with OUT=build/test-jvm, whose classes run again.
set -eu

model="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
cd "$(dirname "$0")/.."
out=build/android
lib=build/jvm-tools/kotlinc/lib
tests=apps/android/mote/src/test-android/java
android_jar="${ANDROID_JAR:-build/android-tools/sdk/android.jar}"
junit="$(scripts/jvm_junit.sh)"

scripts/build_aar.sh
if scripts/build_apk.sh; then
  "${PYTHON:-python3}" scripts/check_android.py $out/mote-android.aar $out/mote-android-native.aar $out/mote-chat.apk
elif [ $? = 3 ]; then
  "${PYTHON:-python3}" scripts/check_android.py $out/mote-android.aar $out/mote-android-native.aar
else
  exit 1
fi

# junit LOG JAVA CLASSPATH OPTION ...
junit() {
  log="$1" java="$2" path="$3"
  shift 3
  # shellcheck disable=SC2086
  $java -Dmote.demo="$model" -Dmote.files=build/test-jvm/files --add-opens java.base/java.io=ALL-UNNAMED -cp "$path:$junit" \
    org.junit.platform.console.ConsoleLauncher --disable-banner --details=summary --include-engine junit-jupiter "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  tail -4 "$log"
}

if [ -f "$android_jar" ]; then
  # What stands in for Android's classes comes before them.
  rm -rf $out/test-classes
  mkdir -p $out/test-classes
  javac -Xlint:all,-options,-path,-classfile,-processing -cp "$out/classes:$android_jar:$junit" -d $out/test-classes \
    $(find $tests -name '*.java')
  export JAVA_TOOL_OPTIONS="-Dai.mote.library=$PWD/build/dev/apps/android/mote/src/main/cpp/libmote.so"
  junit $out/test.log "java -Xcheck:jni -ea" "$out/test-classes:$out/classes:$android_jar" --scan-classpath $out/test-classes
fi

# The library for 64-bit Arm, in a Java for it.
arm64=$PWD/build/android-tools/arm64
if [ -d "$arm64" ] && command -v qemu-aarch64 >/dev/null; then
  export JAVA_TOOL_OPTIONS="-Dai.mote.library=$PWD/$out/aar/jni/arm64-v8a/libmote.so"
  methods=""
  for name in BlockingTest#textIsExact BlockingTest#streamsWhatTheTokensSpell BlockingTest#stopsFromAnotherThread \
    BlockingTest#chatsOverSeveralTurns BlockingTest#forksRewindsSavesAndRestores BadInputTest#callsAfterClose; do
    methods="$methods --select-method ai.mote.$name"
  done
  # shellcheck disable=SC2086
  junit $out/test-arm64.log "qemu-aarch64 -L $arm64 $arm64/usr/lib/jvm/java-17-openjdk-arm64/bin/java -Xint" \
    "build/test-jvm/test-classes:$out/classes:$lib/kotlin-stdlib.jar" $methods
fi
