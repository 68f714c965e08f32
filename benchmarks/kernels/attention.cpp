// Times mote.attention for one layer beside what the machine can read and multiply in the same run.
//   bench_attention [--threads 1,2] [--types int8,...] [--contexts 256,...] [--shapes llama,qwen] [--tokens 1,256]
//   [--repeats N]
// Prints one JSON object a line: first the machine's limits, then each case with the median of its repeats.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/machine/cpu_features.h"
#include "kernels/op.h"
#include "runner/program/thread_pool.h"

namespace mote {
namespace {

constexpr int64_t kColdBytes = int64_t{384}
                               << 20;  // what a step reads between two visits of a layer: more than caches keep

struct Shape {
  const char* name;
  int heads, kv_heads, head_dim;
};
constexpr Shape kShapes[] = {{"llama", 32, 8, 64}, {"qwen", 16, 8, 128}};
constexpr const char* kTypes[] = {"float32", "float16", "int8", "int4"};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double read_gb_s(ThreadPool& threads, const std::vector<uint64_t>& memory) {
  const auto count = static_cast<int64_t>(memory.size());
  std::vector<uint64_t> sums(256);
  const double begin = seconds();
  threads.parallel_for(count / 4096, 64, [&](int64_t first, int64_t last, int thread) {
    uint64_t part[8] = {};
    for (const uint64_t* at = memory.data() + first * 4096; at < memory.data() + last * 4096; at += 8) {
      for (int i = 0; i < 8; ++i) part[i] += at[i];
    }
    for (const uint64_t sum : part) sums[static_cast<size_t>(thread)] += sum;
  });
  volatile uint64_t keep = sums[0];
  (void)keep;
  return static_cast<double>(count) * 8e-9 / (seconds() - begin);
}

constexpr int64_t kMultiplySteps = 200000;

#if defined(__x86_64__)
#define OPAQUE(x) __asm__ volatile("" : "+v"(x))
#else
#define OPAQUE(x) __asm__ volatile("" : "+w"(x))
#endif
#define MULTIPLY_BODY(bytes)                                                                 \
  typedef float Vector __attribute__((vector_size(bytes)));                                  \
  Vector x = Vector{} + start, y = x + 1e-3f, sums[12];                                      \
  _Pragma("GCC unroll 12") for (int i = 0; i < 12; ++i) sums[i] = x * static_cast<float>(i); \
  for (int64_t step = 0; step < kMultiplySteps; ++step) {                                    \
    OPAQUE(x);                                                                               \
    _Pragma("GCC unroll 12") for (int i = 0; i < 12; ++i) sums[i] = x * sums[i] + y;         \
  }                                                                                          \
  _Pragma("GCC unroll 12") for (int i = 1; i < 12; ++i) sums[0] += sums[i];                  \
  return sums[0][0];

#if defined(__x86_64__)
[[gnu::target("avx512f,fma"), gnu::optimize("O3", "fp-contract=fast")]] float multiply_avx512(float start) {
  MULTIPLY_BODY(64)
}
[[gnu::target("avx2,fma"), gnu::optimize("O3", "fp-contract=fast")]] float multiply_avx2(float start) {
  MULTIPLY_BODY(32)
}
#endif
[[gnu::optimize("O3", "fp-contract=fast")]] float multiply_any(float start) { MULTIPLY_BODY(16) }

// Billions of multiply-adds of float32 a second.
double fma_g_s(ThreadPool& threads) {
  float (*multiply)(float) = multiply_any;
  int lanes = 4;
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  if (features.has_all(CpuFeature::kAvx2)) multiply = multiply_avx2, lanes = 8;
  if (features.has_all(CpuFeature::kAvx512Vnni)) multiply = multiply_avx512, lanes = 16;
#endif
  constexpr int64_t kParts = 32;
  std::vector<float> results(kParts);
  const double begin = seconds();
  threads.parallel_for(kParts, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) results[static_cast<size_t>(i)] = multiply(0.5f);
  });
  volatile float keep = results[0];
  (void)keep;
  return static_cast<double>(kParts * kMultiplySteps * 12 * lanes) * 1e-9 / (seconds() - begin);
}

Tensor tensor_of(std::vector<float>& memory, std::initializer_list<int64_t> sizes) {
  Tensor tensor;
  for (const int64_t size : sizes) tensor.sizes[static_cast<size_t>(tensor.rank++)] = size;
  tensor.set_contiguous_strides();
  memory.resize(static_cast<size_t>(tensor.num_elements()));
  std::minstd_rand random(7);
  for (float& x : memory) x = static_cast<float>(random()) / 2147483648.0f - 0.5f;
  tensor.data = memory.data();
  return tensor;
}

