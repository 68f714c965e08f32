#include "kernels/ops/linear/activations.h"

#include <algorithm>

#include "kernels/support/rows.h"

namespace mote {

namespace {

struct Place {
  int64_t first;  // first place of its block
  int count;      // places in its block
  int64_t block;
};

Place place_of(const RowOrder* order, int64_t row, int64_t count) {
  if (order == nullptr) {
    const int64_t block = row / kTokenBlock, first = block * kTokenBlock;
    return {first, static_cast<int>(std::min<int64_t>(kTokenBlock, count - first)), block};
  }
  const int32_t block = order->block_of[row];
  return {order->first[block], order->first[block + 1] - order->first[block], block};
}

// Reads rows of any strides, normalises them if there is a norm, and rotates them if the form says so.
struct Source {
  const RowKernels& kernels;
  bool is_rotated;
  const Tensor& x;
  const FusedNorm& norm;
  const RowOrder* order;

  bool is_plain() const { return !norm.present && !is_rotated && order == nullptr && x.is_contiguous(); }

  const float* read(int64_t place, float* buffer) const {
    const float* row = read_row(x, order == nullptr || order->rows == nullptr ? place : order->rows[place], buffer);
    if (norm.present) {
      kernels.rms_norm(row, row_length(x), norm.eps, norm.weight, norm.offset, buffer);
      row = buffer;
    }
    if (!is_rotated) return row;
    kernels.rotate(row, row_length(x), buffer);
    return buffer;
  }
};

int64_t groups_of(const Matrix& weight) { return weight.columns / weight.group_size; }

// Bytes of a row of codes.
int64_t codes_pitch(const ActivationForm& form, const Matrix& weight) {
  if (form.packing != nullptr) return form.packing->row_bytes(weight.columns);
  const int64_t unit = columns_together(form.layout);
  return (weight.columns + unit - 1) / unit * unit;
}

// Row at which a block's packed codes begin: each block before it may be rounded up by rows_together - 1 rows.
int64_t packed_row(const CodePacking& packing, int64_t first, int64_t block) {
  return first + (packing.rows_together - 1) * block;
}

// body(place, row, thread) for every row, in parallel.
template <typename Body>
void for_each_row(const Source& source, int64_t count, int64_t width, Scratch& scratch, ThreadPool& threads,
                  const Body& body) {
  const auto pitch = static_cast<int64_t>(array_bytes<float>(width) / sizeof(float));
  float* buffers = scratch.take<float>(pitch * threads.num_threads());
  threads.parallel_for(count, row_grain(width), [&](int64_t begin, int64_t end, int thread) {
    for (int64_t place = begin; place < end; ++place) body(place, source.read(place, buffers + thread * pitch), thread);
  });
}

// What belongs to rows of codes in every layout.
struct CodeRows {
  float* scales;
  int32_t* zeros;
  int32_t* sums;
  CodeBlock* blocks;

  CodeRows(const Activations& result, Scratch& scratch)
      : scales(scratch.take<float>(result.count)),
        zeros(scratch.take<int32_t>(result.count)),
        sums(scratch.take<int32_t>(result.count)),
        blocks(scratch.take<CodeBlock>(result.num_blocks)) {}

