#include "kernels/ops/linear/trials.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/ops/linear/matrix.h"

namespace mote {
namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 18;
constexpr int64_t kMostColumns = int64_t{1} << 18;  // of which a trial's memory holds some blocks
constexpr int kMostBlocks = 4;                      // of a prompt's tokens
constexpr unsigned kMostThreads = 4;                // cores that share a unit

// The tokens of blocks, which differ in nothing.
struct Tokens {
  int in_block;
  int num_blocks;
};

// Inputs of zeros in each form, and a place for results.
struct Inputs {
  Inputs(int64_t columns, int64_t group_size, const Tokens& in)
      : tokens(in),
        codes(static_cast<size_t>((columns + 64) * in.in_block)),
        integers(static_cast<size_t>((columns / std::min<int64_t>(group_size, kInputGroup) + 1) * in.in_block)),
        floats(static_cast<size_t>(columns * in.in_block), 1.0f),
        results(static_cast<size_t>(int64_t{in.in_block} * in.num_blocks * kMaxStreams * kTileRows)) {}

  std::byte* scratch_of(size_t bytes) {
    scratch.resize(std::max(bytes, scratch.size()));
    return scratch.data();
  }

  CodeBlock code_block() const {
    return {codes.data(), integers.data(), floats.data(), integers.data(), integers.data(), tokens.in_block};
  }
  GroupBlock group_block() const {
    return {codes.data(), integers.data(), floats.data(), floats.data(), tokens.in_block};
  }
  FloatBlock float_block() const { return {floats.data(), tokens.in_block}; }

  Tokens tokens;
  std::vector<int8_t> codes;
  std::vector<int32_t> integers;
  std::vector<float> floats, results;
  std::vector<std::byte> scratch;
};

void multiply(const void* functions, ActivationMode mode, const TileBlocks& blocks, Inputs& x) {
  constexpr int64_t kStride = kMaxStreams * kTileRows;
  float* y = x.results.data();
  if (mode == ActivationMode::kCodes) {
    const auto& kernel = *static_cast<const CodeProducts*>(functions);
    CodeBlock same[kMostBlocks];
    std::fill_n(same, x.tokens.num_blocks, x.code_block());
    kernel.multiply(blocks, same, x.tokens.num_blocks, y, kStride,
                    x.scratch_of(kernel.scratch_bytes(blocks.columns())));
  } else if (mode == ActivationMode::kGroups) {
    const auto& kernel = *static_cast<const GroupProducts*>(functions);
    const GroupBlock block = x.group_block();
    kernel.multiply(blocks, &block, 1, y, kStride, x.scratch_of(kernel.scratch_bytes(blocks.columns())));
  } else {
    const FloatBlock block = x.float_block();
    static_cast<const FloatProducts*>(functions)->multiply(blocks, &block, 1, y, kStride);
  }
}

}  // namespace

Trial product_trial(const Tensor& weight, ActivationMode mode, int64_t tokens) {
  Trial trial;
  const Matrix matrix = matrix_of(weight, 0);
  const bool is_prompt = tokens >= kTokenBlock && mode == ActivationMode::kCodes && cpu_features().ok() &&
                         cpu_features()->has_all(CpuFeature::kSme);
  if (matrix.bits == 0 || (tokens > kRegisterTokens && !is_prompt) || matrix.columns > kMostColumns) return trial;
  if (matrix.num_blocks() * matrix.block_bytes() < kLeastBytes) return trial;
  const Tokens in = is_prompt ? Tokens{kTokenBlock, kMostBlocks} : Tokens{tokens == 1 ? 1 : kRegisterTokens, 1};
  trial.work = std::to_string(in.in_block * in.num_blocks) + " tokens";
  if (is_prompt)
    trial.num_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads));
  trial.run = [matrix, mode, in, x = std::shared_ptr<Inputs>()](const void* functions,
                                                                std::span<std::byte> memory) mutable {
    if (x == nullptr) x = std::make_shared<Inputs>(matrix.columns, matrix.group_size, in);
    const int64_t bytes = matrix.block_bytes();
    const auto num_blocks = static_cast<int64_t>(memory.size()) / bytes;
    for (int64_t block = 0; block < num_blocks; block += kMaxStreams) {
      TileBlocks blocks;
      blocks.count = static_cast<int>(std::min<int64_t>(kMaxStreams, num_blocks - block));
      blocks.bits = matrix.bits;
      blocks.group_size = matrix.group_size;
      blocks.scales = matrix.scales;
      blocks.groups = matrix.columns / matrix.group_size;
      for (int s = 0; s < blocks.count; ++s) blocks.blocks[s] = memory.data() + (block + s) * bytes;
      multiply(functions, mode, blocks, *x);
    }
  };
  return trial;
}

}  // namespace mote