// The caches of as many equal layers as it takes to be cold.
class Layers {
 public:
  Layers(const Shape& shape, KvType type, int64_t context) {
    KvCache cache;
    cache.type = type;
    cache.num_heads = shape.kv_heads;
    cache.head_dim = cache.value_head_dim = shape.head_dim;
    cache.capacity = context;
    page_bytes_ = static_cast<size_t>(cache.page_bytes().value());
    const auto num_pages = static_cast<size_t>(cache.num_pages());
    const auto count = std::max<size_t>(1, static_cast<size_t>(kColdBytes) / (num_pages * page_bytes_));
    memory_ = reserve_large_pages(count * num_pages * page_bytes_);  // as a session's full pages lie
    positions_.resize(count * static_cast<size_t>(cache.num_slots()), -1);
    pages_.resize(count * num_pages);
    for (size_t i = 0; i < pages_.size(); ++i) pages_[i] = memory_.get() + i * page_bytes_;
    for (size_t i = 0; i < count; ++i) {
      cache.pages = pages_.data() + i * num_pages;
      cache.positions = positions_.data() + i * static_cast<size_t>(cache.num_slots());
      caches.push_back(cache);
    }
  }
  // The first layer holds as many positions as it has slots: those below `count` again and again.
  void repeat_first(int64_t count) {
    KvCache& first = caches[0];
    const int64_t made = (count + kKvBlockSlots - 1) / kKvBlockSlots;
    const int64_t key_bytes = kv_key_block_bytes(first.type, first.head_dim);
    const int64_t value_bytes = kv_value_block_bytes(first.type, first.value_head_dim);
    const auto repeat = [&](int64_t offset, int64_t bytes) {
      const auto block = [&](int64_t i) { return first.pages[i / kKvPageBlocks] + offset + i % kKvPageBlocks * bytes; };
      for (int64_t i = made; i < first.num_slots() / kKvBlockSlots; ++i) {
        std::memcpy(block(i), block(i % made), static_cast<size_t>(bytes));
      }
    };
    for (int64_t head = 0; head < first.num_heads; ++head) {
      repeat(head * kKvPageBlocks * key_bytes, key_bytes);
      repeat(kKvPageBlocks * (first.num_heads * key_bytes + head * value_bytes), value_bytes);
    }
    for (int64_t i = 0; i < first.num_slots(); ++i) first.positions[i] = i;
  }
  // All layers hold what the first holds.
  void copy_first() {
    for (KvCache& cache : caches) {
      if (&cache == caches.data()) continue;
      std::memcpy(cache.pages[0], caches[0].pages[0], bytes_of_layer());
      std::copy_n(caches[0].positions, cache.num_slots(), cache.positions);
    }
  }
  double bytes() const { return static_cast<double>(bytes_of_layer()); }

  std::vector<KvCache> caches;

 private:
  size_t bytes_of_layer() const { return static_cast<size_t>(caches[0].num_pages()) * page_bytes_; }

  size_t page_bytes_ = 0;
  ReservedPages memory_;
  std::vector<std::byte*> pages_;
  std::vector<int64_t> positions_;
};

// A call of the op for tokens [begin, begin + tokens).
class Step {
 public:
  Step(const Shape& shape, int64_t begin, int64_t tokens, int num_threads) : op_(*find_op("mote.attention")) {
    const int dim = shape.head_dim;
    tensors_[0] = tensor_of(q_, {1, shape.heads, tokens, dim});
    tensors_[1] = tensor_of(k_, {1, shape.kv_heads, tokens, dim});
    tensors_[2] = tensor_of(v_, {1, shape.kv_heads, tokens, dim});
    out_ = tensor_of(out_memory_, {1, tokens, shape.heads, dim});
    for (int64_t t = 0; t < tokens; ++t) positions_.push_back(begin + t);
    tensors_[3].dtype = DType::kInt64;
    tensors_[3].rank = 2;
    tensors_[3].sizes = {1, tokens};
    tensors_[3].set_contiguous_strides();
    tensors_[3].data = positions_.data();
    for (int i = 0; i < 4; ++i) inputs_[i] = &tensors_[i];
    state_.is_kv_cache = true;
    state_.num_heads = shape.kv_heads;
    state_.head_dim = state_.value_head_dim = dim;
    call_.inputs = inputs_;
    call_.outputs = outputs_;
    call_.attributes = attributes_;
    call_.state_shapes = {&state_, 1};
    const Status status = op_.check(call_);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str()), std::exit(1);
    scratch_.resize(op_.scratch_bytes(call_, num_threads) + 64);
  }

  void run(KvCache& cache, ThreadPool& threads) {
    KernelContext context;
    context.threads = &threads;
    std::byte* aligned = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64);
    context.scratch = {aligned, scratch_.size() - 64};
    const SequenceStates sequence{tensors_[0].size(2), {&cache, 1}, {}};
    context.sequences = {&sequence, 1};
    const Status status = op_.run(call_, context);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str()), std::exit(1);
  }

 private:
  const Op& op_;
  std::vector<float> q_, k_, v_, out_memory_;
  std::vector<int64_t> positions_;
  Tensor tensors_[4], out_;
  const Tensor* inputs_[4];
  Tensor* outputs_[1] = {&out_};
  StateShape state_;
  const int64_t zero_[1] = {0};
  const double scale_[1] = {0.125};
  const Attribute attributes_[2] = {{"state", zero_, {}, {}}, {"scale", {}, scale_, {}}};
  Call call_;
  std::vector<std::byte> scratch_;
};

