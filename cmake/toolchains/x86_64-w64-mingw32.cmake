# 64-bit Windows, cross-compiled on Debian or Ubuntu with g++-mingw-w64-x86-64-posix; tests run under wine64. Libraries come from
# CMAKE_PREFIX_PATH; HOST=x86_64-w64-mingw32 scripts/build_dependencies.sh fills one.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
# gcc's own libraries go into each program, so that it runs alone.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)

set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH} /usr/x86_64-w64-mingw32)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_PREFIX_PATH}/lib/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Debian keeps it beside wine, out of the path.
find_program(MOTE_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(MOTE_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MOTE_WINE})
endif()
