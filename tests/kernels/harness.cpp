#include "tests/kernels/harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/adapters.h"
#include "kernels/formats.h"
#include "kernels/support/float_bits.h"

namespace mote::test {

namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kGarbage{0xcd};
constexpr float kNoMaximum = 1234.5f;  // what is not written keeps it

void place(Owned& owned) { owned.tensor.data = owned.bytes.data(); }

// Row-major index of an element to its offset.
int64_t offset_of(const Tensor& tensor, int64_t index) {
  int64_t offset = 0;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    offset += index % tensor.size(dim) * tensor.stride(dim);
    index /= tensor.size(dim);
  }
  return offset;
}

// Written from torchao's choose_qparams_affine and quantize_affine: the row as (code - zero) * scale.
std::vector<double> quantised_row(const float* x, int64_t width) {
  float low = 0, high = 0;
  for (int64_t k = 0; k < width; ++k) {
    low = std::min(low, x[k]);
    high = std::max(high, x[k]);
  }
  const float scale = std::max((high - low) / 255.0f, std::numeric_limits<float>::min());
  const float zero = std::clamp(-128.0f - std::nearbyint(low / scale), -128.0f, 127.0f);
  const float inverse = 1.0f / scale;
  std::vector<double> row;
  for (int64_t k = 0; k < width; ++k) {
    const float code = std::clamp(std::nearbyint(x[k] * inverse) + zero, -128.0f, 127.0f);
    row.push_back(static_cast<double>(code - zero) * static_cast<double>(scale));
  }
  return row;
}

}  // namespace

void TestPool::parallel_for(int64_t count, int64_t grain,
                            const std::function<void(int64_t begin, int64_t end, int thread)>& body) {
  const int64_t pieces = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, num_threads_);
  const int64_t length = (count + pieces - 1) / pieces;
  std::vector<std::thread> workers;
  for (int64_t i = 0; i * length < count; ++i) {
    workers.emplace_back(body, i * length, std::min(count, (i + 1) * length), static_cast<int>(i));
  }
  for (std::thread& worker : workers) worker.join();
}

Owned make(DType dtype, const Shape& shape) {
  Owned owned;
  owned.tensor.dtype = dtype;
  owned.tensor.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), owned.tensor.sizes.begin());
  owned.tensor.set_contiguous_strides();
  owned.bytes.resize(static_cast<size_t>(std::max<int64_t>(owned.count(), 1) * dtype_bytes(dtype)));
  place(owned);
  return owned;
}

Owned floats(const Shape& shape, const std::vector<float>& values) {
  Owned owned = make(DType::kFloat32, shape);
  std::copy(values.begin(), values.end(), owned.as<float>());
  return owned;
}

Owned integers(const Shape& shape, const std::vector<int64_t>& values) {
  Owned owned = make(DType::kInt64, shape);
  std::copy(values.begin(), values.end(), owned.as<int64_t>());
  return owned;
}

Owned bools(const Shape& shape, const std::vector<int>& values) {
  Owned owned = make(DType::kBool, shape);
  std::transform(values.begin(), values.end(), owned.as<uint8_t>(), [](int v) { return static_cast<uint8_t>(v != 0); });
  return owned;
}

Owned random_floats(const Shape& shape, uint32_t seed, float scale) {
  Owned owned = make(DType::kFloat32, shape);
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::generate(owned.as<float>(), owned.as<float>() + owned.count(), [&] { return normal(generator); });
  return owned;
}

Owned narrow(const Owned& source, DType dtype) {
  Owned owned = make(dtype, Shape(source.tensor.sizes.begin(), source.tensor.sizes.begin() + source.tensor.rank));
  for (int64_t i = 0; i < owned.count(); ++i) {
    const float value = source.as<float>()[i];
    owned.as<uint16_t>()[i] = dtype == DType::kFloat16 ? float32_to_float16(value) : float32_to_bfloat16(value);
  }
  return owned;
}

Owned with_layout(const Owned& source, const std::vector<int>& order) {
  Owned owned = source;
  place(owned);
  int64_t step = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    owned.tensor.strides[static_cast<size_t>(*dim)] = step;
    step *= source.tensor.size(*dim);
  }
  const auto bytes = static_cast<size_t>(dtype_bytes(source.tensor.dtype));
  for (int64_t i = 0; i < source.count(); ++i) {
    std::memcpy(owned.bytes.data() + static_cast<size_t>(offset_of(owned.tensor, i)) * bytes,
                source.bytes.data() + static_cast<size_t>(offset_of(source.tensor, i)) * bytes, bytes);
  }
  return owned;
}

OpCall& OpCall::input(const Owned& tensor) {
  input_tensors_.push_back(tensor.tensor);
  inputs_.push_back(&input_tensors_.back());
  return *this;
}

OpCall& OpCall::input(Owned&& tensor) {
  kept_.push_back(std::move(tensor));
  return input(static_cast<const Owned&>(kept_.back()));
}

