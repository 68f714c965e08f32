// Reads .mote-adapter files, which may come from anybody.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "adapter_generated.h"
#include "base/crc32.h"
#include "base/open_file.h"
#include "base/size.h"
#include "runner/program/source.h"
#include "runner/program/validation.h"
#include "runner/session/adapters/adapter.h"

namespace mote {

struct AdapterHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t description_bytes;
  uint64_t file_bytes;
  uint32_t description_crc32;
  uint8_t reserved[28];
};
static_assert(sizeof(AdapterHeader) == 64);

namespace {

constexpr char kAdapterMagic[8] = {'M', 'O', 'T', 'A', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t kAdapterVersion = 1;
constexpr int64_t kDataAlignment = 64;
constexpr int64_t kMaxAdapterDescriptionBytes = int64_t{64} << 20;
constexpr int64_t kMaxFileBytes = int64_t{1} << 40;
constexpr int64_t kMaxAdapterRank = 1 << 16;
constexpr uint32_t kMaxParts = 1 << 18;

// What reads a weight of the model.
struct WeightUse {
  bool is_linear = false;
  std::string obstacle{};  // why no adapter can change it; empty: nothing
};

// Whether an input has one row for each token of a call, or one for its last.
bool has_row_per_token(const fb::Value& value) {
  const auto& shape = *value.shape();
  bool has_tokens = false;
  for (uint32_t i = 0; i + 1 < shape.size(); ++i) {
    const fb::Dim& dim = *shape.Get(i);
    if (dim.tokens() == 0 && dim.constant() == 1) continue;
    if (has_tokens || dim.tokens() != 1 || dim.constant() != 0) return false;
    has_tokens = true;
  }
  return true;
}

bool is_linear(std::string_view op) { return op == "mote.linear" || op == "mote.gated_linear"; }

// By index into the table of weights.
std::unordered_map<int32_t, WeightUse> weight_uses(const Bound& bound) {
  std::unordered_map<int32_t, WeightUse> uses;
  for (uint32_t m = 0; m < bound.num_methods(); ++m) {
    const fb::Method& method = bound.method(m);
    const auto value = [&](int32_t index) { return method.values()->Get(static_cast<uint32_t>(index)); };
    for (const fb::Instruction* instruction : *method.instructions()) {
      const std::string_view op = text_of(*instruction->op());
      for (uint32_t i = 0; i < instruction->inputs()->size(); ++i) {
        const int32_t input = instruction->inputs()->Get(i);
        if (input < 0 || value(input)->kind() != fb::ValueKind::weight) continue;
        WeightUse& use = uses[value(input)->weight()];
        if (is_linear(op) && i == 1) {
          use.is_linear = true;
          if (!has_row_per_token(*value(instruction->inputs()->Get(0))))
            use.obstacle = "its input has several rows a token";
        } else if (op != "mote.embedding") {
          use.obstacle = std::string(op) + " reads it too";
        }
      }
    }
  }
  return uses;
}

// Overlapping rows would let a small file ask for much work.
using Rows = std::map<int64_t, int64_t>;  // first -> end
bool take_rows(Rows& taken, int64_t first, int64_t end) {
  const auto after = taken.lower_bound(first);
  if (after != taken.end() && after->first < end) return false;
  if (after != taken.begin() && std::prev(after)->second > first) return false;
  taken.emplace(first, end);
  return true;
}

}  // namespace

class AdapterReader {
 public:
  AdapterReader(const Model& model, const std::string& path)
      : model_(model), path_(path), file_{nullptr, path_.c_str(), -1}, adapter_(new Adapter()) {}

  // take: fills memory
  template <typename Take>
  Result<std::shared_ptr<const Adapter>> read(const Take& take) {
    MOTE_RETURN_IF_ERROR(check_backend());
    MOTE_RETURN_IF_ERROR(take(*this));
    MOTE_RETURN_IF_ERROR(read_header());
    MOTE_RETURN_IF_ERROR(read_description());
    MOTE_RETURN_IF_ERROR(check_base());
    MOTE_RETURN_IF_ERROR(find_data());
    MOTE_RETURN_IF_ERROR(read_parts());
    adapter_->path_ = path_;
    adapter_->bound_ = model_.bound();
    return std::shared_ptr<const Adapter>(std::move(adapter_));
  }

