// Damaged blobs: each is refused with a message, planned, or run. Sanitizers and crashes are the failures.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>

#include "backends/vulkan/plan.h"
#include "base/memory.h"
#include "runner/program/delegates.h"
#include "runner/program/thread_pool.h"
#include "tests/backends/mutations.h"
#include "tests/fuzz/code_name.h"
#include "tests/kernels/harness.h"

namespace mote::vulkan::test {
namespace {

using mote::test::Owned;
using Bytes = std::vector<std::byte>;
using mote::test::below;
using mote::test::change_bytes;
using mote::test::changed;
using mote::test::changed_dim;
using mote::test::Random;

constexpr int kMutations = 2000;
constexpr int64_t kTokens = 5, kHeads = 4, kKvHeads = 2, kWidth = 16, kHidden = 64, kVocabulary = 48;

struct SizeOf {
  int64_t tokens = 0, constant = 0;
  SizeOf(int64_t number) : constant(number) {}  // NOLINT(google-explicit-constructor)
  SizeOf(int64_t factor, int64_t added) : tokens(factor), constant(added) {}
};
const SizeOf kT{1, 0};

// One layer of a decoder: every op, views that move heads, a cache.
class Decoder {
 public:
  Decoder() {
    const auto ids = value(fb::ValueKind::input, fb::Content::int64, {4, 0});
    const auto positions = value(fb::ValueKind::input, fb::Content::int64, {4, 0});
    const auto logits = value(fb::ValueKind::output, fb::Content::float32, {4 * kVocabulary, 0});
    const auto hidden = floats(kHidden), cos = floats(kWidth), sin = floats(kWidth), qkv = floats(128);
    node(fb::Op::embedding, {row(ids), weight(0, fb::Content::tiles)}, {rows(hidden, kHidden)});
    node(fb::Op::rope_table, {row(positions), weight(1, fb::Content::float32, {kWidth / 2})},
         {rows(cos, kWidth), rows(sin, kWidth)}, {0}, {1.0f});
    multiply(hidden, kHidden, 2, qkv, 128, fb::ViewT(), weight(3, fb::Content::float32, {kHidden}));
    const auto q = floats(kHeads * kWidth), k = floats(kKvHeads * kWidth), mixed = floats(kHeads * kWidth);
    node(fb::Op::rope, {heads(qkv, 0, kHeads), rows(cos, kWidth), rows(sin, kWidth)}, {whole(q, kHeads)}, {0});
    node(fb::Op::rope, {heads(qkv, 64, kKvHeads), rows(cos, kWidth), rows(sin, kWidth)}, {whole(k, kKvHeads)}, {0});
    fb::CacheT cache;
    cache.state = 3;
    cache.num_heads = kKvHeads;
    cache.head_dim = cache.value_head_dim = kWidth;
    graph_.caches.push_back(std::make_unique<fb::CacheT>(cache));
    node(fb::Op::attention, {whole(q, kHeads), whole(k, kKvHeads), heads(qkv, 96, kKvHeads), row(positions), {}, {}},
         {view(mixed, 0, {1, kT, kHeads, kWidth}, {SizeOf{64, 0}, 64, kWidth, 1})}, {3, 4, 1, 0}, {0.25f, 30.0f});
    node(fb::Op::heads,
         {heads(qkv, 0, kHeads),
          heads(qkv, 64, kKvHeads),
          heads(qkv, 96, kKvHeads),
          row(positions),
          {},
          {},
          rows(cos, kWidth),
          rows(sin, kWidth)},
         {whole(q, kHeads)}, {3, 0, 0, 1}, {0.0f, 0.0f, 1e-5f, 0.0f});
    const auto turned = floats(kHidden);
    node(fb::Op::rotate, {rows(mixed, kHidden)}, {rows(turned, kHidden)}, {0});
    node(fb::Op::rotate, {rows(turned, kHidden)}, {rows(mixed, kHidden)}, {1});
    const auto normed = floats(kHidden), gated = floats(48), summed = floats(48);
    node(fb::Op::norm, {rows(mixed, kHidden), weight(3, fb::Content::float32, {kHidden}), {}}, {rows(normed, kHidden)},
         {1}, {1e-5f, 0.0f});
    node(fb::Op::float_product, {rows(normed, kHidden), weight(4, fb::Content::dense), {}, {}}, {rows(gated, 48)},
         {1, 0});
    node(fb::Op::map, {four(gated, 48, 48), four(gated, 48, 0), {}}, {four(summed, 48, 48)}, {37}, {0.0f, 0.0f});
    multiply(normed, kHidden, 0, logits, kVocabulary, rows(summed, 48), {});
    const auto grouped = floats(128);
    std::vector<fb::ViewT> codes;
    for (const int64_t each : {2 * kHidden, 4 * kHidden / 32, 8 * kHidden / 32}) {
      codes.push_back(view(bytes(each), 0, {SizeOf{each, 0}}, {1}));
    }
    node(fb::Op::quantize_groups, {rows(normed, kHidden)}, codes);
    std::vector<fb::ViewT> inputs = codes;
    for (const auto& each : {weight(2, fb::Content::tiles), fb::ViewT(), fb::ViewT()}) inputs.push_back(each);
    node(fb::Op::group_product, inputs, {rows(grouped, 128)}, {0, 0});
    std::vector<fb::ViewT> rounded;
    for (const int64_t each : {256, 16, 32}) rounded.push_back(view(bytes(each), 0, {SizeOf{each, 0}}, {1}));
    node(fb::Op::quantize_groups, {rows(grouped, 128), {}}, rounded, {1}, {1e-5f, 0.0f});
    route(normed, codes);
    choose(qkv, q, positions, mixed);
  }