OpCall& OpCall::absent() {
  inputs_.push_back(nullptr);
  return *this;
}

OpCall& OpCall::output(DType dtype, const Shape& shape) {
  outputs_.push_back(make(dtype, shape));
  place(outputs_.back());
  return *this;
}

OpCall::NamedAttribute& OpCall::attribute(const std::string& name) {
  attributes_.push_back({});
  attributes_.back().name = name;
  return attributes_.back();
}

OpCall& OpCall::integers(const std::string& name, const std::vector<int64_t>& values) {
  attribute(name).integers = values;
  return *this;
}

OpCall& OpCall::number(const std::string& name, double value) {
  attribute(name).numbers = {value};
  return *this;
}

OpCall& OpCall::text(const std::string& name, const std::string& value) {
  NamedAttribute& added = attribute(name);
  added.text = value;
  added.is_text = true;
  return *this;
}

OpCall& OpCall::state(const StateShape& shape) {
  state_shapes_.push_back(shape);
  return *this;
}

OpCall& OpCall::caches(std::vector<KvCache>* caches) {
  caches_ = caches;
  return *this;
}

OpCall& OpCall::recurrent(std::vector<RecurrentState>* states) {
  recurrent_ = states;
  return *this;
}

OpCall& OpCall::sequences(const std::vector<SequenceStates>* sequences) {
  sequences_ = sequences;
  return *this;
}

void OpCall::assemble() {
  output_pointers_.clear();
  for (Owned& output : outputs_) output_pointers_.push_back(&output.tensor);
  attribute_views_.clear();
  for (const NamedAttribute& one : attributes_) {
    attribute_views_.push_back(
        {one.name, one.integers, one.numbers, one.is_text ? std::string_view(one.text) : std::string_view()});
  }
  call_.inputs = inputs_;
  call_.outputs = output_pointers_;
  call_.attributes = attribute_views_;
  call_.state_shapes = state_shapes_;
  call_.packed_weights = packed_weights_.get();
}

Status OpCall::check() {
  assemble();
  const Op* op = find_op(name_);
  if (op == nullptr) return Status(Code::kUnsupportedOp, name_);
  return op->check(call_);
}

namespace {

// What an op that finds_maxima has to write beside y.
std::vector<float> maxima_of(const Tensor& y) {
  const int64_t width = y.size(-1), rows = width == 0 ? 0 : y.num_elements() / width;
  std::vector<float> maxima(static_cast<size_t>(rows * num_maxima(width)), -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < rows * width; ++i) {
    float& largest = maxima[static_cast<size_t>(i / width * num_maxima(width) + i % width / kMaximaBlock)];
    if (y.as<float>()[i] > largest) largest = y.as<float>()[i];
  }
  return maxima;
}

}  // namespace

Status OpCall::run(int num_threads) {
  MOTE_RETURN_IF_ERROR(check());
  const Op* op = find_op(name_);
  if (op->is_view) {
    outputs_[0].tensor.data = static_cast<std::byte*>(inputs_[0]->data) + call_.view_offset_bytes;
    return Status();
  }
  for (Owned& output : outputs_) std::fill(output.bytes.begin(), output.bytes.end(), kGarbage);
  const size_t needed = op->scratch_bytes == nullptr ? 0 : op->scratch_bytes(call_, num_threads);
  std::vector<std::byte> memory(needed + kGuard + 64, kGarbage);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  std::byte* aligned = memory.data() + (64 - address % 64) % 64;
  TestPool pool(num_threads);
  KernelContext context;
  context.threads = &pool;
  context.scratch = {aligned, needed};
  context.reads_ahead = true;
  SequenceStates sequence;
  if (caches_ != nullptr) sequence.kv_caches = *caches_;
  if (recurrent_ != nullptr) sequence.recurrent_states = *recurrent_;
  if (sequences_ != nullptr) {
    context.sequences = *sequences_;
  } else if (caches_ != nullptr || recurrent_ != nullptr) {
    sequence.tokens = outputs_[0].tensor.size(1);
    context.sequences = {&sequence, 1};
  }
  const size_t for_adapters = adapter_memory_bytes(context.sequences, num_threads);
  std::vector<std::byte> adapters(for_adapters == 0 ? 0 : for_adapters + kGuard + 64, kGarbage);
  std::byte* aligned_adapters = adapters.data() + (64 - reinterpret_cast<uintptr_t>(adapters.data()) % 64) % 64;
  context.adapter_memory = {aligned_adapters, for_adapters};
  std::vector<float> maxima;
  if (op->finds_maxima) {
    maxima.assign(maxima_of(outputs_[0].tensor).size() + 1, kNoMaximum);
    context.maxima = maxima.data();
  }
  MOTE_RETURN_IF_ERROR(op->run(call_, context));
  if (op->finds_maxima) {
    std::vector<float> expected = maxima_of(outputs_[0].tensor);
    expected.push_back(kNoMaximum);
    if (maxima != expected) return Status(Code::kInternal, "wrote other maxima than those of its output");
  }
  const auto is_garbage = [](std::byte b) { return b == kGarbage; };
  const bool intact = std::all_of(aligned + needed, aligned + needed + kGuard, is_garbage) &&
                      (for_adapters == 0 || std::all_of(aligned_adapters + for_adapters,
                                                        aligned_adapters + for_adapters + kGuard, is_garbage));
  return intact ? Status() : Status(Code::kInternal, "wrote past its scratch memory");
}

