#!/bin/sh
# Installs the compilers and libraries that Mote builds with: apt on Debian and Ubuntu, Homebrew on macOS.
set -eu

debian_packages="build-essential ccache cmake ninja-build pkg-config python3 python3-dev python3-venv
flatbuffers-compiler libflatbuffers-dev nlohmann-json3-dev libpcre2-dev libutf8proc-dev libcli11-dev libgtest-dev"
# The Arm kernels are tested on x86 under an emulator.
if command -v dpkg >/dev/null 2>&1 && [ "$(dpkg --print-architecture)" = amd64 ]; then
  debian_packages="$debian_packages g++-aarch64-linux-gnu qemu-user"
fi
brew_packages="ccache cmake ninja pkg-config python@3.12 flatbuffers nlohmann-json pcre2 utf8proc cli11 googletest"

if command -v apt-get >/dev/null 2>&1; then
  missing=""
  for package in $debian_packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
  done
  [ -z "$missing" ] && exit 0
  sudo=""
  if [ "$(id -u)" != 0 ]; then sudo="sudo"; fi
  echo "Installing$missing"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing
elif command -v brew >/dev/null 2>&1; then
  for package in $brew_packages; do
    brew list --versions "$package" >/dev/null 2>&1 || brew install --quiet "$package"
  done
else
  echo "Neither apt-get nor brew was found. Install: $debian_packages" >&2
  exit 1
fi
