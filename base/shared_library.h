// Libraries that are looked for while the program runs. They stay open for as long as the process lives: drivers do not
// survive being unloaded.
#pragma once

#include <span>
#include <string>

#include "base/status.h"

namespace mote {

struct SharedLibrary {
  // The library at a path, or of a name that the system looks for. Errors: kFileNotFound with what the system says
  static Result<SharedLibrary> open(const std::string& name);
  // The first of the names that the system finds. Errors: kFileNotFound; the text is the names, separated by commas
  static Result<SharedLibrary> open_first(std::span<const char* const> names);

  // A function that it exports; nullptr: it has none of that name.
  void* find(const char* symbol) const;

  void* handle = nullptr;
  std::string name;  // that it was opened by
};

inline Result<SharedLibrary> SharedLibrary::open_first(std::span<const char* const> names) {
  std::string tried;
  for (const char* name : names) {
    Result<SharedLibrary> opened = open(name);
    if (opened.ok()) return opened;
    tried += (tried.empty() ? "" : ", ") + std::string(name);
  }
  return Status(Code::kFileNotFound, tried);
}

}  // namespace mote