double relative_error(const float* actual, const std::vector<double>& expected) {
  double error = 0, largest = 1e-6;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = static_cast<double>(actual[i]);
    if (std::isnan(expected[i]) != std::isnan(value)) return std::numeric_limits<double>::infinity();
    if (std::isnan(value) || value == expected[i]) continue;
    if (std::isinf(value) || std::isinf(expected[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(value - expected[i]));
  }
  return error / largest;
}

bool same_bits(const Owned& a, const Owned& b) { return a.bytes == b.bytes; }

std::vector<double> to_doubles(const Owned& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int64_t offset = offset_of(tensor.tensor, i);
    switch (tensor.tensor.dtype) {
      case DType::kFloat32: values.push_back(static_cast<double>(tensor.as<float>()[offset])); break;
      case DType::kFloat16:
        values.push_back(static_cast<double>(float16_to_float32(tensor.as<uint16_t>()[offset])));
        break;
      case DType::kBFloat16:
        values.push_back(static_cast<double>(bfloat16_to_float32(tensor.as<uint16_t>()[offset])));
        break;
      case DType::kInt64: values.push_back(static_cast<double>(tensor.as<int64_t>()[offset])); break;
      default: values.push_back(static_cast<double>(tensor.as<uint8_t>()[offset])); break;
    }
  }
  return values;
}

namespace {

void rotate_row(float* row, int64_t width) {
  const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(width)));
  const auto turn = [&](float* x) {
    for (int64_t k = 0; k < size; ++k) {
      if (std::popcount(static_cast<uint64_t>(k & k >> 1)) % 2 == 1) x[k] = -x[k];
    }
    for (int64_t apart = 1; apart < size; apart *= 2) {
      for (int64_t k = 0; k < size; ++k) {
        if ((k & apart) != 0) continue;
        const float a = x[k], b = x[k + apart];
        x[k] = a + b;
        x[k + apart] = a - b;
      }
    }
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
    for (int64_t k = 0; k < size; ++k) x[k] *= scale;
  };
  turn(row);
  if (size != width) turn(row + width - size);
}

}  // namespace

Owned rotated_rows(const Owned& x) {
  std::vector<float> values(x.as<float>(), x.as<float>() + x.tensor.num_elements());
  const int64_t width = x.tensor.size(-1);
  for (int64_t begin = 0; begin < x.tensor.num_elements(); begin += width) rotate_row(values.data() + begin, width);
  return floats(Shape(x.tensor.sizes.begin(), x.tensor.sizes.begin() + x.tensor.rank), values);
}

std::vector<double> quantised_rows(const Owned& x) {
  const std::vector<double> plain = to_doubles(x);
  const int64_t width = x.tensor.size(-1);
  std::vector<double> rows;
  for (size_t begin = 0; begin < plain.size(); begin += static_cast<size_t>(width)) {
    const std::vector<float> row(plain.begin() + static_cast<int64_t>(begin),
                                 plain.begin() + static_cast<int64_t>(begin) + width);
    const std::vector<double> quantised = quantised_row(row.data(), width);
    rows.insert(rows.end(), quantised.begin(), quantised.end());
  }
  return rows;
}

std::vector<double> quantised_runs(const Owned& x, int64_t length) {
  std::vector<double> rows = to_doubles(x);
  const auto step = static_cast<size_t>(length);
  for (size_t run = 0; run < rows.size(); run += step) {
    float largest = 0;
    for (size_t i = run; i < run + step; ++i) largest = std::max(largest, static_cast<float>(std::abs(rows[i])));
    const float scale = largest / 127.0f, inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (size_t i = run; i < run + step; ++i) {
      const float code = std::nearbyint(static_cast<float>(rows[i]) * inverse);
      rows[i] = static_cast<double>(std::clamp(code, -127.0f, 127.0f)) * static_cast<double>(scale);
    }
  }
  return rows;
}

std::vector<double> multiply_rows(const std::vector<double>& x, const std::vector<double>& weight, int64_t n,
                                  int64_t k) {
  const auto tokens = static_cast<int64_t>(x.size()) / k;
  std::vector<double> y(static_cast<size_t>(tokens * n));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t row = 0; row < n; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += x[static_cast<size_t>(t * k + i)] * weight[static_cast<size_t>(row * k + i)];
      y[static_cast<size_t>(t * n + row)] = sum;
    }
  }
  return y;
}

}  // namespace mote::test
