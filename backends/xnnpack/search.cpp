// A library that is looked for at run time.
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "backends/xnnpack/library.h"

namespace mote::xnnpack {
namespace {

constexpr const char* kVariable = "MOTE_XNNPACK_LIBRARY";
#if defined(__APPLE__)
constexpr std::array kNames = {"libXNNPACK.dylib"};
#else
constexpr std::array kNames = {"libXNNPACK.so", "libXNNPACK.so.0", "libexecutorch_backend_xnnpack.so"};
#endif

struct Opened {
  void* handle = nullptr;
  std::string name;
};

Result<Opened> open_library() {
  const char* path = std::getenv(kVariable);
  if (path != nullptr && *path != '\0') {
    if (void* handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL)) return Opened{handle, path};
    return Status(Code::kInvalidArgument, format("%s = %s: cannot be loaded: %s", kVariable, path, ::dlerror()));
  }
  std::string tried;
  for (const char* name : kNames) {
    if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return Opened{handle, name};
    tried += tried.empty() ? name : std::string(", ") + name;
  }
  return Status(
      Code::kInvalidArgument,
      format(
          "the XNNPACK library was not found (tried %s): set %s to the path of a shared library that exports its API",
          tried.c_str(), kVariable));
}

template <typename F>
void look_up(void* handle, const char* symbol, F& function, std::string* missing) {
  void* address = ::dlsym(handle, symbol);
  function = reinterpret_cast<F>(address);
  if (address == nullptr && missing != nullptr) *missing += (missing->empty() ? "" : ", ") + std::string(symbol);
}

}  // namespace

Result<Functions> find_functions() {
  MOTE_ASSIGN(const Opened opened, open_library());
  Functions found;
  found.library = opened.name;
  std::string missing;
#define X(name, parameters) look_up(opened.handle, "xnn_" #name, found.api.name, &missing);
  MOTE_XNNPACK_FUNCTIONS(X)
#undef X
  look_up(opened.handle, "pthreadpool_create", found.api.pthreadpool_create, &missing);
  look_up(opened.handle, "pthreadpool_destroy", found.api.pthreadpool_destroy, &missing);
  look_up(opened.handle, "pthreadpool_create_v2", found.api.pthreadpool_create_v2, nullptr);
  look_up(opened.handle, "pthreadpool_release_executor_threads", found.api.pthreadpool_release_executor_threads,
          nullptr);
  MOTE_REQUIRE(missing.empty(), Code::kInvalidArgument,
               "%s: not a usable XNNPACK: it lacks %s; a version from March 2025 or later has them",
               opened.name.c_str(), missing.c_str());
  return found;
}

}  // namespace mote::xnnpack
