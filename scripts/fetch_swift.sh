#!/bin/sh
# Makes a Debian that has Swift in a folder, for machines that have none: about 3.3 GB. Needs root and debootstrap.
#   scripts/fetch_swift.sh FOLDER
# A folder that has one already is left as it is. SUITE, MIRROR: as debootstrap takes them; 13 (trixie) is the first one with Swift.
set -eu

suite="${SUITE:-trixie}"
if [ -e "$1/usr/bin/swift" ]; then exit 0; fi
if [ "$(id -u)" != 0 ]; then
  echo "$1: only root can make a Debian there: run as root, or install Swift 6 and run scripts/test_ios.sh without a folder" >&2
  exit 1
fi
command -v debootstrap >/dev/null || {
  echo "debootstrap is missing: apt-get install debootstrap" >&2
  exit 1
}

mkdir -p "$1"
root="$(cd "$1" && pwd)"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" ${MIRROR:+"$MIRROR"} >"$root.log" 2>&1 ||
  { tail -5 "$root.log" >&2; exit 1; }
# Name servers and ways to registries of this machine, where it has some.
cp /etc/resolv.conf "$root/etc/"
apt-config dump | grep -E '^Acquire::https?::' >"$root/etc/apt/apt.conf.d/99host" || true
settings="$(env | grep -iE '^(https?|no)_proxy=' | tr '\n' ' ' || true)"
# shellcheck disable=SC2086
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive $settings sh -ec '
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends swiftlang swiftlang-dev libc6-dev libstdc++-14-dev g++ git
  apt-get clean' >>"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
