# Clang and its linker for Linux on MOTE_MACHINE (aarch64, x86_64), with the C++ library of that machine's gcc: as near to Android's NDK
# as a machine without it comes. On Debian and Ubuntu: clang-19, lld-19, llvm-19 and g++-aarch64-linux-gnu.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MOTE_MACHINE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MOTE_MACHINE})
find_program(CMAKE_CXX_COMPILER NAMES clang++-19 clang++ REQUIRED)
find_program(CMAKE_AR NAMES llvm-ar-19 llvm-ar REQUIRED)
find_program(CMAKE_RANLIB NAMES llvm-ranlib-19 llvm-ranlib REQUIRED)
set(CMAKE_CXX_COMPILER_TARGET ${MOTE_MACHINE}-linux-gnu)
