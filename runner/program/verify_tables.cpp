#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "kernels/formats.h"
#include "kernels/tensor.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

constexpr int64_t kSegmentAlignment = 65536;
constexpr size_t kNumSegmentKinds = static_cast<size_t>(fb::SegmentKind::MAX) + 1;
constexpr int64_t kMaxFirstGapBytes = int64_t{64} << 20;
constexpr int64_t kMaxStateWidth = 1 << 20;  // heads, head_dim
constexpr uint32_t kMaxStates = 1 << 16;
constexpr uint32_t kMaxWeights = 1 << 16;
constexpr uint32_t kMaxGoldenSamples = 64;
constexpr uint32_t kMaxDelegates = 1 << 16;
constexpr int64_t kMaxDelegateWeights = 1 << 20;  // of all delegates
constexpr int64_t kMaxDelegateOps = 1 << 20;      // of all delegates

using Bytes = std::span<const std::byte>;

Status check_padding(const Path& path, Bytes gap) {
  const auto bad = std::find_if(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{0}; });
  if (bad != gap.end()) return invalid(path, "is preceded by padding that is not zero");
  return {};
}

Status check_segments_layout(const Path& file, Bytes bytes, size_t program_bytes, const fb::Program& program) {
  int64_t end = (Size(kHeaderBytes) + program_bytes).value();
  bool seen[kNumSegmentKinds] = {}, is_first = true;
  for (uint32_t i = 0; i < program.segments()->size(); ++i) {
    const fb::Segment& segment = *program.segments()->Get(i);
    const Path path{&file, "segments", i};
    const auto kind = static_cast<size_t>(segment.kind());
    if (kind >= std::size(seen)) return invalid(path, "kind = %zu: must be 0..%zu", kind, std::size(seen) - 1);
    if (seen[kind]) return invalid(path, "kind = %s: is in the file twice", fb::EnumNameSegmentKind(segment.kind()));
    seen[kind] = true;
    if (segment.file() != nullptr) continue;  // whose place and size add_weights_file compared
    const Size start = segment.offset();
    const Size stop = start + segment.bytes();
    if (!start.is_multiple_of(kSegmentAlignment)) {
      return invalid(path, "offset = %llu: must be a multiple of 65536",
                     static_cast<unsigned long long>(segment.offset()));
    }
    if (!stop.at_most(bytes.size()) || !Size(end).at_most(start)) {
      return invalid(path, "= %llu + %llu bytes: must start at %lld or later and end inside the file (%zu bytes)",
                     static_cast<unsigned long long>(segment.offset()),
                     static_cast<unsigned long long>(segment.bytes()), static_cast<long long>(end), bytes.size());
    }
    const int64_t gap = start.value() - end;
    if (gap > (is_first ? kMaxFirstGapBytes : kSegmentAlignment - 1)) {
      return invalid(path, "is preceded by a gap of %lld bytes", static_cast<long long>(gap));
    }
    MOTE_RETURN_IF_ERROR(check_padding(path, bytes.subspan(static_cast<size_t>(end), static_cast<size_t>(gap))));
    end = stop.value();
    is_first = false;
  }
  const Path path{&file, "segments", -1};
  if (!seen[0]) return invalid(path, "must have one of kind weights");
  if (is_first && bytes.size() - static_cast<size_t>(end) <= kMaxFirstGapBytes) {  // the weights' file has all of them
    MOTE_RETURN_IF_ERROR(check_padding(path, bytes.subspan(static_cast<size_t>(end))));
    return {};
  }
  if (end != static_cast<int64_t>(bytes.size())) {
    return invalid(path, "end at byte %lld: must end with the file (%zu bytes)", static_cast<long long>(end),
                   bytes.size());
  }
  return {};
}

Size bytes_of_segment(const fb::Program& program, fb::SegmentKind kind) {
  const fb::Segment* segment = find_segment(program, kind);
  return segment == nullptr ? 0 : segment->bytes();
}

// Bytes of a weight with this shape, dtype, number of bits and group; invalid on overflow.
Size weight_bytes(const fb::Weight& weight) {
  Size elements = 1;
  if (weight.bits() == 0) {
    for (const int64_t size : *weight.shape()) elements = elements * size;
    return elements * dtype_bytes(static_cast<DType>(weight.dtype()));
  }
  const auto& shape = *weight.shape();  // [N, K], or [E, N, K]: matrices padded to whole tiles each
  const Size matrices = shape.size() == 3 ? shape[0] : 1;
  const Size row_blocks = Size(shape[shape.size() - 2]).align_up(kTileRows).value() / kTileRows;
  const TileLayout layout = {weight.bits(), weight.group_size(), tile_scales(weight)};
  return matrices * row_blocks * layout.block_bytes(shape[shape.size() - 1]);
}