  Bytes build() const { return pack(graph_); }

  static Bytes pack(const fb::GraphT& graph) {
    flatbuffers::FlatBufferBuilder builder;
    fb::FinishGraphBuffer(builder, fb::Graph::Pack(builder, &graph));
    const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
    return Bytes(data, data + builder.GetSize());
  }

 private:
  using Sizes = std::vector<SizeOf>;

  int32_t value(fb::ValueKind kind, fb::Content content, SizeOf bytes, int32_t weight = -1) {
    auto made = std::make_unique<fb::ValueT>();
    made->kind = kind;
    made->content = content;
    made->bytes = std::make_unique<fb::Dim>(bytes.tokens, bytes.constant);
    made->weight = weight;
    if (kind == fb::ValueKind::scratch) {
      made->slot = static_cast<int32_t>(graph_.slots.size());
      graph_.slots.emplace_back(bytes.tokens, bytes.constant);
    }
    graph_.values.push_back(std::move(made));
    return static_cast<int32_t>(graph_.values.size()) - 1;
  }
  int32_t floats(int64_t columns) { return value(fb::ValueKind::scratch, fb::Content::float32, {4 * columns, 0}); }
  int32_t bytes(int64_t each) { return value(fb::ValueKind::scratch, fb::Content::bytes, {each, 0}); }

  static fb::ViewT view(int32_t value, int64_t offset, const Sizes& sizes, const Sizes& strides) {
    fb::ViewT made;
    made.value = value;
    made.offset = std::make_unique<fb::Dim>(0, offset);
    for (const SizeOf& size : sizes) made.sizes.emplace_back(size.tokens, size.constant);
    for (const SizeOf& stride : strides) made.strides.emplace_back(stride.tokens, stride.constant);
    return made;
  }
  fb::ViewT weight(int32_t index, fb::Content content, const Sizes& sizes = {}) {
    const int32_t made = value(fb::ValueKind::weight, content, 0, index);
    return view(made, 0, sizes, Sizes(sizes.size(), 1));
  }
  static fb::ViewT row(int32_t value) { return view(value, 0, {1, kT}, {kT, 1}); }
  static fb::ViewT rows(int32_t value, int64_t columns) {
    return view(value, 0, {1, kT, columns}, {SizeOf{columns, 0}, columns, 1});
  }
  static fb::ViewT heads(int32_t value, int64_t offset, int64_t count) {
    return view(value, offset, {1, count, kT, kWidth}, {SizeOf{128, 0}, kWidth, 128, 1});
  }
  static fb::ViewT whole(int32_t value, int64_t count) {
    return view(value, 0, {1, count, kT, kWidth}, {SizeOf{count * kWidth, 0}, SizeOf{kWidth, 0}, kWidth, 1});
  }
  static fb::ViewT four(int32_t value, int64_t columns, int64_t stride) {
    return view(value, 0, {1, 1, kT, columns}, {0, 0, stride, 1});
  }

