// A LoRA adapter: what a .mote-adapter file adds to the weights of the model that it was made for. docs/adapters.md
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/adapters.h"
#include "runner/model/model.h"

namespace mote {

// Read into memory whole, so that what becomes of its file does not matter. Thread safety: immutable.
class Adapter {
 public:
  // What tells the contents of one file from those of another.
  struct Identity {
    uint32_t description_crc32 = 0;
    uint32_t data_crc32 = 0;
    uint64_t file_bytes = 0;
    bool operator==(const Identity&) const = default;
  };

  // Reads a file and checks every size, offset and checksum, that the model is its base, and that its ops can add to
  // the weights. Errors: kFileNotFound, kFileUnreadable, kUnsupportedVersion, kOutOfMemory; kInvalidProgram naming the
  // field; kInvalidArgument for another base; kUnsupportedBackend if a backend reads the weights. Cost: reads the file.
  static Result<std::shared_ptr<const Adapter>> load(const Model& model, const std::string& path);
  // The same of a copy of bytes, which are called `name` in messages.
  static Result<std::shared_ptr<const Adapter>> of_bytes(const Model& model, const std::string& name,
                                                         std::span<const std::byte> bytes);

  const std::string& path() const { return path_; }
  std::string name() const;  // of the file, without folder and ending
  const Bound& bound() const { return *bound_; }
  const AdapterWeights& weights() const { return weights_; }
  const Identity& identity() const { return identity_; }
  uint64_t memory_bytes() const { return identity_.file_bytes; }

 private:
  friend class AdapterReader;
  Adapter() = default;

  std::string path_;
  std::shared_ptr<const Bound> bound_;
  AlignedMemory memory_;
  Identity identity_;
  AdapterWeights weights_;
};

// An adapter as a session mixes it in.
struct MixedAdapter {
  std::shared_ptr<const Adapter> adapter;
  float weight = 1.0f;

  bool is_same(const MixedAdapter& other) const {
    return adapter->identity() == other.adapter->identity() && weight == other.weight;
  }
};
using AdapterMix = std::vector<MixedAdapter>;

// Whether both add the same, in the same order.
bool is_same_mix(const AdapterMix& a, const AdapterMix& b);
// "style=0.5, tone"; "no adapter" for none.
std::string text_of(const AdapterMix& mix);

// Reads "FILE" or "FILE=WEIGHT". A file that is in memory already, because something uses it, is not read again.
// Errors: those of Adapter::load; kInvalidArgument for a weight that is no finite number.
Result<MixedAdapter> load_mixed(const Model& model, const std::string& text);
Result<AdapterMix> load_mix(const Model& model, const std::vector<std::string>& texts);
// The adapter of a file, read once for all who use it, unless the file was replaced. Errors: those of Adapter::load.
Result<std::shared_ptr<const Adapter>> shared_adapter(const Model& model, const std::string& path);

// Errors: kInvalidArgument for an adapter of another model, or a weight that is no finite number.
Status check_mix(const Model& model, const AdapterMix& mix);

}  // namespace mote