Status check_tiles(const Path& path, const fb::Weight& weight) {
  if (weight.codebook() != nullptr && weight.codebook()->size() != kCodebookSize) {
    return invalid(path, "codebook has %u values: must have %d", weight.codebook()->size(), kCodebookSize);
  }
  const TileScales scales = tile_scales(weight);
  const char* error = tile_error(weight.bits(), weight.group_size(), scales);
  if (error != nullptr) {
    return invalid(path, "bits = %d, group_size = %d, scale_columns = %d, low = %d: %s", weight.bits(),
                   weight.group_size(), weight.scale_columns(), static_cast<int>(weight.low()), error);
  }
  if (weight.dtype() != fb::DType::int8) {
    return invalid(path, "dtype = %s: multipliers of quantised weights must be int8",
                   fb::EnumNameDType(weight.dtype()));
  }
  const auto& shape = *weight.shape();
  const int64_t unit = column_unit(weight.group_size(), scales);
  if (shape.size() < 2 || shape.size() > 3 || shape[shape.size() - 1] % unit != 0) {
    return invalid(path, "shape: quantised weights must be [N, K] or [E, N, K] with K a multiple of %lld",
                   static_cast<long long>(unit));
  }
  return {};
}

Status check_weight_format(const Path& path, const fb::Weight& weight) {
  if (weight.dtype() > fb::DType::MAX)
    return invalid(path, "dtype = %d: must be 0..7", static_cast<int>(weight.dtype()));
  const auto& shape = *weight.shape();
  if (shape.size() > kMaxRank) return invalid(path, "shape has %u dimensions: must have at most 8", shape.size());
  MOTE_RETURN_IF_ERROR(check_aligned(Path{&path, "shape", -1}, shape));
  Size elements = 1;
  for (uint32_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0)
      return invalid(Path{&path, "shape", i}, "= %lld: must be 0..2^40", static_cast<long long>(shape[i]));
    elements = elements * std::max<int64_t>(shape[i], 1);
  }
  if (!elements.at_most(kMaxElements)) return invalid(path, "shape has more than 2^40 elements");
  if (weight.bits() == 0) {
    if (weight.group_size() != 0)
      return invalid(path, "group_size = %d: must be 0 for dense weights", weight.group_size());
    if (weight.scale_columns() != 0)
      return invalid(path, "scale_columns = %d: must be 0 for dense weights", weight.scale_columns());
    return {};
  }
  return check_tiles(path, weight);
}

Status check_weight(const Path& path, const fb::Weight& weight, Size segment_bytes) {
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "name", -1}, *weight.name(), kMaxLongNameBytes));
  MOTE_RETURN_IF_ERROR(check_weight_format(path, weight));
  const Size bytes = weight_bytes(weight);
  if (!bytes.valid() || !(bytes == Size(weight.bytes()))) {
    return invalid(path, "(%s) bytes = %llu: shape, dtype, bits and group_size need %lld", weight.name()->c_str(),
                   static_cast<unsigned long long>(weight.bytes()), static_cast<long long>(bytes.value()));
  }
  const Size offset = weight.offset();
  if (!offset.is_multiple_of(64)) {
    return invalid(path, "offset = %llu: must be a multiple of 64", static_cast<unsigned long long>(weight.offset()));
  }
  if (!(offset + bytes).at_most(segment_bytes)) {
    return invalid(path, "= %llu + %llu bytes: must lie in the weights segment (%lld bytes)",
                   static_cast<unsigned long long>(weight.offset()), static_cast<unsigned long long>(weight.bytes()),
                   static_cast<long long>(segment_bytes.value()));
  }
  return {};
}

Status check_range(const Path& path, const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(Path{&path, field, -1}, "= %lld: must be %lld..%lld", static_cast<long long>(value),
                 static_cast<long long>(low), static_cast<long long>(high));
}

