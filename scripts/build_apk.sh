#!/bin/sh
# Builds build/android/mote-chat.apk of the archive of build_aar.sh, without Gradle: to be checked. What is shipped is made by Gradle
# (apps/android/README.md), whose compiler for Android knows more of Java than dx.
#   scripts/build_apk.sh
# ANDROID_JAR, DX: another android.jar and dx.jar than those of build/android-tools/sdk; FRAMEWORK: resources of Android.
set -eu

cd "$(dirname "$0")/.."
out=build/android
tools=build/jvm-tools
lib=$tools/kotlinc/lib
chat=apps/android/chat/src/main
android_jar="${ANDROID_JAR:-build/android-tools/sdk/android.jar}"
dx="${DX:-build/android-tools/sdk/dx.jar}"
framework="${FRAMEWORK:-/usr/share/android-framework-res/framework-res.apk}"
for file in "$android_jar" "$dx" "$framework"; do
  if [ ! -f "$file" ]; then
    echo "$file: is missing: no app is built" >&2
    exit 3
  fi
done
serialization="$tools/kotlinx-serialization-core.jar:$tools/kotlinx-serialization-json.jar"
runtime="$lib/kotlin-stdlib.jar:$lib/kotlinx-coroutines-core-jvm.jar:$serialization"

apk=$out/apk
rm -rf $apk
mkdir -p $apk/classes $apk/gen
aapt2 compile --dir $chat/res -o $apk/resources.zip
version="$(sed -n 's/.*"version": "\([^"]*\)".*/\1/p' $out/aar-native/prefab/prefab.json)"
aapt2 link -o $apk/chat.apk -I "$framework" --manifest $chat/AndroidManifest.xml --java $apk/gen --version-code 1 \
  --version-name "$version" $apk/resources.zip

javac --release 8 -Xlint:-options -cp "$android_jar" -d $apk/classes $(find $apk/gen $chat/java -name '*.java')
bash $tools/kotlinc/bin/kotlinc -no-stdlib -no-reflect -nowarn -module-name chat -jvm-target 1.8 -Xlambdas=class -Xsam-conversions=class \
  -Xstring-concat=inline -cp "$apk/classes:$out/aar/classes.jar:$android_jar:$runtime" -d $apk/classes $chat/kotlin

# dx reads class files of Java 8 only.
for jar in $out/aar/classes.jar $(echo "$runtime" | tr : ' '); do
  (cd $apk/classes && jar --extract --file "$OLDPWD/$jar")
done
find $apk/classes -name module-info.class -delete
rm -rf $apk/classes/META-INF/versions
java -Xmx2g -cp "$dx" com.android.dx.command.Main --dex --min-sdk-version=26 --output=$apk $apk/classes

(cd $apk && mkdir lib && cp -r ../aar/jni/* lib/ && zip -q -0 chat.apk classes*.dex && zip -q -0 -r chat.apk lib)
"${PYTHON:-python3}" scripts/pack_apk.py $apk/chat.apk $out/mote-chat.apk
if [ ! -f $out/debug.keystore ]; then
  keytool -genkeypair -keystore $out/debug.keystore -storepass android -keypass android -alias debug -keyalg RSA -validity 10000 \
    -dname CN=Debug 2>/dev/null
fi
apksigner sign --ks $out/debug.keystore --ks-pass pass:android --min-sdk-version 26 $out/mote-chat.apk
