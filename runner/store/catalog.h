// What is in the store: `models/org/name/file.mote`, with `file.mote.json` that says where it came from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_lock.h"
#include "base/status.h"
#include "runner/store/names.h"

namespace mote::store {

// Where a file of the store came from.
struct Manifest {
  std::string repo, revision;  // as they were asked for; revision "": the default branch
  std::string commit;          // of an URL its strong ETag, "" if it has none
  std::string file;            // its path in the repository; of an export its name in the store
  std::string source;          // "download" or "export"
  std::string sha256{};
  int64_t bytes = 0;
  std::string recipe{}, model_type{};
  std::string license{};    // the hub's identifier, "" if it has none
  std::string pulled_at{};  // ISO 8601, UTC
  std::string url{};        // "": from the hub

  std::string json() const;
};

// A whole file of the store, or the part of one that a download goes on with.
struct Entry {
  Name name;  // its tag: the file's name without .mote
  std::string path;
  int64_t bytes = 0;
  bool is_whole = true;
  int64_t total_bytes = 0;           // of the whole file; 0: not known
  std::optional<Manifest> manifest;  // nothing: somebody else put the file there, or only a part has come
  int64_t last_used_s = 0;           // since 1970; of a part when it was last written
};

// The folder of all that is kept for the user: MOTE_HOME, or one below the system's folder of caches. "": there is
// none.
std::string default_root();

// A folder of models. Thread safety: const, whatever other processes do.
class Store {
 public:
  // root: a folder, which is made when it is first needed
  explicit Store(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::string models() const { return root_ + "/models"; }
  // Where the files of a model are, or will be.
  std::string folder(const Name& name) const;

  // The files of a model, or of all: whole ones by path, then parts.
  std::vector<Entry> entries(const std::optional<Name>& name = std::nullopt) const;
  // The entries that a text means, parts included: without a tag all of the model. Errors: kFileNotFound with the
  // closest name, kInvalidArgument if it can be no name.
  Result<std::vector<Entry>> meant(std::string_view text) const;
  // The whole file that a name means, which is noted as used now. Errors: those of meant; kFileNotFound if only a part
  // has come; kInvalidArgument if it may be several, naming them.
  Result<Entry> find(std::string_view text) const;

  // Takes the lock of a model, which keeps others from changing it. Nothing: another holder has it.
  Result<std::optional<FileLock>> try_lock(const Name& name) const;
  // Deletes a file with its manifest and the folders that are then empty. Errors: kInvalidState while it is downloaded
  // to; kFileUnwritable.
  Status remove(const Entry& entry) const;
  // Deletes whole files, those first that were used longest ago, until they and the parts take at most max_bytes. What
  // is downloaded to or open stays. Returns what was deleted.
  std::vector<Entry> evict(int64_t max_bytes) const;

 private:
  Status remove_locked(const Entry& entry) const;

  std::string root_;
};

// Nothing: there is no whole one beside the file.
std::optional<Manifest> read_manifest(const std::string& path);
// Whole or not at all.
Status write_manifest(const std::string& path, const Manifest& manifest);
// "": it cannot be read, or is longer than a manifest is.
std::string read_text(const std::string& path);

inline constexpr std::string_view kPart = ".part";
inline constexpr std::string_view kManifest = ".json";
inline constexpr size_t kMaxManifestDepth = 8;
// "" where there is none.
std::string environment_variable(const char* name);

}  // namespace mote::store
