#include "tests/runner/program/tiny_model.h"

#include <random>

#include "kernels/formats.h"

namespace mote::test {
namespace {

constexpr int64_t kHeadDim = 16;
constexpr int32_t kGroup = 32;
constexpr float kScale = 0x1p-10f;

struct Dimensions {
  int64_t hidden;
  int64_t heads;
  int64_t kv_heads;
  int64_t ffn;

  explicit Dimensions(int64_t width) : hidden(32 * width), heads(2 * width), kv_heads(width), ffn(32 * width) {}
  int64_t qkv() const { return (heads + 2 * kv_heads) * kHeadDim; }
};

struct Weights {
  int32_t embedding = 0;
  int32_t norm = 0;
  int32_t inv_freq = 0;
  int32_t qkv = 0;
  int32_t out = 0;
  int32_t gate_up = 0;
  int32_t down = 0;
};

// Tiles of [rows, columns] with random codes and multipliers and one scale.
int32_t random_tiles(ProgramBuilder& builder, std::mt19937& random, const std::string& name, int64_t rows,
                     int64_t columns, uint8_t bits) {
  const auto block = static_cast<size_t>(block_bytes(bits, kGroup, columns / kGroup));
  Bytes bytes(static_cast<size_t>((rows + kTileRows - 1) / kTileRows) * block);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto tile = static_cast<size_t>(tile_bytes(bits, kGroup));
  const auto most = static_cast<unsigned>(weight_format(bits).max_multiplier);
  for (size_t begin = 0; begin < bytes.size(); begin += block) {
    for (size_t end = tile; end < block; end += tile) {
      for (size_t row = 1; row <= kTileRows; ++row) {
        bytes[begin + end - row] =
            static_cast<std::byte>(static_cast<int>(random() % (2 * most + 1)) - static_cast<int>(most));
      }
    }
  }
  for (size_t end = block; end <= bytes.size(); end += block) {
    for (size_t row = 1; row <= kTileRows; ++row) put(bytes, end - 4 * row, kScale);
  }
  return builder.quantized_weight(name, {rows, columns}, bits, kGroup, bytes);
}

Weights add_weights(ProgramBuilder& builder, const TinyModelOptions& options) {
  std::mt19937 random(options.seed);
  const Dimensions size(options.width);
  Weights weights;
  weights.embedding = random_tiles(builder, random, "model.embed_tokens.weight", options.vocab_size, size.hidden, 8);
  weights.norm = builder.dense_weight("model.norm.weight", fb::DType::float32, {size.hidden},
                                      std::vector<float>(static_cast<size_t>(size.hidden), 1.25f));
  std::vector<float> inv_freq;
  for (int i = 0; i < kHeadDim / 2; ++i) inv_freq.push_back(1.0f / static_cast<float>(1 << i));
  weights.inv_freq = builder.dense_weight("model.rotary_emb.inv_freq", fb::DType::float32, {kHeadDim / 2}, inv_freq);
  weights.qkv = random_tiles(builder, random, "model.layers.0.self_attn.qkv", size.qkv(), size.hidden, 4);
  weights.out =
      random_tiles(builder, random, "model.layers.0.self_attn.o_proj.weight", size.hidden, size.heads * kHeadDim, 4);
  weights.gate_up = random_tiles(builder, random, "model.layers.0.mlp.gate_up", 2 * size.ffn, size.hidden, 4);
  weights.down = random_tiles(builder, random, "model.layers.0.mlp.down_proj.weight", size.hidden, size.ffn, 4);
  return weights;
}

Shape rows(int64_t width) { return {constant(1), tokens(), constant(width)}; }

// One method: what each step of the layer appends to it.
class Layer {
 public:
  Layer(ProgramBuilder& builder, const Weights& weights, const std::string& name, int32_t max_tokens,
        const TinyModelOptions& options)
      : builder_(builder),
        program_(builder.program),
        weights_(weights),
        method_(builder.method(name, max_tokens)),
        window_(options.window),
        with_delegates_(options.delegates),
        size_(options.width) {}

  void build(bool every_token) {
    const int32_t ids = method_.input("input_ids", fb::DType::int64, {constant(1), tokens()});
    const int32_t positions = method_.input("position_ids", fb::DType::int64, {constant(1), tokens()});
    const int32_t embedding = method_.weight(program_, weights_.embedding);
    int32_t x = method_.emit("mote.embedding", {ids, embedding}, method_.activation(rows(size_.hidden)));
    if (with_delegates_) x = delegate(x);
    x = attention(x, positions);
    const int32_t gated = method_.emit("mote.gated_linear", {norm(x), method_.weight(program_, weights_.gate_up), -1},
                                       method_.activation(rows(size_.ffn)), text_attribute("activations", "int8"),
                                       text_attribute("function", "silu"));
    x = linear(gated, weights_.down, size_.hidden, x);
    Shape logits = {constant(1), tokens(), constant(program_.vocab_size)};
    if (!every_token) {
      x = slice(x, 1, {1, -1}, {1, 0}, {constant(1), constant(1), constant(size_.hidden)});
      logits[1] = constant(1);
    }
    const int32_t output = method_.activation(logits);
    method_.emit("mote.linear", {x, embedding, -1, -1}, output, text_attribute("activations", "int8"));
    program_.methods.back()->outputs = {output};
  }

