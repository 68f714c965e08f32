// What the hub answers about a repository.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::store {

// A file of a repository. Its content has `sha256` or, where that is "", `blob_id`, git's hash of it.
struct HubFile {
  std::string path;
  int64_t bytes = -1;  // -1: not told
  std::string sha256, blob_id;
};

// A repository at one commit.
struct Listing {
  std::string commit;
  std::string license;         // the hub's identifier, "" if it has none
  std::vector<HubFile> files;  // its .mote files, by path; those whose paths would leave their folder are left out
};

// Errors: kFileUnreadable naming the repository: it is no listing.
Result<Listing> parse_listing(std::string_view json, const std::string& repo);
// The names of models that a search has found; empty if it is no answer to a search.
std::vector<std::string> parse_search(std::string_view json);

}  // namespace mote::store
