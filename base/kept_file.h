// Small files that a process keeps beside a model for those that come after it. What is in one may be believed to have
// been written by the model's owner or this user, but not to be right: others may have damaged it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/open_file.h"
#include "base/status.h"

namespace mote {

// Errors: kFileUnreadable if somebody may have written the file who is neither this user nor `also_trusted`.
Status require_trusted_owner(const std::string& path, const FileInfo& info, std::optional<uint32_t> also_trusted);

// Thread safety: immutable.
struct KeptFile {
  std::string path;                           // empty: nothing is kept
  std::string identity;                       // what the content was found for: another one is not read
  std::optional<uint32_t> also_trusted = {};  // the owner of the model

  // What `write` was given, at most max_bytes. Errors: kFileNotFound; kFileUnreadable, also for a symbolic link and a
  // file that others can write to; kFileChanged for another identity or a damaged file.
  Result<std::vector<std::byte>> read(uint64_t max_bytes) const;
  // Appears whole or not at all. Errors: kFileUnwritable.
  Status write(std::span<const std::byte> bytes) const;
};

}  // namespace mote