  void node(fb::Op op, const std::vector<fb::ViewT>& inputs, const std::vector<fb::ViewT>& outputs,
            const std::vector<int64_t>& integers = {}, const std::vector<float>& numbers = {}) {
    auto made = std::make_unique<fb::NodeT>();
    made->op = op;
    for (const auto& input : inputs) made->inputs.push_back(std::make_unique<fb::ViewT>(input));
    for (const auto& output : outputs) made->outputs.push_back(std::make_unique<fb::ViewT>(output));
    made->integers = integers;
    made->numbers = numbers;
    graph_.nodes.push_back(std::move(made));
  }

  void multiply(int32_t x, int64_t columns, int32_t index, int32_t y, int64_t out, const fb::ViewT& residual,
                const fb::ViewT& norm_weight) {
    std::vector<fb::ViewT> codes;
    for (const int64_t each : {2 * columns, int64_t{8}, 4 * columns / 32}) {
      codes.push_back(view(bytes(each), 0, {SizeOf{each, 0}}, {1}));
    }
    std::vector<fb::ViewT> inputs = codes;
    const bool has_norm = norm_weight.value >= 0;
    if (!has_norm) codes.push_back(rows(floats(columns), columns));
    node(fb::Op::quantize, {rows(x, columns), norm_weight}, codes, {has_norm, !has_norm, !has_norm}, {1e-5f, 0.0f});
    for (const auto& each : {weight(index, fb::Content::tiles), fb::ViewT(), residual}) inputs.push_back(each);
    node(fb::Op::product, inputs, {rows(y, out)}, {0, 0});
  }

  // Experts as a router chooses them, and a convolution.
  void route(int32_t x, const std::vector<fb::ViewT>& codes) {
    const auto scores = floats(4), shares = floats(4), best = floats(2), picked = floats(2), total = floats(1);
    const auto chosen = value(fb::ValueKind::scratch, fb::Content::int64, {8, 0});
    const auto hidden = floats(128), mean = floats(kHidden);
    node(fb::Op::float_product, {rows(x, kHidden), weight(5, fb::Content::dense), {}, {}}, {rows(scores, 4)}, {0, 0});
    node(fb::Op::softmax, {rows(scores, 4)}, {rows(shares, 4)}, {0});
    node(fb::Op::top, {rows(shares, 4)}, {rows(best, 2), rows(chosen, 2)}, {2, 0});
    node(fb::Op::pick, {four(shares, 4, 4), four(chosen, 2, 2)}, {rows(picked, 2)}, {3});
    node(fb::Op::scatter, {four(shares, 4, 4), four(chosen, 2, 2), four(picked, 2, 2)}, {rows(scores, 4)}, {3});
    node(fb::Op::reduce, {rows(picked, 2)}, {rows(total, 1)}, {0});
    std::vector<fb::ViewT> inputs = codes;
    for (const auto& each : {weight(6, fb::Content::tiles), fb::ViewT(), rows(chosen, 2)}) inputs.push_back(each);
    node(fb::Op::group_product, inputs, {rows(hidden, 128)}, {0, 2});
    node(fb::Op::matmul,
         {view(best, 0, {1, kT, 1, 2}, {SizeOf{2, 0}, 2, 2, 1}),
          view(hidden, 0, {1, kT, 2, 64}, {SizeOf{128, 0}, 128, 64, 1})},
         {rows(mean, kHidden)});
    fb::HistoryT history;
    history.state = 5;
    history.rows = 2;
    history.columns = kHidden;
    graph_.histories.push_back(std::make_unique<fb::HistoryT>(history));
    node(fb::Op::short_conv, {rows(mean, kHidden), weight(7, fb::Content::float32, {3 * kHidden}), {}},
         {rows(x, kHidden)}, {5});
    attend_linearly(hidden, mean);
  }

  // Attention to keys that tokens choose, with biases, in chunks.
  void choose(int32_t qkv, int32_t q, int32_t positions, int32_t y) {
    fb::CacheT cache;
    cache.state = 7;
    cache.num_heads = cache.value_head_dim = 1;
    cache.head_dim = kWidth;
    graph_.caches.push_back(std::make_unique<fb::CacheT>(cache));
    const auto chosen = value(fb::ValueKind::scratch, fb::Content::int64, {12, 0}), biases = floats(32);
    const auto of_chosen = view(chosen, 0, {1, kT, 1, 3}, {SizeOf{3, 0}, 3, 3, 1});
    node(fb::Op::indexer, {heads(qkv, 0, kHeads), heads(qkv, 64, 1), row(positions), {}}, {of_chosen}, {7, 3, 1});
    node(fb::Op::indexer, {heads(qkv, 0, kHeads), heads(qkv, 64, 1), row(positions), {}}, {of_chosen}, {7, 3, 2, 1});
    node(fb::Op::attention,
         {whole(q, kHeads),
          {},
          {},
          row(positions),
          {},
          {},
          of_chosen,
          view(biases, 0, {1, kT, kHeads, 8}, {SizeOf{32, 0}, 32, 8, 1})},
         {view(y, 0, {1, kT, kHeads, kWidth}, {SizeOf{64, 0}, 64, kWidth, 1})}, {3, 4, 1, 0, 1}, {0.25f, 0.0f});
    attend_to_latents(qkv, q, positions);
  }

