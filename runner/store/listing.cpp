#include "runner/store/listing.h"

#include <algorithm>

#include "base/json.h"
#include "runner/store/names.h"

namespace mote::store {
namespace {

constexpr size_t kMaxListingDepth = 64;
constexpr double kMostBytes = 1e15;

// Reads members of an object; of what is none nothing.
class Members {
 public:
  explicit Members(const JsonTree* object) : object_(object) {}
  const JsonTree* find(std::string_view name) const {
    return object_ != nullptr && object_->kind == JsonTree::Kind::kObject ? object_->find(name) : nullptr;
  }
  std::string text(std::string_view name) const {
    const JsonTree* found = find(name);
    return found != nullptr && found->kind == JsonTree::Kind::kString ? found->text : "";
  }
  std::string digits(std::string_view name, size_t count) const {
    std::string found = text(name);
    const bool is_hash = found.size() == count && found.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hash ? found : "";
  }
  int64_t bytes(std::string_view name) const {
    const JsonTree* found = find(name);
    if (found == nullptr || found->kind != JsonTree::Kind::kInteger) return -1;
    return found->number >= 0 && found->number <= kMostBytes ? static_cast<int64_t>(found->number) : -1;
  }

 private:
  const JsonTree* object_;
};

HubFile file_of(const JsonTree& sibling) {
  const Members members(&sibling);
  const Members lfs(members.find("lfs"));
  HubFile file{members.text("rfilename"), lfs.bytes("size"), lfs.digits("sha256", 64), members.digits("blobId", 40)};
  if (file.bytes < 0) file.bytes = members.bytes("size");
  return file;
}

}  // namespace

Result<Listing> parse_listing(std::string_view json, const std::string& repo) {
  const std::optional<JsonTree> tree = parse_json_tree(json, kMaxListingDepth);
  const Members members(tree ? &*tree : nullptr);
  const JsonTree* siblings = members.find("siblings");
  MOTE_REQUIRE(siblings != nullptr && siblings->kind == JsonTree::Kind::kArray, Code::kFileUnreadable,
               "%s: the hub's answer is no list of files", repo.c_str());
  Listing listing{members.text("sha"), Members(members.find("cardData")).text("license"), {}};
  for (const JsonTree& sibling : siblings->children) {
    HubFile file = file_of(sibling);
    if (file.path.ends_with(".mote") && is_safe(file.path)) listing.files.push_back(std::move(file));
  }
  std::ranges::stable_sort(listing.files, {}, &HubFile::path);
  const auto repeated = std::ranges::unique(listing.files, {}, &HubFile::path);
  listing.files.erase(repeated.begin(), repeated.end());
  return listing;
}

std::vector<std::string> parse_search(std::string_view json) {
  const std::optional<JsonTree> tree = parse_json_tree(json, kMaxListingDepth);
  std::vector<std::string> names;
  if (!tree || tree->kind != JsonTree::Kind::kArray) return names;
  for (const JsonTree& found : tree->children) {
    if (std::string id = Members(&found).text("id"); parse_name(id)) names.push_back(std::move(id));
  }
  return names;
}

}  // namespace mote::store
