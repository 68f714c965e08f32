#!/bin/sh
# Fetches the archives that build_dependencies.sh takes from MOTE_SOURCES out of Debian's source packages: the same files, for
# machines that reach a mirror of Debian and no other place.
#   scripts/debian_sources.sh FOLDER
# SUITE (bookworm); MIRROR: unless given the first one that apt takes packages from
set -eu

folder="$(mkdir -p "$1" && cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial"
mirror="${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -1)}"
cat >"$work/debian.sources" <<END
Types: deb-src
URIs: $mirror
Suites: ${SUITE:-bookworm}
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cd "$work"
apt() { apt-get -qq -o Dir::Etc::sourcelist="$work/debian.sources" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
  -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"; }
apt update
apt source --download-only pcre2 utf8proc flatbuffers nlohmann-json3
# keep PACKAGE NAME
keep() {
  archive="$(ls "$1"_*.orig.tar.*)"
  case "$archive" in
    *.gz) mv "$archive" "$folder/$2.tar.gz" ;;
    *.xz) xz -dc "$archive" | gzip -n >"$folder/$2.tar.gz" ;;
  esac
}
keep pcre2 pcre2
keep utf8proc utf8proc
keep flatbuffers flatbuffers
keep nlohmann-json3 nlohmann_json
