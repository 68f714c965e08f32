// Times the products of mote.linear with cold weights beside what the machine can read and multiply in the same run.
//   bench_linear [rows columns]... [--bits N] [--group N] [--activations int8|float] [--threads 1,2] [--tokens 1,2,...]
//   [--repeats N] [--scales row,half,minimum,zero,codebook,fp4,blocks]
// Scales other than those of rows are float16 ones of a group, `blocks` those of 256 columns with multipliers; their
// activations are grouped_int8 where they are int8. All are timed in turn.
// Prints one JSON object a line: first the machine's limits, then each case with the median of its repeats.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/formats.h"
#include "kernels/machine/limits.h"
#include "kernels/op.h"
#include "kernels/ops/linear/packed_weights.h"
#include "runner/program/thread_pool.h"

namespace mote {
namespace {

constexpr size_t kColdBytes = size_t{384}
                              << 20;  // what a step reads between two visits of a weight: more than caches keep

struct Flags {
  std::vector<int64_t> shapes;  // rows, columns, rows, columns, ...
  std::vector<int64_t> tokens = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 256};
  std::vector<int64_t> threads = {1, 2};
  int64_t bits = 4;
  int64_t group_size = 32;
  std::string activations = "int8";
  std::vector<std::string> scales = {"row"};
  int64_t repeats = 5;
};

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> list;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) list.push_back(std::stoll(part));
  return list;
}

std::vector<std::string> names(const std::string& text) {
  std::vector<std::string> list;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) list.push_back(part);
  return list;
}

TileScales scales_of(const std::string& name, int64_t group_size) {
  static constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static constexpr int8_t kFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto group = static_cast<int32_t>(group_size);
  if (name == "row") return {};
  if (name == "half") return {group, WeightOffset::kNone, false, nullptr};
  if (name == "minimum") return {group, WeightOffset::kMinimum, false, nullptr};
  if (name == "zero") return {group, WeightOffset::kZero, false, nullptr};
  if (name == "codebook") return {group, WeightOffset::kNone, false, kCodebook};
  if (name == "fp4") return {group, WeightOffset::kNone, true, kFp4};
  if (name == "blocks") return {256, WeightOffset::kNone, false, nullptr};
  throw std::invalid_argument("--scales " + name);
}

Flags parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      flags.shapes.push_back(std::stoll(name));
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (name == "--bits")
      flags.bits = std::stoll(value);
    else if (name == "--group")
      flags.group_size = std::stoll(value);
    else if (name == "--activations")
      flags.activations = value;
    else if (name == "--scales")
      flags.scales = names(value);
    else if (name == "--repeats")
      flags.repeats = std::stoll(value);
    else if (name == "--threads")
      flags.threads = numbers(value);
    else if (name == "--tokens")
      flags.tokens = numbers(value);
    else
      throw std::invalid_argument(name);
  }
  if (flags.shapes.empty()) flags.shapes = {8192, 2048, 2048, 8192};
  return flags;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// What all weights are parts of, one after the other: pages that lie side by side are read faster than others, so no
// layer may have some of its own. Large ones, as files lie in.
class ColdMemory {
 public:
  ColdMemory() : bytes_(reserve_large_pages(kColdBytes)) {
    if (bytes_.get() == nullptr) throw std::bad_alloc();
    std::minstd_rand random(7);
    for (size_t i = 0; i < kColdBytes; i += 4) {
      // As float32 and as float16: small and positive.
      const auto word = (static_cast<uint32_t>(random()) & 0x00ff00ffu) | 0x38002c00u;
      std::memcpy(bytes_.get() + i, &word, 4);
    }
  }
  std::byte* next(size_t bytes) {
    if (bytes > kColdBytes) throw std::invalid_argument("a weight of " + std::to_string(bytes) + " bytes");
    if (next_ + bytes > kColdBytes) next_ = 0;
    std::byte* found = bytes_.get() + next_;
    next_ += (bytes + 63) / 64 * 64;
    return found;
  }

 private:
  ReservedPages bytes_;
  size_t next_ = 0;
};

// One linear layer.
class Layer {
 public:
  Layer(const Flags& flags, ColdMemory& memory, const std::string& scales, int64_t rows, int64_t columns)
      : memory_(memory),
        activations_(scales != "row" && flags.activations == "int8" ? "grouped_int8" : flags.activations),
        scales_(scales) {
    weight_.scales = scales_of(scales, flags.group_size);
    weight_.bits = static_cast<uint8_t>(flags.bits);
    weight_.group_size = static_cast<int32_t>(flags.group_size);
    weight_.dtype = DType::kInt8;
    weight_.rank = 2;
    weight_.sizes = {rows, columns};
    weight_.set_contiguous_strides();
    bytes_ = static_cast<size_t>(matrix_bytes(weight_));
  }