Status check_kv_cache(const Path& path, const fb::State& state) {
  MOTE_RETURN_IF_ERROR(check_range(path, "num_heads", state.num_heads(), 1, kMaxStateWidth));
  MOTE_RETURN_IF_ERROR(check_range(path, "head_dim", state.head_dim(), 1, kMaxStateWidth));
  MOTE_RETURN_IF_ERROR(check_range(path, "value_head_dim", state.value_head_dim(), 0, kMaxStateWidth));
  MOTE_RETURN_IF_ERROR(check_range(path, "window", state.window(), 0, INT32_MAX));
  MOTE_RETURN_IF_ERROR(
      check_range(path, "num_sink_positions", state.num_sink_positions(), 0, state.window() == 0 ? 0 : 1 << 16));
  MOTE_RETURN_IF_ERROR(check_range(path, "stride", state.stride(), 1, state.window() == 0 ? 1 << 20 : 1));
  MOTE_RETURN_IF_ERROR(check_range(path, "shape.size", state.shape()->size(), 0, 0));
  return {};
}

Status check_recurrent(const Path& path, const fb::State& state) {
  const auto& shape = *state.shape();
  MOTE_RETURN_IF_ERROR(check_range(path, "shape.size", shape.size(), 1, kMaxRank));
  Size elements = 1;
  for (uint32_t i = 0; i < shape.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_range(Path{&path, "shape", i}, "size", shape[i], 1, kMaxElements));
    elements = elements * shape[i];
  }
  if (!elements.at_most(kMaxElements)) return invalid(path, "shape has more than 2^40 elements");
  return {};
}

Status check_states(const Path& file, const fb::Program& program) {
  const auto& states = *program.states();
  MOTE_RETURN_IF_ERROR(check_range(file, "states.size", states.size(), 0, kMaxStates));
  for (uint32_t i = 0; i < states.size(); ++i) {
    const Path path{&file, "states", i};
    MOTE_RETURN_IF_ERROR(check_text(Path{&path, "name", -1}, *states[i]->name(), kMaxNameBytes));
    MOTE_RETURN_IF_ERROR(check_aligned(Path{&path, "shape", -1}, *states[i]->shape()));
    switch (states[i]->kind()) {
      case fb::StateKind::kv_cache: MOTE_RETURN_IF_ERROR(check_kv_cache(path, *states[i])); break;
      case fb::StateKind::recurrent: MOTE_RETURN_IF_ERROR(check_recurrent(path, *states[i])); break;
      default: return invalid(path, "kind = %d: must be 0 or 1", static_cast<int>(states[i]->kind()));
    }
  }
  return {};
}

Status check_ids(const Path& path, const char* field, const flatbuffers::Vector<int32_t>& ids, int32_t vocab_size) {
  for (uint32_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return invalid(Path{&path, field, i}, "= %d: must be 0..%d, below vocab_size", ids[i], vocab_size - 1);
  }
  return {};
}

Status check_golden(const Path& path, const fb::GoldenSample& sample, int32_t vocab_size) {
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "text", -1}, *sample.text(), kMaxTextBytes));
  MOTE_RETURN_IF_ERROR(check_range(path, "prompt_ids.size", sample.prompt_ids()->size(), 1, kMaxTokens));
  const bool is_embedding = sample.method() != nullptr && text_of(*sample.method()) == kEmbed;
  if (sample.method() != nullptr && !is_embedding)
    return invalid(Path{&path, "method", -1}, "= %s: must be embed, or absent", sample.method()->c_str());
  MOTE_RETURN_IF_ERROR(check_range(path, "expected_ids.size", sample.expected_ids()->size(), is_embedding ? 0 : 1,
                                   is_embedding ? 0 : kMaxTokens));
  MOTE_RETURN_IF_ERROR(check_ids(path, "prompt_ids", *sample.prompt_ids(), vocab_size));
  MOTE_RETURN_IF_ERROR(check_ids(path, "expected_ids", *sample.expected_ids(), vocab_size));
  MOTE_RETURN_IF_ERROR(check_ids(path, "probe_ids", *sample.probe_ids(), is_embedding ? INT32_MAX : vocab_size));
  const Size num_rows = is_embedding ? Size(1) : Size(sample.expected_ids()->size());
  const Size expected = num_rows * sample.probe_ids()->size();
  if (!(expected == Size(sample.probe_logits()->size()))) {
    return invalid(path, "has %u probe_logits: must have %lld, one for each expected and probe id",
                   sample.probe_logits()->size(), static_cast<long long>(expected.value()));
  }
  for (uint32_t i = 0; i < sample.probe_logits()->size(); ++i) {
    if (!std::isfinite(sample.probe_logits()->Get(i)))
      return invalid(Path{&path, "probe_logits", i}, "is not a finite number");
  }
  if (!(sample.tolerance() >= 0.0f) || !std::isfinite(sample.tolerance())) {
    return invalid(path, "tolerance = %g: must be a finite number, 0 or more", static_cast<double>(sample.tolerance()));
  }
  return {};
}

