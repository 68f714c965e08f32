#include "tests/runner/program/test_ops.h"

#include <algorithm>

#include "kernels/op.h"

namespace mote::test {

std::atomic<int64_t> num_checks{0};
std::atomic<bool> cancel_flag{false};

namespace {

#define TEST_REQUIRE(condition) MOTE_REQUIRE(condition, Code::kInvalidProgram, "must hold: %s", #condition)

Status check_embedding(Call& call) {
  ++num_checks;
  TEST_REQUIRE(call.inputs.size() == 2 && call.inputs[0] != nullptr && call.inputs[1] != nullptr);
  const Tensor& ids = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  const Tensor& out = *call.outputs[0];
  TEST_REQUIRE(ids.dtype == DType::kInt64 && ids.rank == 2 && ids.is_contiguous());
  TEST_REQUIRE(weight.dtype == DType::kFloat32 && weight.rank == 2 && weight.bits == 0);
  TEST_REQUIRE(out.dtype == DType::kFloat32 && out.rank == 3 && out.size(1) == ids.size(1) &&
               out.size(0) == ids.size(0));
  TEST_REQUIRE(out.size(2) == weight.size(1));
  return {};
}

Status run_embedding(const Call& call, KernelContext&) {
  const Tensor& weight = *call.inputs[1];
  const int64_t dim = weight.size(1);
  for (int64_t t = 0; t < call.inputs[0]->num_elements(); ++t) {
    const int64_t id = call.inputs[0]->as<int64_t>()[t];
    MOTE_REQUIRE(id >= 0 && id < weight.size(0), Code::kInvalidArgument, "id %lld is outside of the vocabulary",
                 static_cast<long long>(id));
    std::copy_n(weight.as<float>() + id * dim, dim, call.outputs[0]->as<float>() + t * dim);
  }
  return {};
}

Status check_running_sum(Call& call) {
  ++num_checks;
  MOTE_ASSIGN(const int64_t state, call.integer("state"));
  TEST_REQUIRE(call.inputs.size() == 1 && call.inputs[0]->is_contiguous() &&
               !call.state_shapes[static_cast<size_t>(state)].is_kv_cache);
  TEST_REQUIRE(call.inputs[0]->sizes == call.outputs[0]->sizes);
  TEST_REQUIRE(call.state_shapes[static_cast<size_t>(state)].recurrent.size(0) == call.inputs[0]->size(-1));
  call.make_params<int64_t>() = state;
  return {};
}

Status run_running_sum(const Call& call, KernelContext& context) {
  const Tensor& state = context.sequences[0].recurrent_states[static_cast<size_t>(call.get_params<int64_t>())].tensor;
  const int64_t dim = call.inputs[0]->size(-1);
  for (int64_t i = 0; i < call.inputs[0]->num_elements(); ++i) {
    state.as<float>()[i % dim] += call.inputs[0]->as<float>()[i];
    call.outputs[0]->as<float>()[i] = state.as<float>()[i % dim];
  }
  return {};
}

Status check_head(Call& call) {
  ++num_checks;
  TEST_REQUIRE(call.inputs.size() == 2 && call.inputs[0]->rank == 3 && call.inputs[0]->is_contiguous());
  TEST_REQUIRE(call.inputs[1]->rank == 2 && call.inputs[1]->size(1) == call.inputs[0]->size(2));
  TEST_REQUIRE(call.outputs[0]->rank == 3 && call.outputs[0]->size(1) == call.inputs[0]->size(1));
  TEST_REQUIRE(call.outputs[0]->size(0) == call.inputs[0]->size(0) &&
               call.outputs[0]->size(2) == call.inputs[1]->size(0));
  return {};
}

size_t scratch_head(const Call& call, int num_threads) {
  return static_cast<size_t>(call.inputs[0]->size(2)) * sizeof(float) * static_cast<size_t>(num_threads);
}

Status run_head(const Call& call, KernelContext& context) {
  const int64_t dim = call.inputs[0]->size(2);
  const int64_t vocab = call.outputs[0]->size(2);
  const float* x = call.inputs[0]->as<float>();
  const float* weight = call.inputs[1]->as<float>();
  float* out = call.outputs[0]->as<float>();
  float* scratch = reinterpret_cast<float*>(context.scratch.data());
  context.threads->parallel_for(call.outputs[0]->num_elements(), 1, [=](int64_t begin, int64_t end, int thread) {
    float* products = scratch + thread * dim;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t k = 0; k < dim; ++k) products[k] = x[i / vocab * dim + k] * weight[i % vocab * dim + k];
      out[i] = 0;
      for (int64_t k = 0; k < dim; ++k) out[i] += products[k];
    }
  });
  return {};
}

