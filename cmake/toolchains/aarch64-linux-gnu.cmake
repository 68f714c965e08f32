# 64-bit Arm Linux, cross-compiled on Debian or Ubuntu with g++-aarch64-linux-gnu; tests run under qemu-user. QEMU_CPU in the
# environment chooses the emulated CPU, `max` (everything) if it is not set.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