  // Attention whose values are parts of its keys, and a matrix for each head of what comes of it.
  void attend_to_latents(int32_t qkv, int32_t q, int32_t positions) {
    fb::CacheT cache;
    cache.state = 8;
    cache.num_heads = 1;
    cache.head_dim = kWidth;
    cache.value_head_dim = 0;
    graph_.caches.push_back(std::make_unique<fb::CacheT>(cache));
    const auto mixed = floats(32), wide = floats(4 * kHidden), heads_of = floats(4 * kHidden);
    const auto sums = floats(kHeads);
    node(fb::Op::attention, {whole(q, kHeads), heads(qkv, 64, 1), {}, row(positions), {}, {}, {}, {}},
         {view(mixed, 0, {1, kT, kHeads, 8}, {SizeOf{32, 0}, 32, 8, 1}), rows(sums, kHeads)}, {8, 0, 0, 0, 0, 3},
         {0.25f, 0.0f});
    const auto halves = [&](int64_t offset, int64_t count) {
      return view(qkv, offset, {1, count, kT, 8}, {SizeOf{128, 0}, kWidth, 128, 1});
    };
    const auto cos = rows(floats(8), 8), sin = rows(floats(8), 8);
    node(fb::Op::latent_heads,
         {halves(0, kHeads), halves(8, kHeads), halves(64, 1), halves(72, 1), row(positions),
          weight(3, fb::Content::float32, {8}), cos, sin},
         {whole(q, kHeads)}, {8, 0, 1, 1, 0}, {1e-5f, 0.0f});
    const auto by_heads = [&](int32_t value) {
      return view(value, 0, {1, SizeOf{4, 0}, kHidden}, {SizeOf{4 * kHidden, 0}, kHidden, 1});
    };
    node(fb::Op::float_product, {by_heads(wide), weight(6, fb::Content::tiles), {}, {}}, {by_heads(heads_of)}, {0, -1});
  }

  // Two heads of keys and values of 4 heads, 16 wide, out of 128 columns.
  void attend_linearly(int32_t x, int32_t y) {
    fb::RecurrenceT recurrence;
    recurrence.state = 6;
    recurrence.key_heads = 2;
    recurrence.heads = 4;
    recurrence.rows = recurrence.width = 16;
    recurrence.decays = 1;
    graph_.recurrences.push_back(std::make_unique<fb::RecurrenceT>(recurrence));
    const auto part = [&](int64_t offset, const Sizes& sizes, const Sizes& strides) {
      Sizes all = {1, kT}, steps = {0, 128};
      all.insert(all.end(), sizes.begin(), sizes.end());
      steps.insert(steps.end(), strides.begin(), strides.end());
      return view(x, offset, all, steps);
    };
    node(fb::Op::linear_attention,
         {part(0, {2, 16}, {16, 1}), part(32, {2, 16}, {16, 1}), part(64, {4, 16}, {16, 1}), part(0, {4}, {1}),
          part(4, {4}, {1})},
         {rows(y, kHidden)}, {6});
  }