// Row `start` of dimension 1. Does not look whether it exists: that is for the executor to notice.
Status check_row(Call& call) {
  ++num_checks;
  MOTE_ASSIGN(const int64_t start, call.integer("start"));
  TEST_REQUIRE(call.inputs.size() == 1 && call.inputs[0]->rank == 3);
  call.outputs[0]->strides = call.inputs[0]->strides;
  call.view_offset_bytes = start * call.inputs[0]->stride(1) * dtype_bytes(call.inputs[0]->dtype);
  return {};
}

Status check_transpose(Call& call) {
  ++num_checks;
  TEST_REQUIRE(call.inputs.size() == 1 && call.inputs[0]->rank == 3);
  call.outputs[0]->strides = call.inputs[0]->strides;
  std::swap(call.outputs[0]->strides[1], call.outputs[0]->strides[2]);
  return {};
}

// factor * (inputs[0] + inputs[1]) + inputs[2], which is a weight of the last dimension; the last two may be absent.
Status check_scaled_sum(Call& call) {
  MOTE_ASSIGN(call.make_params<double>(), call.number("factor"));
  TEST_REQUIRE(call.inputs.size() == 3 && call.inputs[0]->sizes == call.outputs[0]->sizes &&
               call.inputs[0]->is_contiguous());
  TEST_REQUIRE(call.inputs[1] == nullptr ||
               (call.inputs[1]->sizes == call.outputs[0]->sizes && call.inputs[1]->is_contiguous()));
  TEST_REQUIRE(call.inputs[2] == nullptr ||
               (call.inputs[2]->rank == 1 && call.inputs[2]->size(0) == call.outputs[0]->size(-1)));
  return {};
}

Status run_scaled_sum(const Call& call, KernelContext&) {
  const auto factor = static_cast<float>(call.get_params<double>());
  const int64_t width = call.outputs[0]->size(-1);
  for (int64_t i = 0; i < call.outputs[0]->num_elements(); ++i) {
    float sum = call.inputs[0]->as<float>()[i];
    if (call.inputs[1] != nullptr) sum += call.inputs[1]->as<float>()[i];
    call.outputs[0]->as<float>()[i] =
        factor * sum + (call.inputs[2] == nullptr ? 0 : call.inputs[2]->as<float>()[i % width]);
  }
  return {};
}

Status check_any(Call&) { return {}; }

Status check_few_rows(Call& call) {
  TEST_REQUIRE(call.inputs[0]->size(1) <= 8);
  return {};
}

Status run_cancel(const Call& call, KernelContext&) {
  cancel_flag = true;
  std::copy_n(call.inputs[0]->as<float>(), call.inputs[0]->num_elements(), call.outputs[0]->as<float>());
  return {};
}

size_t scratch_huge(const Call&, int) { return size_t{1} << 60; }

