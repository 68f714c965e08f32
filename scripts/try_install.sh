#!/bin/sh
# Installs a wheel in a minimal Debian that has Python and nothing else, and asks a model for its first answer; tells how long
# it took and how much room it takes. Needs root, debootstrap and some hundred MB:
#   scripts/try_install.sh WHEEL MODEL.mote [PROMPT]
# ROOT: a folder to keep the Debian in and to use again; without it a temporary one. ARCH=arm64: another machine, under an emulator.
# SUITE, MIRROR: as debootstrap takes them.
set -eu

wheel="$1"; model="$2"; prompt="${3:-Hello}"
suite="${SUITE:-bookworm}"
arch="${ARCH:-$(dpkg --print-architecture)}"
root="${ROOT:-}"
if [ -z "$root" ]; then root="$(mktemp -d)/root"; trap 'rm -rf --one-file-system "$(dirname "$root")"' EXIT; fi
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }

if [ ! -e "$root/usr/bin/python3" ]; then
  echo "Debian $suite ($arch)"
  debootstrap --variant=minbase --arch="$arch" --include=python3,python3-venv,ca-certificates "$suite" "$root" ${MIRROR:+"$MIRROR"} \
    >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
fi
mkdir -p "$root/work"
cp "$wheel" "$model" "$root/work/"
# Name servers, certificates and pip's settings of this machine, where it has some.
cp /etc/resolv.conf "$root/etc/"
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then mkdir -p "$root/etc/ssl/certs" && cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi
if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/"; fi

settings="$(env | grep -E '^(PIP_|HTTPS?_PROXY|https?_proxy|NO_PROXY|no_proxy)' | tr '\n' ' ' || true)"
start="$(date +%s)"
# shellcheck disable=SC2086
inside $settings sh -ec "cd /work && rm -rf v
  python3 -m venv v
  v/bin/pip install -q ./$(basename "$wheel")
  v/bin/mote run $(basename "$model") '$prompt'"
echo "From nothing to the first answer: $(($(date +%s) - start)) s"
inside sh -ec 'cd /work && size() { du -sm "$@" | cut -f1; }
  site=$(echo v/lib/python3*/site-packages)
  echo "environment: $(size v) MB"
  echo "  pip, setuptools: $(cd $site && du -cm pip setuptools pkg_resources _distutils_hack 2>/dev/null | tail -1 | cut -f1) MB"
  echo "  numpy: $(cd $site && du -cm numpy numpy.libs 2>/dev/null | tail -1 | cut -f1) MB"
  echo "  mote: $(cd $site && du -cm mote llm_* mote_llm* 2>/dev/null | tail -1 | cut -f1) MB"
  du -m --max-depth=1 $site | sort -rn | head -14'