  fb::GraphT graph_;
};

void change_view(fb::ViewT& view, Random& random) {
  auto& list = below(random, 2) == 0 ? view.sizes : view.strides;
  switch (below(random, 4)) {
    case 0: view.value = static_cast<int32_t>(below(random, 32)) - 1; break;
    case 1: view.offset = std::make_unique<fb::Dim>(changed_dim(fb::Dim(0, 0), random)); break;
    case 2: list.resize(below(random, 8), fb::Dim(0, 1)); break;
    default:
      if (!list.empty()) {
        fb::Dim& dim = list[below(random, list.size())];
        dim = changed_dim(dim, random);
      }
  }
}

void change_graph(fb::GraphT& graph, Random& random) {
  fb::NodeT& node = *graph.nodes[below(random, graph.nodes.size())];
  fb::ValueT& value = *graph.values[below(random, graph.values.size())];
  switch (below(random, 14)) {
    case 0: value.kind = static_cast<fb::ValueKind>(below(random, 5)); break;
    case 1: value.content = static_cast<fb::Content>(below(random, 7)); break;
    case 2: value.weight = changed(value.weight, random); break;
    case 3: value.slot = changed(value.slot, random); break;
    case 4: *value.bytes = changed_dim(*value.bytes, random); break;
    case 5: {
      fb::Dim& slot = graph.slots[below(random, graph.slots.size())];
      slot = changed_dim(slot, random);
      break;
    }
    case 6: graph.caches[0]->num_heads = changed(graph.caches[0]->num_heads, random); break;
    case 7: graph.caches[0]->head_dim = changed(graph.caches[0]->head_dim, random); break;
    case 8: node.op = static_cast<fb::Op>(below(random, 23)); break;
    case 9:
      if (!node.integers.empty()) {
        int64_t& integer = node.integers[below(random, node.integers.size())];
        integer = changed(integer, random);
      }
      break;
    case 10: {
      fb::HistoryT& history = *graph.histories[0];
      int32_t* fields[] = {&history.state, &history.rows, &history.columns};
      int32_t& field = *fields[below(random, 3)];
      field = changed(field, random);
      break;
    }
    case 11: {
      fb::RecurrenceT& recurrence = *graph.recurrences[0];
      int32_t* fields[] = {&recurrence.state, &recurrence.key_heads, &recurrence.heads,
                           &recurrence.rows,  &recurrence.width,     &recurrence.decays};
      int32_t& field = *fields[below(random, 6)];
      field = changed(field, random);
      break;
    }
    default: {
      auto& list = below(random, 3) == 0 ? node.outputs : node.inputs;
      change_view(*list[below(random, list.size())], random);
    }
  }
}

Bytes change_fields(const Bytes& blob, Random& random) {
  const auto graph = fb::UnPackGraph(blob.data());
  for (size_t count = 1 + below(random, 3); count > 0; --count) change_graph(*graph, random);
  return Decoder::pack(*graph);
}

// What the part of a file is.
class Part {
 public:
  Part() {
    weights_.push_back(mote::test::random_tiles({kVocabulary, kHidden}, 8, 32, 1).owned);
    weights_.push_back(mote::test::random_floats({kWidth / 2}, 2));
    weights_.push_back(mote::test::random_tiles({128, kHidden}, 4, 32, 3).owned);
    weights_.push_back(mote::test::random_floats({kHidden}, 4));
    weights_.push_back(mote::test::random_floats({96, kHidden}, 5));
    weights_.push_back(mote::test::random_floats({4, kHidden}, 6));
    weights_.push_back(mote::test::random_tiles({4, kHidden, kHidden}, 4, 32, 7).owned);
    weights_.push_back(mote::test::random_floats({3 * kHidden}, 8));
  }

  DelegatePart of(const Bytes& blob) {
    memory_ = allocate_aligned(blob.size());
    std::copy(blob.begin(), blob.end(), memory_.get());
    DelegatePart part;
    part.place = "test.mote: delegates[0] (vulkan)";
    part.blob = {memory_.get(), blob.size()};
    for (size_t i = 0; i < weights_.size(); ++i)
      part.weights.push_back({static_cast<uint32_t>(i), "w", weights_[i].tensor});
    return part;
  }

  // As a device would have them.
  std::vector<const DeviceWeight*> device_weights() {
    std::vector<const DeviceWeight*> made;
    for (const Owned& weight : weights_) {
      DeviceWeight& device = device_weights_.emplace_back();
      device.tensor = weight.tensor;
      device.stack_rows = weight.tensor.rank == 3 ? weight.tensor.size(1) : 0;
      const int64_t rows = weight.tensor.size(0) * std::max<int64_t>(device.stack_rows, 1);
      device.pieces.push_back({0, rows, 0, weight.bytes.size()});
      made.push_back(&device);
    }
    return made;
  }

