// A library that is looked for at run time.
#include <array>
#include <cstdlib>

#include "backends/xnnpack/library.h"
#include "base/shared_library.h"

namespace mote::xnnpack {
namespace {

constexpr const char* kVariable = "MOTE_XNNPACK_LIBRARY";
#if defined(__APPLE__)
constexpr std::array kNames = {"libXNNPACK.dylib"};
#else
constexpr std::array kNames = {"libXNNPACK.so", "libXNNPACK.so.0", "libexecutorch_backend_xnnpack.so"};
#endif

Result<SharedLibrary> open_library() {
  const char* path = std::getenv(kVariable);
  if (path != nullptr && *path != '\0') {
    Result<SharedLibrary> opened = SharedLibrary::open(path);
    MOTE_REQUIRE(opened.ok(), Code::kInvalidArgument, "%s = %s: cannot be loaded: %s", kVariable, path,
                 opened.status().message().c_str());
    return opened;
  }
  Result<SharedLibrary> opened = SharedLibrary::open_first(kNames);
  MOTE_REQUIRE(
      opened.ok(), Code::kInvalidArgument,
      "the XNNPACK library was not found (tried %s): set %s to the path of a shared library that exports its API",
      opened.status().message().c_str(), kVariable);
  return opened;
}

template <typename F>
void look_up(const SharedLibrary& library, const char* symbol, F& function, std::string* missing) {
  void* address = library.find(symbol);
  function = reinterpret_cast<F>(address);
  if (address == nullptr && missing != nullptr) *missing += (missing->empty() ? "" : ", ") + std::string(symbol);
}

}  // namespace

Result<Functions> find_functions() {
  MOTE_ASSIGN(const SharedLibrary opened, open_library());
  Functions found;
  found.library = opened.name;
  std::string missing;
#define X(name, parameters) look_up(opened, "xnn_" #name, found.api.name, &missing);
  MOTE_XNNPACK_FUNCTIONS(X)
#undef X
  look_up(opened, "pthreadpool_create", found.api.pthreadpool_create, &missing);
  look_up(opened, "pthreadpool_destroy", found.api.pthreadpool_destroy, &missing);
  look_up(opened, "pthreadpool_create_v2", found.api.pthreadpool_create_v2, nullptr);
  look_up(opened, "pthreadpool_release_executor_threads", found.api.pthreadpool_release_executor_threads, nullptr);
  MOTE_REQUIRE(missing.empty(), Code::kInvalidArgument,
               "%s: not a usable XNNPACK: it lacks %s; a version from March 2025 or later has them",
               opened.name.c_str(), missing.c_str());
  return found;
}

}  // namespace mote::xnnpack