  const std::string& scales() const { return scales_; }
  double bytes() const { return static_cast<double>(bytes_); }
  int64_t rows() const { return weight_.size(0); }
  int64_t columns() const { return weight_.size(1); }

  // Seconds of one call.
  double time(int64_t tokens, ThreadPool& threads) {
    Tensor x = floats(tokens, columns(), x_), y = floats(tokens, rows(), y_);
    weight_.data = memory_.next(bytes_);
    const Tensor* inputs[] = {&x, &weight_};
    Tensor* outputs[] = {&y};
    const Attribute attributes[] = {{"activations", {}, {}, activations_}};
    Call call;
    call.inputs = inputs;
    call.outputs = outputs;
    call.attributes = attributes;
    call.packed_weights = &packed_weights_;
    const Op& op = *find_op("mote.linear");
    if (const Status status = op.check(call); !status.ok()) throw std::runtime_error(status.message());
    scratch_.resize(op.scratch_bytes(call, threads.num_threads()) + 64);
    auto* aligned = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64);
    KernelContext context{&threads, {aligned, scratch_.size() - 64}, {}, {}};
    const double begin = seconds();
    const Status status = op.run(call, context);
    if (!status.ok()) throw std::runtime_error(status.message());
    return seconds() - begin;
  }

 private:
  static Tensor floats(int64_t rows, int64_t columns, std::vector<float>& memory) {
    Tensor tensor;
    tensor.rank = 2;
    tensor.sizes = {rows, columns};
    tensor.set_contiguous_strides();
    if (memory.size() < static_cast<size_t>(rows * columns)) {
      memory.resize(static_cast<size_t>(rows * columns));
      std::minstd_rand random(3);
      for (float& value : memory) value = static_cast<float>(random()) / 2147483648.0f - 0.5f;
    }
    tensor.data = memory.data();
    return tensor;
  }

  ColdMemory& memory_;
  std::string activations_, scales_;
  Tensor weight_;
  size_t bytes_ = 0;
  std::vector<std::byte> scratch_;
  PackedWeights packed_weights_;
  std::vector<float> x_, y_;
};

void run(const Flags& flags) {
  ColdMemory memory;
  for (const int64_t num_threads : flags.threads) {
    auto pool = make_thread_pool(static_cast<int>(num_threads));
    if (!pool.ok()) throw std::runtime_error(pool.status().message());
    for (size_t s = 0; s + 1 < flags.shapes.size(); s += 2) {
      std::deque<Layer> layers;
      for (const std::string& scales : flags.scales) {
        layers.emplace_back(flags, memory, scales, flags.shapes[s], flags.shapes[s + 1]);
      }
      const size_t each = flags.tokens.size();
      std::vector<std::vector<double>> times(layers.size() * each);
      std::vector<double> read, multiply;
      for (int64_t repeat = 0; repeat < flags.repeats; ++repeat) {
        const Result<Limits> limits = measure_limits(**pool);
        if (!limits.ok()) throw std::runtime_error(limits.status().message());
        read.push_back((*limits).read_gb_s);
        multiply.push_back((*limits).int8_gmac_s);
        for (size_t i = 0; i < each; ++i) {
          for (int again = 0; again < 3; ++again) {
            for (size_t l = 0; l < layers.size(); ++l) {
              times[l * each + i].push_back(layers[l].time(flags.tokens[i], **pool));
            }
          }
        }
      }
      std::printf("{\"threads\": %lld, \"read_gb_s\": %.1f, \"int8_gmac_s\": %.1f}\n",
                  static_cast<long long>(num_threads), median(read), median(multiply));
      for (size_t i = 0; i < times.size(); ++i) {
        const Layer& layer = layers[i / each];
        const int64_t tokens = flags.tokens[i % each];
        const double time = median(times[i]);
        const double gmac_s = static_cast<double>(layer.rows() * layer.columns() * tokens) * 1e-9 / time;
        std::printf(
            "{\"scales\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"tokens\": %lld, \"us\": %.1f, "
            "\"least_us\": %.1f, \"gb_s\": %.1f, \"gmac_s\": %.1f, \"of_read\": %.2f, \"of_int8\": %.2f}\n",
            layer.scales().c_str(), static_cast<long long>(layer.rows()), static_cast<long long>(layer.columns()),
            static_cast<long long>(tokens), time * 1e6, *std::min_element(times[i].begin(), times[i].end()) * 1e6,
            layer.bytes() * 1e-9 / time, gmac_s, layer.bytes() * 1e-9 / time / median(read), gmac_s / median(multiply));
      }
    }
  }
}

}  // namespace
}  // namespace mote

int main(int argc, char** argv) try { mote::run(mote::parse(argc, argv)); } catch (const std::exception& error) {
  std::fprintf(stderr, "bench_linear: %s\n", error.what());
  return 2;
}