 private:
  std::deque<Owned> weights_;
  std::deque<DeviceWeight> device_weights_;
  AlignedMemory memory_;
};

DeviceTraits ordinary_device() {
  DeviceTraits device;
  for (uint32_t& count : device.limits.maxComputeWorkGroupCount) count = 65535;
  device.limits.maxComputeSharedMemorySize = 16384;
  device.history_rows = 20000;
  device.recorded_rows = 96;
  return device;
}

Status planned(const DelegatePart& part, const std::vector<const DeviceWeight*>& weights) {
  MOTE_ASSIGN(const Graph graph, verify_graph(part));
  for (const int64_t tokens : {int64_t{1}, kTokens, int64_t{257}, int64_t{20000}}) {
    MOTE_RETURN_IF_ERROR(make_plan(graph, weights, tokens, 2, ordinary_device()).status());
  }
  return {};
}

TEST(VulkanMutations, areRefusedOrPlanned) {
  Part part;
  const std::vector<const DeviceWeight*> weights = part.device_weights();
  const Bytes blob = Decoder().build();
  const Status undamaged = planned(part.of(blob), weights);
  ASSERT_TRUE(undamaged.ok()) << undamaged.message();
  const char* wanted = std::getenv("MOTE_FUZZ_ITERATIONS");
  const int num_mutations = wanted == nullptr ? kMutations : std::atoi(wanted);
  std::map<std::string, int> outcomes;
  for (int i = 0; i < num_mutations; ++i) {
    Random random(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u);
    const Status status =
        planned(part.of(i % 4 == 0 ? change_bytes(blob, random) : change_fields(blob, random)), weights);
    ++outcomes[status.ok() ? "planned" : code_name(status.code())];
    ASSERT_TRUE(status.ok() || !status.message().empty()) << "mutation " << i;
  }
  for (const auto& [outcome, count] : outcomes) std::printf("%s %d\n", outcome.c_str(), count);
  EXPECT_GT(outcomes["planned"], num_mutations / 100);
  EXPECT_GT(outcomes["invalid program"], num_mutations / 2);
}

Status run(const Backend& backend, DelegatePart part, ThreadPool* pool) {
  DelegateSource source;
  source.parts.push_back(std::move(part));
  MOTE_ASSIGN(const auto program, backend.load(std::move(source)));
  MOTE_ASSIGN(const auto delegate, program->open({.threads = pool, .max_tokens = 64, .context_length = 64}));
  Owned ids = mote::test::make(DType::kInt64, {1, kTokens}), positions = mote::test::make(DType::kInt64, {1, kTokens});
  Owned logits = mote::test::make(DType::kFloat32, {1, kTokens, kVocabulary});
  for (int64_t t = 0; t < kTokens; ++t) {
    ids.as<int64_t>()[t] = 7 * t;
    positions.as<int64_t>()[t] = t;
  }
  const std::vector<const Tensor*> ins = {&ids.tensor, &positions.tensor};
  std::vector<Tensor*> outs = {&logits.tensor};
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  KernelContext context;
  context.threads = pool;
  MOTE_RETURN_IF_ERROR(delegate->prepare(0, call, kTokens).status());
  MOTE_RETURN_IF_ERROR(delegate->execute(0, call, context));
  for (int64_t i = 0; i < logits.count(); ++i) {
    MOTE_REQUIRE(!std::isnan(logits.as<float>()[i]), Code::kInternal, "logits[%lld] is NaN", static_cast<long long>(i));
  }
  return {};
}

// What the plan lets pass runs on the device. Each may need shaders of its own, which take a while to compile: so some
// do.
TEST(VulkanMutations, thatArePlannedRun) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "drivers are not instrumented";
#endif
  const Backend* backend = find_backend("vulkan");
  if (const Status device = backend->check_device(); !device.ok()) GTEST_SKIP() << device.message();
  Part part;
  const std::vector<const DeviceWeight*> weights = part.device_weights();
  const Bytes blob = Decoder().build();
  const auto pool = *make_thread_pool(1);
  const Status undamaged = run(*backend, part.of(blob), pool.get());
  ASSERT_TRUE(undamaged.ok()) << undamaged.message();
  int num_run = 0;
  for (int i = 0; i < kMutations && num_run < 12; ++i) {
    Random random(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u);
    const Bytes damaged = i % 4 == 0 ? change_bytes(blob, random) : change_fields(blob, random);
    if (!planned(part.of(damaged), weights).ok()) continue;
    ++num_run;
    const Status status = run(*backend, part.of(damaged), pool.get());
    EXPECT_TRUE(status.ok() || !status.message().empty()) << "mutation " << i;
  }
  EXPECT_EQ(num_run, 12);
}

}  // namespace
}  // namespace mote::vulkan::test
