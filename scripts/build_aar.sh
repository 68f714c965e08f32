#!/bin/sh
# Builds build/android/mote-android.aar, classes and libmote.so for arm64-v8a and x86_64, and mote-android-native.aar, the same library with
# mote.h for an app's own C and C++ (prefab). In one archive each library would be there twice.
#   ANDROID_NDK=FOLDER ANDROID_JAR=SDK/platforms/android-36/android.jar scripts/build_aar.sh [OPTION ...]
# OPTION, and without the first: what scripts/build_android_library.sh says. Without the second with build/android-tools/sdk/android.jar,
# and without that there are no classes that only Android has: such an archive is not to be shipped.
set -eu

cd "$(dirname "$0")/.."
out=build/android
sources=apps/android/mote/src/android
android_jar="${ANDROID_JAR:-build/android-tools/sdk/android.jar}"
if [ ! -f "$android_jar" ]; then
  echo "$android_jar: is missing: the archive has no class of ai.mote.android" >&2
  android_jar=""
fi

aar=$out/aar native=$out/aar-native
prefab=$native/prefab/modules/mote
rm -rf $aar $native
mkdir -p $aar $prefab/include
scripts/compile_jvm.sh $out/classes "$android_jar"
jar --create --no-manifest --file $aar/classes.jar -C $out/classes .
cp $sources/AndroidManifest.xml $aar/
sed 's/ai\.mote\.android/ai.mote.prefab/' $sources/AndroidManifest.xml >$native/AndroidManifest.xml
cp $sources/consumer-rules.pro $aar/proguard.txt
: >$aar/R.txt

cp runner/capi/mote.h $prefab/include/
for abi in arm64-v8a x86_64; do
  library="$(scripts/build_android_library.sh $abi "$@")"
  mkdir -p $aar/jni/$abi $prefab/libs/android.$abi
  cp "$library" $aar/jni/$abi/
  cp "$library" $prefab/libs/android.$abi/
  echo "{\"abi\": \"$abi\", \"api\": 26, \"ndk\": 27, \"stl\": \"none\", \"static\": false}" >$prefab/libs/android.$abi/abi.json
done
echo '{"export_libraries": [], "library_name": "libmote"}' >$prefab/module.json
version="$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "${library%%/apps/*}/CMakeCache.txt")"
echo "{\"schema_version\": 2, \"name\": \"mote\", \"version\": \"$version\", \"dependencies\": []}" >$native/prefab/prefab.json

rm -f $out/mote-android.aar $out/mote-android-native.aar
(cd $aar && jar --create --no-manifest --file ../mote-android.aar AndroidManifest.xml R.txt classes.jar proguard.txt jni)
(cd $native && jar --create --no-manifest --file ../mote-android-native.aar AndroidManifest.xml prefab)
