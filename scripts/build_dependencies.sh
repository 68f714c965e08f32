#!/bin/sh
# Builds the libraries that a wheel carries, static, and the headers and the program (flatc) that its build needs:
#   CC=cc scripts/build_dependencies.sh PREFIX [NAME ...]
# HOST (as in ./configure --host) for another machine than this one. A file NAME.tar.gz in MOTE_SOURCES is used in place of a download;
# where nothing can be downloaded, Debian's sources may have the same archives (debian_sources.sh).
# PCRE2_JIT=disable: without its compiler, 200 kB. UTF8PROC_SMALLER=1: tables of half the size. UNPACK=1: nothing is built; PREFIX/NAME is a library's sources.
set -eu

scripts="$(cd "$(dirname "$0")" && pwd)"
prefix="$(mkdir -p "$1" && cd "$1" && pwd)"; shift
names="${*:-pcre2 utf8proc ncurses libedit flatbuffers nlohmann_json cli11}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
: "${CC:=cc}" "${AR:=ar}" "${RANLIB:=ranlib}" "${HOST:=}"
export CC AR RANLIB CFLAGS="-O2 -fPIC ${CFLAGS:-}"
jobs="$(getconf _NPROCESSORS_ONLN)"
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/bin"

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# only_unpacked NAME: with UNPACK, leaves the subshell that would build the library
only_unpacked() {
  if [ -z "${UNPACK:-}" ]; then return; fi
  rm -rf "${prefix:?}/$1"
  mv "$work/$1" "$prefix/$1"
  exit 0
}

# debian_archive NAME: the path of the archive, from Debian's sources
debian_archive() {
  if [ ! -d "$work/debian" ]; then
    echo "$1: cannot be downloaded: taking Debian's archives" >&2
    "$scripts/debian_sources.sh" "$work/debian" >&2
  fi
  echo "$work/debian/$1.tar.gz"
}

# release NAME SHA256 URL: unpacks a release into $work/NAME
release() {
  archive="${MOTE_SOURCES:-/nowhere}/$1.tar.gz"
  if [ ! -f "$archive" ]; then
    archive="$work/$1.tar.gz"
    curl -fsSL --retry 3 -o "$archive" "$3" || archive="$(debian_archive "$1")"
  fi
  found="$(checksum "$archive")"
  if [ "$found" != "$2" ]; then
    echo "$archive: has the SHA-256 $found: must have $2" >&2
    exit 1
  fi
  mkdir "$work/$1"
  tar -xzf "$archive" -C "$work/$1" --strip-components=1
  only_unpacked "$1"
}

# commit NAME COMMIT URL: checks a commit out into $work/NAME; its name proves what is in it
commit() {
  mkdir "$work/$1"
  archive="${MOTE_SOURCES:-/nowhere}/$1.tar.gz"
  git -C "$work/$1" init -q
  if [ ! -f "$archive" ] && git -C "$work/$1" fetch -q --depth 1 "$3" "$2"; then
    git -C "$work/$1" -c advice.detachedHead=false checkout -q FETCH_HEAD
  else
    if [ ! -f "$archive" ]; then archive="$(debian_archive "$1")"; fi
    tar -xzf "$archive" -C "$work/$1" --strip-components=1
  fi
  only_unpacked "$1"
}

configure() {
  ./configure --prefix="$prefix" ${HOST:+--host="$HOST"} --quiet "$@" >configure.log 2>&1 ||
    { tail -30 configure.log >&2; exit 1; }
}

# quietly LOG COMMAND ...: shows what a command said if it failed
quietly() {
  log="$1"; shift
  "$@" >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
}

build_pcre2() {
  release pcre2 c33b418e3b936ee3153de2c61cc638e7e4fe3156022a5c77d0711bcbb9d64f1f \
    https://github.com/PCRE2Project/pcre2/releases/download/pcre2-10.42/pcre2-10.42.tar.gz
  cd "$work/pcre2"
  configure --disable-shared "--${PCRE2_JIT:-enable}-jit" --enable-unicode --disable-dependency-tracking
  quietly make.log make -j"$jobs" libpcre2-8.la
  cp .libs/libpcre2-8.a "$prefix/lib/"
  cp src/pcre2.h "$prefix/include/"
  cp libpcre2-8.pc "$prefix/lib/pkgconfig/"
  cp LICENCE "$prefix/LICENCE.pcre2"
}

# Takes fields that map characters out of utf8proc's rows of properties (smaller_utf8proc.c). What is not replaced does not compile.
make_utf8proc_smaller() {
  fields='\(decomp_seqindex\|casefold_seqindex\|uppercase_seqindex\|lowercase_seqindex\|titlecase_seqindex\|comb_index\)'
  host="${BUILD_CC:-cc} -O1 -DUTF8PROC_STATIC -I."
  $host -o smaller "$scripts/smaller_utf8proc.c"
  ./smaller tables >data.c
  ./smaller answers >answers
  sed -e "s/utf8proc_get_property(c)->$fields/\1_of(c)/; s/\([^_]\)property->$fields/\1\2_of(uc)/g; s/p->$fields/\1_of(c)/g" \
      -e "s/current_property->$fields/\1_of(current_char)/g; s/starter_property->$fields/\1_of(*starter)/g" utf8proc.c >code.c
  sed "/utf8proc_uint16_t $fields;/d" utf8proc.h >header.h
  mv data.c utf8proc_data.c; mv code.c utf8proc.c; mv header.h utf8proc.h
  $host -DSMALLER -o smaller "$scripts/smaller_utf8proc.c"
  ./smaller answers | cmp - answers
}