Status check_provenance(const Path& file, const fb::Provenance& provenance) {
  const Path path{&file, "provenance", -1};
  const std::pair<const char*, const flatbuffers::String*> fields[] = {
      {"model_id", provenance.model_id()},
      {"revision", provenance.revision()},
      {"model_type", provenance.model_type()},
      {"recipe", provenance.recipe()},
      {"exporter_version", provenance.exporter_version()},
      {"torch_version", provenance.torch_version()},
      {"transformers_version", provenance.transformers_version()},
      {"license", provenance.license()}};
  for (const auto& [name, text] : fields) MOTE_RETURN_IF_ERROR(check_text(Path{&path, name, -1}, *text, kMaxTextBytes));
  return {};
}

Status check_figures(const Path& file, const fb::Check* check) {
  if (check == nullptr) return {};
  const Path path{&file, "check", -1};
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "mode", -1}, *check->mode(), kMaxTextBytes));
  const std::pair<const char*, float> figures[] = {{"median_relative_error", check->median_relative_error()},
                                                   {"max_relative_error", check->max_relative_error()},
                                                   {"tolerance", check->tolerance()},
                                                   {"top1_agreement", check->top1_agreement()}};
  for (const auto& [name, value] : figures) {
    if (!(value >= 0.0f) || !std::isfinite(value))
      return invalid(path, "%s = %g: must be a finite number, 0 or more", name, static_cast<double>(value));
  }
  return check_range(path, "num_positions", check->num_positions(), 0, INT32_MAX);
}

Status check_vocabulary(const Path& file, const fb::Program& program) {
  const int32_t vocab_size = program.vocab_size();
  MOTE_RETURN_IF_ERROR(check_range(file, "vocab_size", vocab_size, 1, INT32_MAX));
  MOTE_RETURN_IF_ERROR(check_range(file, "max_position_embeddings", program.max_position_embeddings(), 1, INT32_MAX));
  MOTE_RETURN_IF_ERROR(check_range(file, "bos_token_id", program.bos_token_id(), -1, vocab_size - 1));
  return check_ids(file, "eos_token_ids", *program.eos_token_ids(), vocab_size);
}

Status check_delegate_ops(const Path& path, const fb::Delegate& delegate) {
  const uint32_t num_ops = delegate.ops() == nullptr ? 0 : delegate.ops()->size();
  const uint32_t num_counts = delegate.op_counts() == nullptr ? 0 : delegate.op_counts()->size();
  MOTE_RETURN_IF_ERROR(check_range(path, "op_counts.size", num_counts, num_ops, num_ops));
  for (uint32_t i = 0; i < num_ops; ++i) {
    MOTE_RETURN_IF_ERROR(check_text(Path{&path, "ops", i}, *delegate.ops()->Get(i), kMaxNameBytes));
    const int32_t count = delegate.op_counts()->Get(i);
    if (count < 1) return invalid(Path{&path, "op_counts", i}, "= %d: must be 1..%d", count, INT32_MAX);
  }
  return {};
}

Status check_delegate(const Path& path, const fb::Delegate& delegate, Size segment_bytes, const fb::Program& program) {
  MOTE_RETURN_IF_ERROR(check_text(Path{&path, "backend", -1}, *delegate.backend(), kMaxNameBytes));
  const Size offset = delegate.offset();
  if (!offset.is_multiple_of(64) || !(offset + delegate.bytes()).at_most(segment_bytes)) {
    return invalid(path,
                   "= %llu + %llu bytes: must start at a multiple of 64 and lie in the delegates segment (%lld bytes)",
                   static_cast<unsigned long long>(delegate.offset()),
                   static_cast<unsigned long long>(delegate.bytes()), static_cast<long long>(segment_bytes.value()));
  }
  for (uint32_t i = 0; i < delegate.weights()->size(); ++i) {
    const int32_t weight = delegate.weights()->Get(i);
    if (weight >= 0 && static_cast<uint32_t>(weight) < program.weights()->size()) continue;
    return invalid(Path{&path, "weights", i}, "= %d: must be 0..%lld", weight,
                   static_cast<long long>(program.weights()->size()) - 1);
  }
  return check_delegate_ops(path, delegate);
}

