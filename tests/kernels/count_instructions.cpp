// Counts the instructions that some ops run on this CPU, one by one: the processor's trap flag interrupts after each.
// No counter of the CPU is needed, which virtual machines mostly hide, and no emulator, which knows not all of them.
//   count_instructions            prints {"features", "compiler", "counts": {case: instructions}}
//   count_instructions features   prints it without counts
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "kernels/machine/cpu_features.h"
#include "tests/kernels/attention_harness.h"
#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

constexpr int64_t kRows = 64, kColumns = 256;
constexpr int64_t kPrompt = 17;  // tokens: one more than kernels of few tokens take

volatile int64_t steps = 0;
void count_step(int) { steps = steps + 1; }

// Functions of their own, which keep nothing below the stack pointer, where pushfq writes.
[[gnu::noinline]] void begin_steps() { asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc"); }
[[gnu::noinline]] void end_steps() { asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc"); }

// The calling thread does everything.
class OneThread : public ThreadPool {
 public:
  int num_threads() const override { return 1; }
  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t, int)>& body) override {
    if (count > 0) body(0, count, 0);
  }
};

void require(const Status& status, const std::string& name) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", name.c_str(), status.message().c_str());
  std::exit(1);
}

// Prints how many instructions the op's second run takes: the first one finds symbols and fills what is kept.
void count(const std::string& name, const std::string& op_name, OpCall& call, std::vector<KvCache>* caches = nullptr) {
  require(call.check(), name);
  const Op& op = *find_op(op_name);
  std::vector<std::byte> memory((op.scratch_bytes == nullptr ? 0 : op.scratch_bytes(call.call(), 1)) + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  OneThread pool;
  KernelContext context;
  context.threads = &pool;
  context.scratch = {aligned, memory.size() - 64};
  SequenceStates sequence;
  if (caches != nullptr) {
    sequence = {call.result().tensor.size(1), *caches, {}};
    context.sequences = {&sequence, 1};
  }
  require(op.run(call.call(), context), name);
  steps = 0;
  begin_steps();
  const Status status = op.run(call.call(), context);
  end_steps();
  require(status, name);
  static bool is_first = true;
  std::printf("%s\n\"%s\": %lld", is_first ? "" : ",", name.c_str(), static_cast<long long>(steps));
  is_first = false;
}

void count_linear(const std::string& name, const Owned& weight, const std::string& activations,
                  std::initializer_list<int64_t> numbers_of_tokens) {
  for (const int64_t tokens : numbers_of_tokens) {
    const Owned x = random_floats({tokens, kColumns}, 1);
    OpCall call("mote.linear");
    call.input(x).input(weight).output(DType::kFloat32, {tokens, kRows}).text("activations", activations);
    count("linear " + name + ", " + activations + ", " + std::to_string(tokens) + " tokens", "mote.linear", call);
  }
}

void count_products() {
  for (const int bits : {4, 8}) {
    const Tiles weight = random_tiles({kRows, kColumns}, bits, 32, 2);
    const std::string name = std::to_string(bits) + " bits";
    count_linear(name, weight.owned, "rotated_int8", {1, 4, kPrompt});
    count_linear(name, weight.owned, "float", {1, 4});
  }
  count_linear("5 bits", random_tiles({kRows, kColumns}, 5, 32, 2).owned, "rotated_int8", {1, kPrompt});
  static constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static constexpr int8_t kFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const struct {
    const char* name;
    TileScales scales;
    int64_t tokens;
  } kinds[] = {{"float16 scales", {32, WeightOffset::kNone, false, nullptr}, 1},
               {"float16 scales", {32, WeightOffset::kNone, false, nullptr}, kPrompt},
               {"minimums", {32, WeightOffset::kMinimum, false, nullptr}, 1},
               {"codebook", {32, WeightOffset::kNone, false, kCodebook}, 1},
               {"codebook", {32, WeightOffset::kNone, false, kCodebook}, kPrompt},
               {"fp4", {32, WeightOffset::kNone, true, kFp4}, 1},
               {"blocks of 256", {256, WeightOffset::kNone, false, nullptr}, 1}};
  for (const auto& kind : kinds) {
    const Tiles weight = random_tiles({kRows, kColumns}, 4, 32, kind.scales, 2);
    count_linear(std::string("4 bits, ") + kind.name, weight.owned, "grouped_int8", {kind.tokens});
  }
  const Owned dense = random_floats({kRows, kColumns}, 2);
  count_linear("float16", narrow(dense, DType::kFloat16), "float", {1, 4});
}

void count_attention_of(const std::string& name, const Setting& s, int64_t tokens) {
  const int64_t before = 56;
  const Sequence sequence = random_sequence(s, before + tokens, 1);
  Cache cache(s, before + tokens);
  require(attend(s, sequence, cache, 0, before, 1, nullptr), name);
  std::vector<int64_t> positions;
  for (int64_t p = before; p < before + tokens; ++p) positions.push_back(p);
  const Owned where = integers({1, tokens}, positions);
  const Owned q = tokens_of(sequence.q, before, before + tokens), k = tokens_of(sequence.k, before, before + tokens),
              v = tokens_of(sequence.v, before, before + tokens);
  OpCall call("mote.attention");
  call.input(q).input(k);
  if (s.values_in_keys) {
    call.absent().integers("value_dim", {s.value_dim});
  } else {
    call.input(v);
  }
  call.input(where).absent().absent();
  call.output(DType::kFloat32, {1, tokens, s.heads, s.value_dim}).state(state_shape(s)).caches(&cache.caches);
  call.integers("state", {0}).number("scale", 0.3).integers("window", {0}).number("softcap", 0);
  count(name, "mote.attention", call, &cache.caches);
}

void count_attention() {
  const struct {
    const char* name;
    KvType type;
  } types[] = {
      {"float32", KvType::kFloat32}, {"float16", KvType::kFloat16}, {"int8", KvType::kInt8}, {"int4", KvType::kInt4}};
  for (const auto& [type_name, type] : types) {
    for (const int64_t tokens : {1, 8}) {
      const Setting s{.name = "", .heads = 2, .kv_heads = 1, .head_dim = 64, .value_dim = 64, .type = type};
      count_attention_of(std::string("attention ") + type_name + ", " + std::to_string(tokens) + " tokens", s, tokens);
    }
  }
  const Setting latent{.name = "",
                       .heads = 16,
                       .kv_heads = 1,
                       .head_dim = 80,
                       .value_dim = 64,
                       .type = KvType::kFloat16,
                       .values_in_keys = true};
  count_attention_of("attention over a latent, float16, 1 tokens", latent, 1);
}

void count_others() {
  const int64_t tokens = 4;
  const Owned x = random_floats({1, tokens, kColumns}, 1), weight = random_floats({kColumns}, 2);
  OpCall norm("mote.rms_norm");
  norm.input(x).input(weight).output(DType::kFloat32, {1, tokens, kColumns});
  norm.number("eps", 1e-5).integers("unit_offset", {0});
  count("rms_norm", "mote.rms_norm", norm);
  const Owned heads = random_floats({1, 4, tokens, 64}, 3), cos = random_floats({1, tokens, 64}, 4);
  OpCall rope("mote.rope");
  rope.input(heads).input(cos).input(cos).output(DType::kFloat32, {1, 4, tokens, 64}).text("layout", "half");
  count("rope", "mote.rope", rope);
  const Tiles gates = random_tiles({2 * kRows, kColumns}, 4, 32, 5);
  OpCall gated("mote.gated_linear");
  gated.input(x).input(gates.owned).absent().output(DType::kFloat32, {1, tokens, kRows});
  gated.text("activations", "rotated_int8").text("function", "silu");
  count("gated_linear", "mote.gated_linear", gated);
}

int run(bool counts) {
  std::signal(SIGTRAP, count_step);
  std::printf("{\"features\": \"%s\", \"compiler\": \"%s\", \"counts\": {", to_string(*cpu_features()).c_str(),
              MOTE_COMPILER);
  if (counts) {
    count_products();
    count_attention();
    count_others();
  }
  std::printf("\n}}\n");
  return 0;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char**) { return mote::test::run(argc == 1); }
