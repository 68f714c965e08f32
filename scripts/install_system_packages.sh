#!/bin/sh
# Installs the compilers and libraries that Mote builds with: apt on Debian and Ubuntu, Homebrew on macOS.
set -eu

debian_packages="build-essential ccache cmake ninja-build pkg-config python3 python3-dev python3-venv
flatbuffers-compiler libflatbuffers-dev nlohmann-json3-dev libpcre2-dev libutf8proc-dev libcli11-dev libedit-dev libgtest-dev
default-jdk-headless junit5 libvulkan-dev glslc"
# The Arm kernels are tested on x86 under an emulator.
if command -v dpkg >/dev/null 2>&1 && [ "$(dpkg --print-architecture)" = amd64 ]; then
  debian_packages="$debian_packages g++-aarch64-linux-gnu qemu-user"
fi
# Only tests want these, and do without where they cannot be had.
optional_packages="chromium mesa-vulkan-drivers vulkan-validationlayers"
brew_packages="ccache cmake ninja pkg-config python@3.12 flatbuffers nlohmann-json pcre2 utf8proc cli11 googletest vulkan-headers shaderc"

missing_of() {
  for package in $1; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf ' %s' "$package"
  done
}

install_debian() {
  echo "Installing$1"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $1
}

if command -v apt-get >/dev/null 2>&1; then
  sudo=""
  if [ "$(id -u)" != 0 ]; then sudo="sudo"; fi
  missing="$(missing_of "$debian_packages")"
  if [ -n "$missing" ]; then install_debian "$missing"; fi
  missing="$(missing_of "$optional_packages")"
  if [ -n "$missing" ]; then install_debian "$missing" || echo "Tests that want$missing are skipped"; fi
elif command -v brew >/dev/null 2>&1; then
  for package in $brew_packages; do
    brew list --versions "$package" >/dev/null 2>&1 || brew install --quiet "$package"
  done
else
  echo "Neither apt-get nor brew was found. Install: $debian_packages" >&2
  exit 1
fi
