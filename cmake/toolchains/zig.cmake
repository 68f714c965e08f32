# Linux on another architecture, or with an older C library than this machine's, cross-compiled by zig (pip install ziglang),
# which brings clang, libc++ and every C library with it:
#   cmake --toolchain cmake/toolchains/zig.cmake -DMOTE_ZIG=.../zig -DMOTE_ZIG_TARGET=x86_64-linux-gnu.2.28
# Libraries come from CMAKE_PREFIX_PATH; scripts/build_dependencies.sh fills one.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MOTE_ZIG MOTE_ZIG_TARGET)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${MOTE_ZIG_TARGET}")
if(MOTE_ZIG_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()

# CMake and ccache want one program each.
foreach(pair "clang cc" "clang++ c++" "ar ar" "ranlib ranlib")
  string(REGEX MATCH "^[^ ]+" name "${pair}")
  string(REGEX MATCH "[^ ]+$" tool "${pair}")
  if(name MATCHES "clang")
    string(APPEND tool " -target ${MOTE_ZIG_TARGET}")
  endif()
  set(program ${CMAKE_BINARY_DIR}/zig/${name})
  file(CONFIGURE OUTPUT ${program} CONTENT "#!/bin/sh\nexec '${MOTE_ZIG}' ${tool} \"$@\"\n")
  file(CHMOD ${program} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER ${CMAKE_BINARY_DIR}/zig/clang)
set(CMAKE_CXX_COMPILER ${CMAKE_BINARY_DIR}/zig/clang++)
set(CMAKE_AR ${CMAKE_BINARY_DIR}/zig/ar)
set(CMAKE_RANLIB ${CMAKE_BINARY_DIR}/zig/ranlib)

# pybind11 would try kinds of link-time optimisation, which make zig build its libraries again for each.
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
# zig cannot write precompiled headers, nor strip what it has linked; its linker has no --push-state.
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_RELEASE_INIT -s)
endforeach()
set(CMAKE_PROJECT_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/zig_link.cmake)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_PREFIX_PATH}/lib/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
# The build runs what it has built.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR env)
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR};-L;/usr/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
endif()