  Status take_file() {
    MOTE_ASSIGN(const OpenedFile opened, open_regular_file(path_));
    MOTE_RETURN_IF_ERROR(check_size(opened.info.bytes));
    const FilePart file{path_, opened.descriptor.get()};
    AdapterHeader start{};
    MOTE_RETURN_IF_ERROR(read_exactly(file, 0, std::as_writable_bytes(std::span(&start, 1))));
    MOTE_RETURN_IF_ERROR(check_magic(start));
    MOTE_RETURN_IF_ERROR(allocate(static_cast<size_t>(opened.info.bytes)));
    return read_exactly(file, 0, {adapter_->memory_.get(), bytes_});
  }

  Status take_bytes(std::span<const std::byte> bytes) {
    MOTE_RETURN_IF_ERROR(check_size(static_cast<int64_t>(bytes.size())));
    MOTE_RETURN_IF_ERROR(allocate(bytes.size()));
    std::memcpy(adapter_->memory_.get(), bytes.data(), bytes.size());
    return {};
  }

 private:
  Status check_size(int64_t bytes) const {
    if (bytes < static_cast<int64_t>(sizeof(AdapterHeader)))
      return invalid(file_, "the file has %lld bytes: a .mote-adapter file starts with a header of 64",
                     static_cast<long long>(bytes));
    if (bytes > kMaxFileBytes)
      return invalid(file_, "the file has %lld bytes: must be at most 2^40", static_cast<long long>(bytes));
    return {};
  }

  Status check_magic(const AdapterHeader& header) const {
    if (std::memcmp(header.magic, kAdapterMagic, sizeof kAdapterMagic) == 0) return {};
    return invalid(file_, "is no .mote-adapter file: `mote adapter` makes one of a PEFT folder");
  }

  Status allocate(size_t bytes) {
    adapter_->memory_ = allocate_aligned(bytes);
    MOTE_REQUIRE(adapter_->memory_ != nullptr, Code::kOutOfMemory, "%s: no memory for %zu bytes", path_.c_str(), bytes);
    bytes_ = bytes;
    return {};
  }

  Status check_backend() const {
    const Bound& bound = *model_.bound();
    MOTE_REQUIRE(bound.backends().empty(), Code::kUnsupportedBackend,
                 "%s: adapters change weights that the backends of target %s read themselves: load %s for the backend "
                 "cpu",
                 path_.c_str(), std::string(bound.target()).c_str(), model_.path().c_str());
    return {};
  }

  std::span<const std::byte> bytes() const { return {adapter_->memory_.get(), bytes_}; }

  Status read_header() {
    std::memcpy(&header_, bytes().data(), sizeof header_);
    MOTE_RETURN_IF_ERROR(check_magic(header_));
    MOTE_REQUIRE(header_.version == kAdapterVersion, Code::kUnsupportedVersion,
                 "%s: version = %u: this runner reads version %u; make the adapter again or use another runner",
                 path_.c_str(), header_.version, kAdapterVersion);
    if (header_.header_bytes != sizeof(AdapterHeader))
      return invalid(file_, "header_bytes = %u: must be 64", header_.header_bytes);
    if (header_.file_bytes != bytes_)
      return invalid(file_, "file_bytes = %llu: the file has %zu bytes, so it was truncated or appended to",
                     static_cast<unsigned long long>(header_.file_bytes), bytes_);
    const Size end = Size(sizeof(AdapterHeader)) + header_.description_bytes;
    if (header_.description_bytes < 16 || !Size(header_.description_bytes).at_most(kMaxAdapterDescriptionBytes) ||
        !end.at_most(bytes_))
      return invalid(file_, "description_bytes = %llu: must be 16..%lld and end inside the file",
                     static_cast<unsigned long long>(header_.description_bytes),
                     static_cast<long long>(kMaxAdapterDescriptionBytes));
    if (std::ranges::any_of(header_.reserved, [](uint8_t byte) { return byte != 0; }))
      return invalid(file_, "header.reserved: must be zero");
    return {};
  }