  void add(int64_t row, const Place& place, RowCodes made, const int8_t* codes, const int32_t* offsets) const {
    scales[row] = made.scale;
    zeros[row] = made.zero;
    sums[row] = made.sum;
    if (row == place.first) blocks[place.block] = {codes, offsets, scales + row, zeros + row, sums + row, place.count};
  }
};

void prepare_codes(const ActivationForm& form, const Source& source, const Matrix& weight, Activations& result,
                   Scratch& scratch, ThreadPool& threads) {
  const CodeLayout layout = form.layout;
  const int64_t groups = groups_of(weight);
  const int64_t pitch = codes_pitch(form, weight);
  int8_t* codes = scratch.take<int8_t>(result.count * pitch);
  int32_t* offsets = scratch.take<int32_t>(result.count * groups);
  const CodeRows made_rows(result, scratch);
  for_each_row(source, result.count, result.width, scratch, threads, [&](int64_t row, const float* from, int) {
    const Place place = place_of(source.order, row, result.count);
    const int64_t index = row - place.first, in_run = index % run_rows(layout), run = row - in_run;
    const int rows = std::min(run_rows(layout), place.count - static_cast<int>(index - in_run));
    int8_t* run_codes = codes + run * pitch;
    int32_t* run_offsets = offsets + run * groups;
    const RowCodes made =
        form.rows->quantize(from, result.width, form.is_rotated, weight.group_size, code_offset(weight.bits), rows,
                            layout, run_codes + columns_together(layout) * in_run, run_offsets + in_run);
    made_rows.add(row, place, made, run_codes, run_offsets);
  });
  result.code_blocks = made_rows.blocks;
}

// Rows are quantised one by one, then laid out as the kernel says.
void prepare_packed_codes(const ActivationForm& form, const Source& source, const Matrix& weight, Activations& result,
                          Scratch& scratch, ThreadPool& threads) {
  const int64_t pitch = codes_pitch(form, weight), groups = groups_of(weight);
  int8_t* codes = scratch.take<int8_t>(packed_row(*form.packing, result.count, result.num_blocks) * pitch);
  int8_t* plain = scratch.take<int8_t>(threads.num_threads() * result.width);
  int32_t* offsets = scratch.take<int32_t>(threads.num_threads() * groups);
  const CodeRows made_rows(result, scratch);
  for_each_row(source, result.count, result.width, scratch, threads, [&](int64_t row, const float* from, int thread) {
    const Place place = place_of(source.order, row, result.count);
    int8_t* row_codes = plain + thread * result.width;
    const RowCodes made =
        form.rows->quantize(from, result.width, form.is_rotated, weight.group_size, code_offset(weight.bits), 1,
                            CodeLayout::kQuads, row_codes, offsets + thread * groups);
    int8_t* block = codes + packed_row(*form.packing, place.first, place.block) * pitch;
    form.packing->pack_row(row_codes, result.width, static_cast<int>(row - place.first), place.count, block);
    made_rows.add(row, place, made, block, nullptr);
  });
  result.code_blocks = made_rows.blocks;
}

void prepare_groups(const ActivationForm& form, const Source& source, const Matrix& weight, Activations& result,
                    Scratch& scratch, ThreadPool& threads) {
  const int64_t step = step_columns(weight.group_size), steps = result.width / step;
  const int64_t groups = result.width / kInputGroup;
  const int offset = weight.scales.codebook != nullptr ? kCodebookOffset : weight.layout().code_offset();
  int8_t* codes = scratch.take<int8_t>(result.count * result.width);
  int32_t* offsets = scratch.take<int32_t>(result.count * steps);
  float* lows = scratch.take<float>(result.count * steps);
  float* scales = scratch.take<float>(result.count * groups);
  GroupBlock* blocks = scratch.take<GroupBlock>(result.num_blocks);
  result.group_blocks = blocks;
  for_each_row(source, result.count, result.width, scratch, threads, [&](int64_t row, const float* from, int) {
    const Place place = place_of(source.order, row, result.count);
    const int together = run_rows(CodeLayout::kQuads);
    const int64_t index = row - place.first, in_run = index % together, run = row - in_run;
    const int rows = std::min(together, place.count - static_cast<int>(index - in_run));
    const GroupBlock at = {codes + run * result.width, offsets + run * steps, lows + run * steps, scales + run * groups,
                           place.count};
    form.rows->quantize_groups(from, result.width, step, offset, rows,
                               codes + run * result.width + columns_together(CodeLayout::kQuads) * in_run,
                               offsets + run * steps + in_run, lows + run * steps + in_run,
                               scales + run * groups + in_run);
    if (row == place.first) blocks[place.block] = at;
  });
}

void prepare_floats(const Source& source, Activations& result, Scratch& scratch, ThreadPool& threads) {
  FloatBlock* blocks = scratch.take<FloatBlock>(result.num_blocks);
  result.float_blocks = blocks;
  if (source.is_plain() && result.count == 1) {
    blocks[0] = {source.x.as<float>(), 1};
    return;
  }
  float* values = scratch.take<float>(result.count * result.width);
  for_each_row(source, result.count, result.width, scratch, threads, [&](int64_t row, const float* from, int) {
    const Place place = place_of(source.order, row, result.count);
    float* block = values + place.first * result.width;
    for (int64_t k = 0; k < result.width; ++k) block[k * place.count + row - place.first] = from[k];
    if (row == place.first) blocks[place.block] = {block, place.count};
  });
}

void prepare_rows(const ActivationForm& form, const Source& source, Activations& result, Scratch& scratch,
                  ThreadPool& threads) {
  if (form.mode == ActivationMode::kDense && source.is_plain()) {
    result.values = source.x.as<float>();
    return;
  }
  float* values = scratch.take<float>(result.count * result.width);
  result.values = values;
  for_each_row(source, result.count, result.width, scratch, threads, [&](int64_t row, const float* from, int) {
    float* to = values + row * result.width;
    if (form.mode == ActivationMode::kRounded && form.in_groups)
      source.kernels.round_groups(from, result.width, to);
    else if (form.mode == ActivationMode::kRounded)
      source.kernels.round(from, result.width, form.is_rotated, to);
    else
      std::copy(from, from + result.width, to);
  });
}

}  // namespace

ActivationMode activation_mode(InputRounding rounding, const Tensor& weight) {
  const bool int8 = rounding != InputRounding::kNone;
  if (weight.bits == 0) return int8 ? ActivationMode::kRounded : ActivationMode::kDense;
  if (rounding == InputRounding::kGroupedInt8) return ActivationMode::kGroups;
  return int8 ? ActivationMode::kCodes : ActivationMode::kFloats;
}

size_t activations_bytes(const ActivationForm& form, const Matrix& weight, int64_t count, int64_t num_blocks,
                         int num_threads) {
  const size_t buffers = static_cast<size_t>(num_threads) * array_bytes<float>(weight.columns);
  if (form.mode == ActivationMode::kGroups) {
    const int64_t steps = weight.columns / step_columns(weight.group_size), groups = weight.columns / kInputGroup;
    return array_bytes<int8_t>(count * weight.columns) + array_bytes<int32_t>(count * steps) +
           array_bytes<float>(count * steps) + array_bytes<float>(count * groups) +
           array_bytes<GroupBlock>(num_blocks) + buffers;
  }
  if (form.mode != ActivationMode::kCodes) {
    return array_bytes<FloatBlock>(num_blocks) + array_bytes<float>(count * weight.columns) + buffers;
  }
  const int64_t pitch = codes_pitch(form, weight), groups = groups_of(weight);
  const size_t codes = form.packing == nullptr
                           ? array_bytes<int8_t>(count * pitch) + array_bytes<int32_t>(count * groups)
                           : array_bytes<int8_t>(packed_row(*form.packing, count, num_blocks) * pitch) +
                                 array_bytes<int8_t>(num_threads * weight.columns) +
                                 array_bytes<int32_t>(num_threads * groups);
  return codes + array_bytes<float>(count) + 2 * array_bytes<int32_t>(count) + array_bytes<CodeBlock>(num_blocks) +
         buffers;
}

Activations prepare_activations(const ActivationForm& form, const Tensor& x, const FusedNorm& norm,
                                const Matrix& weight, const RowOrder* order, Scratch& scratch, ThreadPool& threads) {
  Activations result;
  result.width = row_length(x);
  result.count = order == nullptr ? num_rows(x) : order->first[order->num_blocks];
  result.num_blocks = order == nullptr ? (result.count + kTokenBlock - 1) / kTokenBlock : order->num_blocks;
  result.first = order == nullptr ? nullptr : order->first;
  const Source source{*form.rows, form.is_rotated, x, norm, order};
  if (result.count == 0) return result;
  if (form.mode == ActivationMode::kFloats)
    prepare_floats(source, result, scratch, threads);
  else if (form.mode == ActivationMode::kGroups)
    prepare_groups(form, source, weight, result, scratch, threads);
  else if (form.mode != ActivationMode::kCodes)
    prepare_rows(form, source, result, scratch, threads);
  else if (form.packing == nullptr)
    prepare_codes(form, source, weight, result, scratch, threads);
  else
    prepare_packed_codes(form, source, weight, result, scratch, threads);
  return result;
}

}  // namespace mote