using Options = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

bool chosen(const Options& options, const char* name, const std::string& value) {
  const std::vector<std::string>& list = options.at(name);
  return std::find(list.begin(), list.end(), value) != list.end();
}

void time_case(const Shape& shape, const char* type, int64_t context, int64_t tokens, Layers& layers,
               ThreadPool& threads, int repeats) {
  Step step(shape, context - tokens, tokens, threads.num_threads());
  std::vector<double> times;
  size_t layer = 0;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    // Some milliseconds each: enough layers in decode, one or a few in prefill.
    const double begin = seconds();
    int runs = 0;
    for (; runs == 0 || seconds() - begin < 0.02; ++runs) {
      step.run(layers.caches[layer], threads);
      layer = (layer + 1) % layers.caches.size();
    }
    if (repeat >= 0) times.push_back((seconds() - begin) / runs);
  }
  const double pairs =
      static_cast<double>(tokens) * (static_cast<double>(context) - 0.5 * static_cast<double>(tokens - 1));
  const double macs = pairs * shape.heads * shape.head_dim * 2;
  std::printf(
      "{\"shape\": \"%s\", \"type\": \"%s\", \"context\": %lld, \"tokens\": %lld, \"threads\": %d, \"us\": %.2f, "
      "\"gb_s\": %.2f, \"gmac_s\": %.2f}\n",
      shape.name, type, static_cast<long long>(context), static_cast<long long>(tokens), threads.num_threads(),
      median(times) * 1e6, layers.bytes() * 1e-9 / median(times), macs * 1e-9 / median(times));
  std::fflush(stdout);
}

void print_limits(ThreadPool& threads, const std::vector<uint64_t>& memory) {
  std::vector<double> reads, products;
  for (int i = 0; i < 5; ++i) {
    reads.push_back(read_gb_s(threads, memory));
    products.push_back(fma_g_s(threads));
  }
  std::printf("{\"threads\": %d, \"read_gb_s\": %.2f, \"fma_gmac_s\": %.2f}\n", threads.num_threads(), median(reads),
              median(products));
}

int run(const Options& options) {
  const int repeats = std::stoi(options.at("--repeats")[0]);
  const std::vector<uint64_t> memory(static_cast<size_t>(kColdBytes) / 8, 1);
  std::vector<std::unique_ptr<ThreadPool>> pools;
  for (const std::string& threads : options.at("--threads"))
    pools.push_back(std::move(*make_thread_pool(std::stoi(threads))));
  for (const auto& pool : pools) print_limits(*pool, memory);
  for (const Shape& shape : kShapes) {
    for (int type = 0; type < 4; ++type) {
      if (!chosen(options, "--shapes", shape.name) || !chosen(options, "--types", kTypes[type])) continue;
      for (const std::string& text : options.at("--contexts")) {
        const int64_t context = std::stoll(text);
        Layers layers(shape, static_cast<KvType>(type), context);
        const int64_t made = std::min<int64_t>(context, 256);
        Step(shape, 0, made, pools[0]->num_threads()).run(layers.caches[0], *pools[0]);
        layers.repeat_first(made);
        layers.copy_first();
        for (const std::string& tokens : options.at("--tokens")) {
          for (const auto& pool : pools)
            time_case(shape, kTypes[type], context, std::stoll(tokens), layers, *pool, repeats);
        }
      }
    }
  }
  for (const auto& pool : pools) print_limits(*pool, memory);
  return 0;
}

}  // namespace
}  // namespace mote

int main(int argc, char** argv) {
  mote::Options options = {{"--threads", {"1", "2"}},       {"--types", {"float32", "float16", "int8", "int4"}},
                           {"--contexts", {"256", "2048"}}, {"--shapes", {"llama", "qwen"}},
                           {"--tokens", {"1", "256"}},      {"--repeats", {"5"}}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (options.count(argv[i]) == 0) return std::fprintf(stderr, "unknown option %s\n", argv[i]), 1;
    options[argv[i]] = mote::split(argv[i + 1]);
  }
  return mote::run(options);
}
