#include "base/shared_library.h"

#include <dlfcn.h>

namespace mote {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status(Code::kFileNotFound, ::dlerror());
  return SharedLibrary{handle, name};
}

void* SharedLibrary::find(const char* symbol) const { return ::dlsym(handle, symbol); }

}  // namespace mote