MOTE_REGISTER_OP("test.embedding", false, check_embedding, nullptr, run_embedding);
MOTE_REGISTER_OP("test.running_sum", false, check_running_sum, nullptr, run_running_sum);
MOTE_REGISTER_OP("test.head", false, check_head, scratch_head, run_head);
MOTE_REGISTER_OP("test.scaled_sum", false, check_scaled_sum, nullptr, run_scaled_sum);
MOTE_REGISTER_OP("test.row", true, check_row, nullptr, nullptr);
MOTE_REGISTER_OP("test.transpose", true, check_transpose, nullptr, nullptr);
MOTE_REGISTER_OP("test.cancel", false, check_any, nullptr, run_cancel);
MOTE_REGISTER_OP("test.few_rows", false, check_few_rows, nullptr, run_cancel);
MOTE_REGISTER_OP("test.huge_scratch", false, check_any, scratch_huge, run_cancel);

float embedding_at(int64_t id, int64_t k) { return static_cast<float>((id * 7 + k * 3) % 5) - 2.0f; }
float head_at(int64_t id, int64_t k) { return static_cast<float>((id * 5 + k) % 7) - 3.0f; }

std::vector<float> matrix(float (*at)(int64_t, int64_t)) {
  std::vector<float> elements;
  for (int64_t id = 0; id < kVocabSize; ++id) {
    for (int64_t k = 0; k < kDim; ++k) elements.push_back(at(id, k));
  }
  return elements;
}

void add_method(ProgramBuilder& builder, const std::string& name, int32_t max_tokens, const Between& between) {
  MethodBuilder method = builder.method(name, max_tokens);
  const int32_t ids = method.input("input_ids", fb::DType::int64, {constant(1), tokens()});
  method.input("position_ids", fb::DType::int64, {constant(1), tokens()});
  const int32_t embedding = method.weight(builder.program, 0);
  const int32_t head = method.weight(builder.program, 1);
  const Shape rows = {constant(1), tokens(), constant(kDim)};
  int32_t x = method.emit("test.embedding", {ids, embedding}, method.activation(rows));
  x = between(method, x);
  x = method.emit("test.running_sum", {x}, method.activation(rows), integer_attribute("state", 0));
  const bool every_token = name == "verify";
  if (!every_token) {
    x = method.emit("test.row", {x}, method.view_of(x, {constant(1), constant(1), constant(kDim)}),
                    dims_attribute("start", {{1, -1}}));
  }
  const int32_t logits = method.activation({constant(1), every_token ? tokens() : constant(1), constant(kVocabSize)});
  method.emit("test.head", {x, head}, logits);
  builder.program.methods.back()->outputs = {logits};
}

}  // namespace

void add_target(ProgramBuilder& builder, const std::string& target, const Between& between) {
  for (const auto& [name, max_tokens] :
       {std::pair("prefill", INT32_MAX), std::pair("decode", 1), std::pair("verify", INT32_MAX)}) {
    add_method(builder, name, max_tokens, between);
    builder.program.methods.back()->target = target;
  }
}

ProgramBuilder sum_tables() {
  ProgramBuilder builder;
  builder.program.vocab_size = kVocabSize;
  builder.program.eos_token_ids = {2};
  builder.dense_weight("embed_tokens.weight", fb::DType::float32, {kVocabSize, kDim}, matrix(embedding_at));
  builder.dense_weight("lm_head.weight", fb::DType::float32, {kVocabSize, kDim}, matrix(head_at));
  builder.recurrent_state({kDim});
  return builder;
}

ProgramBuilder sum_model() {
  ProgramBuilder builder = sum_tables();
  add_target(builder, "", [](MethodBuilder&, int32_t x) { return x; });
  return builder;
}

std::vector<float> sum_model_logits(const std::vector<int64_t>& ids) {
  std::vector<float> sums(kDim, 0.0f);
  std::vector<float> logits;
  for (const int64_t id : ids) {
    for (int64_t k = 0; k < kDim; ++k) sums[static_cast<size_t>(k)] += embedding_at(id, k);
    for (int64_t v = 0; v < kVocabSize; ++v) {
      float logit = 0;
      for (int64_t k = 0; k < kDim; ++k) logit += sums[static_cast<size_t>(k)] * head_at(v, k);
      logits.push_back(logit);
    }
  }
  return logits;
}

}  // namespace mote::test