 private:
  int32_t norm(int32_t x) {
    return method_.emit("mote.rms_norm", {x, method_.weight(program_, weights_.norm)},
                        method_.activation(rows(size_.hidden)), number_attribute("eps", 1e-6),
                        integer_attribute("unit_offset", 0));
  }

  // 0.5 (x + x) + norm
  int32_t delegate(int32_t x) {
    Bytes factor(sizeof(float));
    put(factor, 0, 0.5f);
    const int32_t index = builder_.delegate("fake", {weights_.norm}, factor);
    return method_.emit("mote.delegate", {x, x}, method_.activation(rows(size_.hidden)),
                        integer_attribute("delegate", index));
  }

  int32_t linear(int32_t x, int32_t weight, int64_t width, int32_t residual) {
    return method_.emit("mote.linear", {x, method_.weight(program_, weight), -1, residual},
                        method_.activation(rows(width)), text_attribute("activations", "int8"));
  }

  int32_t slice(int32_t x, int64_t dim, fb::Dim start, fb::Dim end, Shape shape) {
    return method_.emit("aten.slice", {x}, method_.view_of(x, std::move(shape)), integer_attribute("dim", dim),
                        dims_attribute("start", {start}), dims_attribute("end", {end}), integer_attribute("step", 1));
  }

  // Columns [first, first + heads * head_dim) of x as [1, heads, T, head_dim]. `base` owns the storage of x.
  int32_t heads_of(int32_t base, int64_t first, int64_t heads) {
    const int64_t width = heads * kHeadDim;
    const Shape split = {constant(1), tokens(), constant(heads), constant(kHeadDim)};
    const int32_t columns = slice(base, 2, constant(first), constant(first + width), rows(width));
    const int32_t viewed =
        method_.emit("aten.view", {columns}, method_.view_of(base, split), dims_attribute("size", split));
    return method_.emit("aten.permute", {viewed}, method_.view_of(base, {split[0], split[2], split[1], split[3]}),
                        dims_attribute("dims", {constant(0), constant(2), constant(1), constant(3)}));
  }

  int32_t rope(int32_t x, int64_t heads, int32_t cos, int32_t sin) {
    return method_.emit("mote.rope", {x, cos, sin},
                        method_.activation({constant(1), constant(heads), tokens(), constant(kHeadDim)}),
                        text_attribute("layout", "half"));
  }

  int32_t attention(int32_t x, int32_t positions) {
    const int32_t cos = method_.activation(rows(kHeadDim));
    const int32_t sin = method_.activation(rows(kHeadDim));
    method_.emit_all("mote.rope_table", {positions, method_.weight(program_, weights_.inv_freq)}, {cos, sin},
                     number_attribute("scale", 1.0), text_attribute("layout", "half"));
    const int32_t qkv = linear(norm(x), weights_.qkv, size_.qkv(), -1);
    const int32_t q = rope(heads_of(qkv, 0, size_.heads), size_.heads, cos, sin);
    const int32_t k = rope(heads_of(qkv, size_.heads * kHeadDim, size_.kv_heads), size_.kv_heads, cos, sin);
    const int32_t v = heads_of(qkv, (size_.heads + size_.kv_heads) * kHeadDim, size_.kv_heads);
    const int32_t attended = method_.activation({constant(1), tokens(), constant(size_.heads), constant(kHeadDim)});
    method_.emit("mote.attention", {q, k, v, positions, -1, -1}, attended, integer_attribute("state", 0),
                 number_attribute("scale", 0.25), integer_attribute("window", window_),
                 number_attribute("softcap", 0.0));
    const Shape flat = rows(size_.heads * kHeadDim);
    const int32_t joined =
        method_.emit("aten.view", {attended}, method_.view_of(attended, flat), dims_attribute("size", flat));
    return linear(joined, weights_.out, size_.hidden, x);
  }

  ProgramBuilder& builder_;
  fb::ProgramT& program_;
  const Weights& weights_;
  MethodBuilder method_;
  int64_t window_;
  bool with_delegates_;
  Dimensions size_;
};

}  // namespace

ProgramBuilder tiny_model(const TinyModelOptions& options) {
  ProgramBuilder builder;
  builder.program.vocab_size = options.vocab_size;
  builder.program.eos_token_ids = {2};
  builder.kv_cache(static_cast<int32_t>(Dimensions(options.width).kv_heads), kHeadDim, options.window);
  const Weights weights = add_weights(builder, options);
  Layer(builder, weights, "prefill", INT32_MAX, options).build(false);
  Layer(builder, weights, "decode", 1, options).build(false);
  Layer(builder, weights, "verify", INT32_MAX, options).build(true);
  return builder;
}

}  // namespace mote::test
