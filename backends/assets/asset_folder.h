// The folder beside a file that a reference names.
#pragma once

#include <string>

#include "backends/assets/reference.h"
#include "runner/program/delegate.h"

namespace mote::assets {

// Thread safety: immutable.
class AssetFolder {
 public:
  // Errors: kFileNotFound where it is not beside the file; kFileUnreadable where the file has no path, or the folder or
  // something in it is a link or no file.
  static Result<AssetFolder> find(const DelegateSource& source, const Reference& reference, const AssetKind& kind);

  const std::string& path() const { return path_; }
  // Tells this version of its files from others, as far as the system does.
  const std::string& version() const { return version_; }
  // Reads all that the SHA-256 is taken of. Errors: kFileChanged for another asset; kFileUnreadable.
  Status check_content(const Reference& reference, const Progress& progress) const;

 private:
  std::string place_, path_, version_;
  const AssetKind* kind_ = nullptr;
};

}  // namespace mote::assets