Status check_delegates(const Path& file, const fb::Program& program) {
  if (program.delegates() == nullptr) return {};
  const auto& delegates = *program.delegates();
  MOTE_RETURN_IF_ERROR(check_range(file, "delegates.size", delegates.size(), 0, kMaxDelegates));
  const Size segment_bytes = bytes_of_segment(program, fb::SegmentKind::delegates);
  int64_t num_weights = 0;
  int64_t num_ops = 0;
  Size blob_bytes = 0;
  for (uint32_t i = 0; i < delegates.size(); ++i) {
    const Path path{&file, "delegates", i};
    num_weights += delegates[i]->weights()->size();
    MOTE_RETURN_IF_ERROR(check_range(path, "weights.size", delegates[i]->weights()->size(), 0, kMaxDelegateWeights));
    MOTE_RETURN_IF_ERROR(check_range(file, "delegates.weights.size", num_weights, 0, kMaxDelegateWeights));
    num_ops += delegates[i]->ops() == nullptr ? 0 : delegates[i]->ops()->size();
    MOTE_RETURN_IF_ERROR(check_range(file, "delegates.ops.size", num_ops, 0, kMaxDelegateOps));
    MOTE_RETURN_IF_ERROR(check_delegate(path, *delegates[i], segment_bytes, program));
    blob_bytes = blob_bytes + delegates[i]->bytes();
  }
  if (!blob_bytes.at_most(segment_bytes)) {  // many delegates with one large blob would take a backend very long
    return invalid(file, "delegates have %lld bytes together: must have at most those of their segment (%lld bytes)",
                   static_cast<long long>(blob_bytes.value()), static_cast<long long>(segment_bytes.value()));
  }
  return {};
}

Status check_chat_template(const Path& file, Bytes bytes, const fb::Program& program) {
  for (const fb::Segment* segment : *program.segments()) {
    if (segment->kind() != fb::SegmentKind::chat_template) continue;
    const Bytes text = bytes.subspan(static_cast<size_t>(segment->offset()), static_cast<size_t>(segment->bytes()));
    if (!is_valid_utf8({reinterpret_cast<const char*>(text.data()), text.size()})) {
      return invalid(Path{&file, "segments", -1}, "chat_template is not UTF-8");
    }
  }
  return {};
}

}  // namespace

Status verify_tables(const Path& file, const Mapped& mapped, const fb::Program& program) {
  MOTE_RETURN_IF_ERROR(check_segments_layout(file, mapped.file_bytes(), mapped.program_bytes().size(), program));
  MOTE_RETURN_IF_ERROR(check_chat_template(file, mapped.file_bytes(), program));
  const Size weights_bytes = bytes_of_segment(program, fb::SegmentKind::weights);
  MOTE_RETURN_IF_ERROR(check_range(file, "weights.size", program.weights()->size(), 0, kMaxWeights));
  for (uint32_t i = 0; i < program.weights()->size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_weight(Path{&file, "weights", i}, *program.weights()->Get(i), weights_bytes));
  }
  MOTE_RETURN_IF_ERROR(check_delegates(file, program));
  MOTE_RETURN_IF_ERROR(check_states(file, program));
  MOTE_RETURN_IF_ERROR(check_vocabulary(file, program));
  MOTE_RETURN_IF_ERROR(
      check_range(file, "golden_samples.size", program.golden_samples()->size(), 0, kMaxGoldenSamples));
  for (uint32_t i = 0; i < program.golden_samples()->size(); ++i) {
    MOTE_RETURN_IF_ERROR(
        check_golden(Path{&file, "golden_samples", i}, *program.golden_samples()->Get(i), program.vocab_size()));
  }
  MOTE_RETURN_IF_ERROR(check_provenance(file, *program.provenance()));
  MOTE_RETURN_IF_ERROR(check_figures(file, program.check()));
  if (program.embedding() != nullptr)
    MOTE_RETURN_IF_ERROR(check_text(Path{&file, "embedding", -1}, *program.embedding(), kMaxTextBytes));
  return check_text(Path{&file, "generation_config", -1}, *program.generation_config(), kMaxTextBytes);
}

}  // namespace mote
