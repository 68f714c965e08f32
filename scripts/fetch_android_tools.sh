#!/bin/sh
# Fetches what an Android library and app are made and tested with where there is no Android SDK, into a folder; on Debian:
#   scripts/fetch_android_tools.sh FOLDER
# FOLDER/arm64: a Java for 64-bit Arm Linux, which qemu runs. FOLDER/sdk: android.jar (API 23) and dx, which only
# Debian 11 has; where they cannot be had the folder stays empty, and what needs them says so.
set -eu

folder="$(mkdir -p "$1" && cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
release="$(apt-get indextargets --format '$(CODENAME)' 'Origin: Debian' 'Created-By: Packages' | sort -u | head -1)"
mirror="$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | head -1)"
if [ -z "$mirror" ]; then
  echo "apt-get: has no sources of Debian: must have them" >&2
  exit 1
fi

# packages SUITE ARCHITECTURE FOLDER COMMAND PACKAGE ...: unpacks what a command of apt-get fetches for another release or machine
packages() {
  suite="$1" architecture="$2" into="$3"
  shift 3
  state="$work/$suite-$architecture"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$into"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$state/sources"
  : >"$state/status"
  cat >"$state/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures "$architecture";
Dir::Etc::SourceList "$state/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Acquire::Languages "none";
APT::Sandbox::User "root";
END
  (cd "$state/cache/archives" && export APT_CONFIG="$state/apt.conf" && apt-get -qq update && apt-get -qq "$@" >/dev/null) || return 1
  for package in "$state"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$into"; done
}

rm -rf "$folder/arm64" "$folder/sdk"
packages "$release" arm64 "$folder/arm64" install --download-only --yes --no-install-recommends \
  openjdk-17-jre-headless
mkdir "$folder/sdk"
if packages bullseye amd64 "$work/sdk" download dalvik-exchange libandroid-23-java; then
  cp -L "$work/sdk/usr/lib/android-sdk/platforms/android-23/android.jar" "$folder/sdk/"
  cp -L "$work/sdk/usr/share/java/com.android.dx.jar" "$folder/sdk/dx.jar"
else
  echo "Debian 11 has no dx and no android.jar any more: no app is built" >&2
fi
