// What there is of a file, with what it is a part of beside it, so that another process goes on with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/growing_file.h"
#include "base/status.h"

namespace mote::store {

// What is to be downloaded. Hashes in hexadecimal digits, "": not known.
struct Wanted {
  std::string path;  // where it goes
  std::string url;   // "": a file of the hub, known by its hash
  std::string sha256, blob_id;
  int64_t bytes = -1;  // -1: not known
};

// `path.part` and `path.part.json`. What is appended is hashed as it comes; what another process has left is hashed
// once more, since nothing else tells that it is still what was written.
class Part {
 public:
  // Opens what is there if it is a part of the same file, else begins anew. Errors, here and below: kFileUnwritable.
  static Result<Part> open(const Wanted& wanted);

  int64_t bytes() const { return file_.bytes() + static_cast<int64_t>(buffer_.size()); }
  int64_t total() const { return wanted_.bytes; }  // -1: not known
  bool is_complete() const { return total() >= 0 && bytes() == total(); }
  const std::string& etag() const { return etag_; }
  const Wanted& wanted() const { return wanted_; }

  // What the answer that the bytes come from says: a strong ETag or "", and the size of the whole file, -1: not told.
  Status note(const std::string& etag, int64_t total);
  Status append(std::span<const std::byte> bytes);
  Status flush();
  // Keeps the first bytes only.
  Status truncate(int64_t bytes);
  // Begins anew, as if no answer had come.
  Status restart();
  // The first bytes, as many as there are of `count`.
  Result<std::vector<std::byte>> first_bytes(size_t count);

  // Hashes some of what is not hashed yet; false: nothing is left. Cost: reads 32 MiB.
  Result<bool> hash_some();
  // Of all bytes. May be asked when nothing is left to hash and all is flushed.
  std::string sha256() const { return sha256_.hex(); }
  std::string blob_id() const { return blob_.hex(); }

  // Gives the file its name. What tells of the part goes with finish(), when the caller has noted where it came from.
  Status commit() { return file_.commit(wanted_.path); }
  void finish() const;
  // Deletes it.
  void drop();

 private:
  Part(Wanted wanted, std::string etag, int64_t first_total, GrowingFile file);
  std::string info_path() const;
  Status write_info() const;
  void begin_hashes();
  void hash(std::span<const std::byte> bytes);

  Wanted wanted_;
  std::string etag_;
  int64_t first_total_;  // before any answer
  GrowingFile file_;
  std::vector<std::byte> buffer_;  // not written yet
  int64_t num_hashed_ = 0;
  Sha256 sha256_;
  Sha1 blob_;  // begins with the total size, so it is of use only where that is known at the start
};

}  // namespace mote::store
