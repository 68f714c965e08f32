/* Makes the k-th call of the system on files below one folder fail. Loaded before the program (LD_PRELOAD); told what
 * to do by soak_arm(), or at the start by SOAK_UNDER, SOAK_CALL, SOAK_AT and SOAK_ERROR. SOAK_REPORT: a file that gets
 * the number of such calls at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kShort = -1 }; /* in place of an error: half of the bytes */

static char under[4096], call_name[32];
static long count, fail_at;
static int fail_with;

void soak_arm(const char* folder, const char* call, long at, int error) {
  snprintf(under, sizeof under, "%s", folder);
  snprintf(call_name, sizeof call_name, "%s", call);
  count = 0;
  fail_at = at;
  fail_with = error;
}
long soak_count(void) { return count; }

__attribute__((constructor)) static void begin(void) {
  const char* folder = getenv("SOAK_UNDER");
  if (folder == NULL) return;
  soak_arm(folder, getenv("SOAK_CALL"), atol(getenv("SOAK_AT")), atoi(getenv("SOAK_ERROR")));
}
static int fails(const char* call, const char* path) {
  if (under[0] == '\0' || path == NULL || strcmp(call, call_name) != 0 || strncmp(path, under, strlen(under)) != 0)
    return 0;
  const long now = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  const char* report = getenv("SOAK_REPORT");
  if (report != NULL) { /* in the middle: a program may end without destructors */
    static int (*real)(const char*, int, ...);
    if (real == NULL) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
    char text[24];
    const int file = real(report, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    static ssize_t (*put)(int, const void*, size_t);
    if (put == NULL) put = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
    if (file >= 0 && put(file, text, (size_t)snprintf(text, sizeof text, "%ld", now)) < 0) abort();
    close(file);
  }
  if (now != fail_at) return 0;
  if (fail_with > 0) errno = fail_with;
  return fail_with;
}
static int fails_on(const char* call, int file) {
  char link[64], path[4096];
  if (under[0] == '\0' || strcmp(call, call_name) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return fails(call, path);
}

#define REAL(type, name, ...)       \
  static type (*real)(__VA_ARGS__); \
  if (real == NULL) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                             \
  int name(const char* path, int flags, ...) {                 \
    REAL(int, name, const char*, int, ...);                    \
    va_list rest;                                              \
    va_start(rest, flags);                                     \
    const mode_t mode = va_arg(rest, mode_t);                  \
    va_end(rest);                                              \
    return fails("open", path) ? -1 : real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                   \
  int name(int folder, const char* path, int flags, ...) {             \
    REAL(int, name, int, const char*, int, ...);                       \
    va_list rest;                                                      \
    va_start(rest, flags);                                             \
    const mode_t mode = va_arg(rest, mode_t);                          \
    va_end(rest);                                                      \
    return fails("open", path) ? -1 : real(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

/* As code that is compiled with _FORTIFY_SOURCE calls them. */
#define OPEN_2(name, plain)                              \
  int name(const char* path, int flags) {                \
    REAL(int, plain, const char*, int, ...);             \
    return fails("open", path) ? -1 : real(path, flags); \
  }
OPEN_2(__open_2, open)
OPEN_2(__open64_2, open64)
ssize_t __read_chk(int file, void* bytes, size_t size, size_t room) {
  return size > room ? -1 : read(file, bytes, size);
}
ssize_t __pread_chk(int file, void* bytes, size_t size, off_t offset, size_t room) {
  return size > room ? -1 : pread(file, bytes, size, offset);
}
ssize_t __pread64_chk(int file, void* bytes, size_t size, off_t offset, size_t room) {
  return size > room ? -1 : pread(file, bytes, size, offset);
}

/* Of half the bytes, or not at all. */
#define TRANSFER(name, call, pointer, extra, ...)            \
  ssize_t name(int file, pointer bytes, size_t size extra) { \
    REAL(ssize_t, name, __VA_ARGS__);                        \
    const int fault = fails_on(call, file);                  \
    if (fault > 0) return -1;                                \
    if (fault == kShort && size > 1) size /= 2;              \
    return real(file, bytes, size OFFSET);                   \
  }
#define OFFSET
TRANSFER(read, "read", void*, , int, void*, size_t)
TRANSFER(write, "write", const void*, , int, const void*, size_t)
#undef OFFSET
#define OFFSET , offset
#define WITH_OFFSET , off_t offset
TRANSFER(pread, "read", void*, WITH_OFFSET, int, void*, size_t, off_t)
TRANSFER(pread64, "read", void*, WITH_OFFSET, int, void*, size_t, off_t)
TRANSFER(pwrite, "write", const void*, WITH_OFFSET, int, const void*, size_t, off_t)
TRANSFER(pwrite64, "write", const void*, WITH_OFFSET, int, const void*, size_t, off_t)

#define MAP(name)                                                                             \
  void* name(void* address, size_t size, int protection, int flags, int file, off_t offset) { \
    REAL(void*, name, void*, size_t, int, int, int, off_t);                                   \
    if (file >= 0 && fails_on("mmap", file)) return MAP_FAILED;                               \
    return real(address, size, protection, flags, file, offset);                              \
  }
MAP(mmap)
MAP(mmap64)

#define ON_FILE(name, call)                        \
  int name(int file) {                             \
    REAL(int, name, int);                          \
    return fails_on(call, file) ? -1 : real(file); \
  }
ON_FILE(fsync, "sync")
ON_FILE(fdatasync, "sync")

#define STAT(name, type)                                  \
  int name(int file, struct type* out) {                  \
    REAL(int, name, int, struct type*);                   \
    return fails_on("stat", file) ? -1 : real(file, out); \
  }
STAT(fstat, stat)
STAT(fstat64, stat64)

int ftruncate(int file, off_t size) {
  REAL(int, ftruncate, int, off_t);
  return fails_on("truncate", file) ? -1 : real(file, size);
}
int rename(const char* from, const char* to) {
  REAL(int, rename, const char*, const char*);
  return fails("rename", to) ? -1 : real(from, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  REAL(int, renameat, int, const char*, int, const char*);
  return fails("rename", to) ? -1 : real(from_folder, from, to_folder, to);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  REAL(int, linkat, int, const char*, int, const char*, int);
  return fails("rename", to) ? -1 : real(from_folder, from, to_folder, to, flags);
}
