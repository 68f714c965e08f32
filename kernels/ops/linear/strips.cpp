#include "kernels/ops/linear/strips.h"

#include <algorithm>

#include "kernels/ops/linear/low_rank.h"
#include "kernels/support/contract.h"
#include "kernels/support/rows.h"
#include "kernels/support/scan.h"

namespace mote {

namespace {

constexpr int64_t kTokensAtOnce = 256;                // tokens whose results a thread buffers
constexpr int64_t kGrainProducts = int64_t{1} << 16;  // multiply-accumulates: fewer are not worth waking a thread
constexpr int64_t kRowsAhead = 8;
constexpr int64_t kWide = kMaxStreams * kTileRows;
static_assert(kWide == kMaximaBlock, "a strip of rows has one maximum");

int64_t token_blocks(int64_t tokens) { return (tokens + kTokenBlock - 1) / kTokenBlock; }

// Bytes that one thread needs: results of one strip, and the kernel's own scratch.
size_t buffer_bytes(const Matrix& matrix, const Product& product, int64_t tokens) {
  return array_bytes<float>(std::min(tokens, kTokensAtOnce) * kWide) +
         array_bytes<std::byte>(static_cast<int64_t>(product.scratch_bytes(matrix)));
}

// Prefetches a row some rows ahead, because rows lie far apart: of results for writing, of the residual for reading.
void expect_store(const float* to, int64_t width) {
  for (int64_t i = 0; i < width; i += 16) __builtin_prefetch(to + i, 1);
}
void expect_load(const Tensor* residual, int64_t row, int64_t n, int64_t width) {
  if (residual == nullptr || residual->stride(-1) != 1) return;
  const float* from = residual->as<float>() + row_offset(*residual, row) + n;
  for (int64_t i = 0; i < width; i += 16) __builtin_prefetch(from + i);
}

const float* data_or_null(const Tensor* tensor) { return tensor == nullptr ? nullptr : tensor->as<float>(); }

FusedNorm norm_of(const Call& call) {
  const LinearParams& params = call.get_params<LinearParams>();
  FusedNorm norm = params.norm;
  norm.weight = data_or_null(optional_input(call, params.norm_input));
  return norm;
}

// What the two ops share: activations ready to be multiplied, and a buffer for each thread.
class Run {
 public:
  Run(const Call& call, KernelContext& context)
      : params_(call.get_params<LinearParams>()),
        matrix_(matrix_of(*call.inputs[kWeight], 0)),
        threads_(*context.threads) {
    Scratch scratch(context.scratch);
    x_ = prepare_activations(params_.product.x, *call.inputs[kX], norm_of(call), matrix_, nullptr, scratch, threads_);
    buffer_bytes_ = buffer_bytes(matrix_, params_.product, x_.count);
    buffers_ = scratch.take<std::byte>(static_cast<int64_t>(buffer_bytes_) * threads_.num_threads());
  }

  const LinearParams& params() const { return params_; }
  const Matrix& matrix() const { return matrix_; }
  int64_t tokens() const { return x_.count; }

  // body(strip, first token, tokens, buffer) for each of `strips` strips of about kWide rows and each block of tokens.
  template <typename Body>
  void for_each_strip(int64_t strips, const Body& body) const {
    const int64_t products = kWide * std::max<int64_t>(x_.count, 1) * std::max<int64_t>(matrix_.columns, 1);
    threads_.parallel_for(
        strips, std::max<int64_t>(1, kGrainProducts / products), [&](int64_t begin, int64_t end, int thread) {
          float* buffer = reinterpret_cast<float*>(buffers_ + static_cast<int64_t>(buffer_bytes_) * thread);
          for (int64_t strip = begin; strip < end; ++strip) {
            for (int64_t first = 0; first < x_.count; first += kTokensAtOnce) {
              body(strip, first, std::min(kTokensAtOnce, x_.count - first), buffer);
            }
          }
        });
  }

  // Multiplies the streams' rows of the weight with tokens [first, first + count). first: a multiple of kTokenBlock
  void multiply(const Streams& streams, int64_t first, int64_t count, float* y, int64_t stride, float* buffer) const {
    auto* scratch =
        reinterpret_cast<std::byte*>(buffer) + array_bytes<float>(std::min(x_.count, kTokensAtOnce) * kWide);
    multiply_streams(params_.product, matrix_, streams, x_, first / kTokenBlock, token_blocks(count), y, stride,
                     scratch);
  }

