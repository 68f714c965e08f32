#include "base/shared_library.h"
#include "base/windows.h"

namespace mote {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  // A name alone is looked for where programs and the system lie, never in the folder that the process is in.
  const bool is_path = name.find_first_of("/\\") != std::string::npos;
  const std::wstring wide = is_path ? windows::native_path(name) : windows::to_utf16(name).value_or(L"");
  const DWORD places =
      is_path ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  HMODULE handle = ::LoadLibraryExW(wide.c_str(), nullptr, places);
  if (handle == nullptr) return Status(Code::kFileNotFound, windows::last_message());
  return SharedLibrary{handle, name};
}

void* SharedLibrary::find(const char* symbol) const {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(handle), symbol));
}

}  // namespace mote