  Status read_description() {
    const auto description = bytes().subspan(sizeof(AdapterHeader), static_cast<size_t>(header_.description_bytes));
    if (const uint32_t checksum = crc32(description); checksum != header_.description_crc32)
      return invalid(file_, "description_crc32 = %08x: it has checksum %08x, so the file is damaged",
                     header_.description_crc32, checksum);
    const auto* buffer = reinterpret_cast<const uint8_t*>(description.data());
    flatbuffers::Verifier verifier(buffer, description.size(), 8, kMaxParts + 16, true);
    if (!fb::VerifyAdapterBuffer(verifier))
      return invalid(file_, "the description is not a well-formed flatbuffer \"%s\"", fb::AdapterIdentifier());
    description_ = fb::GetAdapter(buffer);
    return {};
  }

  Status check_base() const {
    const fb::AdapterBase& base = *description_->base();
    MOTE_RETURN_IF_ERROR(check_text(Path{&file_, "base.model_id", -1}, *base.model_id(), kMaxLongNameBytes));
    for (const fb::Segment* segment : *model_.program().segments()) {
      if (segment->kind() != fb::SegmentKind::weights) continue;
      MOTE_REQUIRE(
          segment->bytes() == base.weights_bytes() && segment->crc32() == base.weights_crc32(), Code::kInvalidArgument,
          "%s: base = weights %08x of %.100s: %s has weights %08x; make the adapter for it with `mote adapter FOLDER "
          "--base %s`",
          path_.c_str(), base.weights_crc32(), base.model_id()->c_str(), model_.path().c_str(), segment->crc32(),
          model_.path().c_str());
    }
    return {};
  }

  Status find_data() {
    const Size start = (Size(sizeof(AdapterHeader)) + header_.description_bytes).align_up(kDataAlignment);
    if (!(start + description_->data_bytes() == Size(bytes_)))
      return invalid(file_, "data_bytes = %llu: the file has %lld behind the description",
                     static_cast<unsigned long long>(description_->data_bytes()),
                     static_cast<long long>(static_cast<int64_t>(bytes_) - start.value()));
    data_ = bytes().subspan(static_cast<size_t>(start.value()));
    if (const uint32_t checksum = crc32(data_); checksum != description_->data_crc32())
      return invalid(file_, "data_crc32 = %08x: the data has checksum %08x, so the file is damaged",
                     description_->data_crc32(), checksum);
    adapter_->identity_ = {header_.description_crc32, description_->data_crc32(), bytes_};
    return {};
  }

  Status read_parts() {
    const std::unordered_map<int32_t, WeightUse> uses = weight_uses(*model_.bound());
    const auto& weights = *model_.program().weights();
    std::unordered_multimap<std::string_view, uint32_t> by_name;
    for (uint32_t i = 0; i < weights.size(); ++i) by_name.emplace(text_of(*weights.Get(i)->name()), i);
    const auto& parts = *description_->parts();
    if (parts.size() == 0 || parts.size() > kMaxParts)
      return invalid(file_, "has %u parts: must have 1..%u", parts.size(), kMaxParts);
    std::unordered_map<uint32_t, Rows> taken;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      const Path path{&file_, "parts", i};
      const fb::AdapterPart& part = *parts.Get(i);
      MOTE_RETURN_IF_ERROR(check_text(Path{&path, "origin", -1}, *part.origin(), kMaxNameBytes));
      MOTE_RETURN_IF_ERROR(check_text(Path{&path, "weight", -1}, *part.weight(), kMaxLongNameBytes));
      bool is_used = false;
      const auto [begin, end] = by_name.equal_range(text_of(*part.weight()));
      for (auto found = begin; found != end; ++found) {
        const auto use = uses.find(static_cast<int32_t>(found->second));
        if (use == uses.end() || !use->second.is_linear) continue;
        is_used = true;
        if (!use->second.obstacle.empty())
          return invalid(path, "(%s): weight %.200s cannot be changed: %s", part.origin()->c_str(),
                         part.weight()->c_str(), use->second.obstacle.c_str());
        MOTE_RETURN_IF_ERROR(add(path, part, found->second, taken[found->second]));
      }
      if (!is_used)
        return invalid(path, "(%s): weight %.200s: must be one that a linear of %s multiplies by",
                       part.origin()->c_str(), part.weight()->c_str(), model_.path().c_str());
    }
    return {};
  }