 private:
  LinearParams params_;
  Matrix matrix_;
  ThreadPool& threads_;
  Activations x_;
  size_t buffer_bytes_ = 0;
  std::byte* buffers_ = nullptr;
};

// Elements [n, n + width) of a row of the residual, copied to `buffer` if they are strided.
const float* residual_part(const Tensor* residual, int64_t row, int64_t n, int64_t width, float* buffer) {
  if (residual == nullptr) return nullptr;
  const int64_t stride = residual->stride(-1);
  const float* from = residual->as<float>() + row_offset(*residual, row) + n * stride;
  if (stride == 1) return from;
  for (int64_t i = 0; i < width; ++i) buffer[i] = from[i * stride];
  return buffer;
}

// The weight rows of a strip, and where its ups begin in a row of their products; its gates begin at 0.
struct GatedStrip {
  Streams streams;
  int64_t up = 0;
};

// Up rows that do not begin at a block of tiles are parts of two blocks, both of which are multiplied.
GatedStrip gated_strip(const Matrix& matrix, int64_t n, int64_t width) {
  const int64_t features = matrix.rows / 2;
  GatedStrip strip;
  for (int64_t i = 0; i < width; i += kTileRows) strip.streams.add(n + i);
  const int64_t shift = matrix.bits == 0 ? 0 : (features + n) % kTileRows;
  strip.streams.ahead = width;
  strip.up = strip.streams.count * kTileRows + shift;
  for (int64_t row = features + n - shift; row < features + n + width; row += kTileRows) strip.streams.add(row);
  return strip;
}

}  // namespace

size_t linear_scratch_bytes(const Call& call, int num_threads) {
  const LinearParams& params = call.get_params<LinearParams>();
  const Matrix matrix = matrix_of(*call.inputs[kWeight], 0);
  const int64_t tokens = num_rows(*call.inputs[kX]);
  return activations_bytes(params.product.x, matrix, tokens, token_blocks(tokens), num_threads) +
         static_cast<size_t>(num_threads) * buffer_bytes(matrix, params.product, tokens);
}

Status run_linear(const Call& call, KernelContext& context) {
  const Run run(call, context);
  MOTE_ASSIGN(const AddedProducts adapters, AddedProducts::make(call, norm_of(call), context));
  const int64_t rows = run.matrix().rows;
  const float* bias = data_or_null(optional_input(call, kBias));
  const Tensor* residual = optional_input(call, kResidual);
  float* y = call.outputs[0]->as<float>();
  const auto maximum = scan_functions().maximum;
  const int64_t strips = num_maxima(rows);
  run.for_each_strip(strips, [&](int64_t strip, int64_t first, int64_t count, float* buffer) {
    const int64_t n = strip * kWide, width = std::min(kWide, rows - n);
    Streams streams;
    for (int64_t row = n; row < n + width; row += kTileRows) streams.add(row);
    streams.ahead = kWide;
    float* to = y + first * rows + n;
    // Sums wait in the buffer: rows of y often lie a power of two apart, where caches keep few of them.
    run.multiply(streams, first, count, buffer, kWide, buffer);
    adapters.add(first, count, n, width, buffer, kWide);
    for (int64_t t = 0; t < count; ++t) {
      if (t + kRowsAhead < count) {
        expect_store(to + (t + kRowsAhead) * rows, width);
        expect_load(residual, first + t + kRowsAhead, n, width);
      }
      float gathered[kWide];
      const float* added = residual_part(residual, first + t, n, width, gathered);
      run.params().product.x.rows->finish(buffer + t * kWide, bias == nullptr ? nullptr : bias + n, added, width,
                                          to + t * rows);
      if (context.maxima != nullptr) context.maxima[(first + t) * strips + strip] = maximum(to + t * rows, width);
    }
  });
  return Status();
}

Status run_gated_linear(const Call& call, KernelContext& context) {
  const Run run(call, context);
  MOTE_ASSIGN(const AddedProducts adapters, AddedProducts::make(call, norm_of(call), context));
  const int64_t features = run.matrix().rows / 2;
  const float* bias = data_or_null(optional_input(call, kBias));
  float* y = call.outputs[0]->as<float>();
  const bool is_aligned = run.matrix().bits == 0 || features % kTileRows == 0;
  const int64_t wide = is_aligned ? kWide / 2 : kTileRows;
  run.for_each_strip((features + wide - 1) / wide, [&](int64_t strip, int64_t first, int64_t count, float* buffer) {
    const int64_t n = strip * wide, width = std::min(wide, features - n);
    const GatedStrip parts = gated_strip(run.matrix(), n, width);
    run.multiply(parts.streams, first, count, buffer, kWide, buffer);
    adapters.add(first, count, n, width, buffer, kWide);
    adapters.add(first, count, features + n, width, buffer + parts.up, kWide);
    const float* gate_bias = bias == nullptr ? nullptr : bias + n;
    const float* up_bias = bias == nullptr ? nullptr : bias + features + n;
    for (int64_t t = 0; t < count; ++t) {
      float* to = y + (first + t) * features + n;
      if (t + kRowsAhead < count) expect_store(to + kRowsAhead * features, width);
      const float* row = buffer + t * kWide;
      run.params().product.x.rows->gate(static_cast<int>(run.params().function), row, gate_bias, row + parts.up,
                                        up_bias, width, to);
    }
  });
  return Status();
}

}  // namespace mote