build_utf8proc() {
  release utf8proc a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc \
    https://github.com/JuliaStrings/utf8proc/archive/v2.8.0.tar.gz
  cd "$work/utf8proc"
  if [ -n "${UTF8PROC_SMALLER:-}" ]; then make_utf8proc_smaller; fi
  # shellcheck disable=SC2086
  quietly cc.log $CC $CFLAGS -DUTF8PROC_STATIC -std=c99 -c utf8proc.c -o utf8proc.o
  rm -f "$prefix/lib/libutf8proc.a"
  $AR rcs "$prefix/lib/libutf8proc.a" utf8proc.o
  cp utf8proc.h "$prefix/include/"
  cp LICENSE.md "$prefix/LICENCE.utf8proc"
  cat >"$prefix/lib/pkgconfig/libutf8proc.pc" <<EOF
Name: libutf8proc
Description: UTF-8 processing
Version: 2.8.0
Cflags: -I$prefix/include -DUTF8PROC_STATIC
Libs: -L$prefix/lib -lutf8proc
EOF
}

# Only the reader of terminal descriptions, which libedit needs; some terminals are known without a file.
build_ncurses() {
  release ncurses 6931283d9ac87c5073f30b6290c4c75f21632bb4fc3603ac8100812bed248159 \
    https://ftp.gnu.org/gnu/ncurses/ncurses-6.4.tar.gz
  cd "$work/ncurses"
  configure --without-shared --with-termlib --without-cxx --without-cxx-binding --without-ada --without-progs --without-tests \
    --without-manpages --without-debug --disable-db-install --disable-widec --with-build-cc=cc --enable-termcap \
    --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo \
    --with-fallbacks=xterm,xterm-256color,screen,screen-256color,tmux-256color,linux,vt100
  quietly make.log make -C include
  quietly make.log make -C ncurses -j"$jobs" ../lib/libtinfo.a
  cp lib/libtinfo.a "$prefix/lib/"
  cp include/curses.h include/ncurses_dll.h include/term.h include/termcap.h include/unctrl.h "$prefix/include/"
  ln -sf curses.h "$prefix/include/ncurses.h"
  cp COPYING "$prefix/LICENCE.ncurses"
}

# libedit.a gets what it needs of ncurses, so that one name links it.
build_libedit() {
  release libedit f0925a5adf4b1bf116ee19766b7daa766917aec198747943b1c4edf67a4be2bb \
    https://www.thrysoee.dk/editline/libedit-20221030-3.1.tar.gz
  cd "$work/libedit"
  configure --disable-shared --disable-examples --disable-dependency-tracking CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" \
    ac_cv_lib_bsd_strlcpy=no ac_cv_func___secure_getenv=no
  quietly make.log make -C src -j"$jobs"
  (cd "$work" && mkdir merged && cd merged && $AR x "$prefix/lib/libtinfo.a" && $AR x "$work/libedit/src/.libs/libedit.a")
  rm -f "$prefix/lib/libedit.a"
  $AR rcs "$prefix/lib/libedit.a" "$work"/merged/*.o
  cp src/histedit.h "$prefix/include/"
  cp COPYING "$prefix/LICENCE.libedit"
}

# flatc runs on this machine, whatever the wheel is for.
build_flatbuffers() {
  commit flatbuffers 06c5c7ed0bd987a918cf88caafb094f22cdd1721 https://github.com/google/flatbuffers
  cp -r "$work/flatbuffers/include/flatbuffers" "$prefix/include/"
  if command -v flatc >/dev/null 2>&1 && flatc --version | grep -q ' 2\.0\.8$'; then return; fi
  CC="${BUILD_CC:-cc}" CFLAGS="" quietly "$work/cmake.log" cmake -S "$work/flatbuffers" -B "$work/flatbuffers/build" \
    -DCMAKE_BUILD_TYPE=Release -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF -DCMAKE_CXX_FLAGS=-w
  quietly "$work/cmake.log" cmake --build "$work/flatbuffers/build" --target flatc --parallel "$jobs"
  cp "$work/flatbuffers/build/flatc" "$prefix/bin/"
}

build_nlohmann_json() {
  release nlohmann_json d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273 \
    https://github.com/nlohmann/json/archive/v3.11.2.tar.gz
  quietly "$work/json.log" cmake -S "$work/nlohmann_json" -B "$work/nlohmann_json/build" -DJSON_BuildTests=OFF \
    -DCMAKE_INSTALL_PREFIX="$prefix"
  quietly "$work/json.log" cmake --install "$work/nlohmann_json/build"
}

build_cli11() {
  commit cli11 70f8072f9dd2292fd0b9f9e5f58e279f60483ed3 https://github.com/CLIUtils/CLI11
  quietly "$work/cli11.log" cmake -S "$work/cli11" -B "$work/cli11/build" -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF \
    -DCLI11_BUILD_DOCS=OFF -DCLI11_PRECOMPILED=OFF -DCMAKE_INSTALL_PREFIX="$prefix"
  quietly "$work/cli11.log" cmake --install "$work/cli11/build"
}

for name in $names; do
  echo "$name"
  (build_"$name")
done