  Status add(const Path& path, const fb::AdapterPart& part, uint32_t index, Rows& taken) {
    const fb::Weight& weight = *model_.program().weights()->Get(index);
    const int64_t rows = weight.shape()->Get(0), columns = weight.shape()->Get(1);
    const Size end = Size(part.first_row()) + part.rows();
    if (part.rows() < 1 || !end.at_most(rows))
      return invalid(path, "(%s): rows %lld + %lld: must be at least one and within the weight's %lld",
                     part.origin()->c_str(), static_cast<long long>(part.first_row()),
                     static_cast<long long>(part.rows()), static_cast<long long>(rows));
    if (part.columns() != columns)
      return invalid(path, "(%s): columns = %lld: must be %lld, as the weight", part.origin()->c_str(),
                     static_cast<long long>(part.columns()), static_cast<long long>(columns));
    if (!take_rows(taken, part.first_row(), end.value()))
      return invalid(path, "(%s): rows %lld..%lld: another part has some of them", part.origin()->c_str(),
                     static_cast<long long>(part.first_row()), static_cast<long long>(end.value() - 1));
    if (part.rank() < 1 || part.rank() > kMaxAdapterRank)
      return invalid(path, "(%s): rank = %lld: must be 1..%lld", part.origin()->c_str(),
                     static_cast<long long>(part.rank()), static_cast<long long>(kMaxAdapterRank));
    if (!std::isfinite(part.scale())) return invalid(path, "(%s): scale: must be finite", part.origin()->c_str());
    if (part.dtype() > 2)
      return invalid(path, "(%s): dtype = %d: must be 0 (float32), 1 (float16) or 2 (bfloat16)", part.origin()->c_str(),
                     part.dtype());
    LowRank matrices;
    matrices.dtype = static_cast<DType>(part.dtype());
    matrices.rank = part.rank();
    matrices.columns = columns;
    matrices.first_row = part.first_row();
    matrices.rows = part.rows();
    matrices.scale = part.scale();
    const Size element = dtype_bytes(matrices.dtype), rank = part.rank();
    MOTE_ASSIGN(matrices.a, find(path, "a_offset", part.a_offset(), element * rank * columns));
    MOTE_ASSIGN(matrices.b, find(path, "b_offset", part.b_offset(), element * rank * part.rows()));
    if (part.gains_offset() != -1) {
      MOTE_ASSIGN(const std::byte* gains, find(path, "gains_offset", part.gains_offset(), Size(4) * part.rows()));
      matrices.gains = reinterpret_cast<const float*>(gains);
    }
    return adapter_->weights_.add(model_.bound()->verified().weight_tensor(index).data, matrices);
  }

  Result<const std::byte*> find(const Path& path, const char* name, Size offset, Size length) const {
    if (!offset.is_multiple_of(kDataAlignment) || !(offset + length).at_most(data_.size()))
      return invalid(Path{&path, name, -1}, "= %lld: must be a multiple of 64, with its %lld bytes in the data's %zu",
                     static_cast<long long>(offset.value()), static_cast<long long>(length.value()), data_.size());
    return data_.data() + offset.value();
  }

  const Model& model_;
  const std::string path_;
  const Path file_;
  std::unique_ptr<Adapter> adapter_;
  size_t bytes_ = 0;
  AdapterHeader header_{};
  const fb::Adapter* description_ = nullptr;
  std::span<const std::byte> data_;
};

Result<std::shared_ptr<const Adapter>> Adapter::load(const Model& model, const std::string& path) try {
  return AdapterReader(model, path).read([](AdapterReader& reader) { return reader.take_file(); });
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, path + ": no memory to read it"); }

Result<std::shared_ptr<const Adapter>> Adapter::of_bytes(const Model& model, const std::string& name,
                                                         std::span<const std::byte> bytes) try {
  return AdapterReader(model, name).read([bytes](AdapterReader& reader) { return reader.take_bytes(bytes); });
} catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, name + ": no memory to read it"); }

}  // namespace mote
