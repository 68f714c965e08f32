// What tests use of POSIX and Windows has by other names. Every test is compiled with it there.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

inline int setenv(const char* name, const char* value, int) { return ::_putenv_s(name, value); }
inline int unsetenv(const char* name) { return ::_putenv_s(name, ""); }
inline int pipe(int* ends) { return ::_pipe(ends, 4096, _O_BINARY); }

// name: ends with XXXXXX, which is replaced.
inline char* mkdtemp(char* name) {
  if (::_mktemp(name) == nullptr) return nullptr;
  return std::filesystem::create_directory(name) ? name : nullptr;
}

// _aligned_free frees it.
inline int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = ::_aligned_malloc(bytes, alignment);
  return *memory == nullptr ? ENOMEM : 0;
}
