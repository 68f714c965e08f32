// The file as JSON, for `mote inspect`.
#include <map>
#include <nlohmann/json.hpp>

#include "runner/llm/model.h"
#include "runner/llm/state/memory.h"

namespace mote {
namespace {

using Json = nlohmann::ordered_json;

Json provenance(const fb::Provenance& from) {
  return {{"model_id", from.model_id()->str()},
          {"revision", from.revision()->str()},
          {"model_type", from.model_type()->str()},
          {"recipe", from.recipe()->str()},
          {"exporter_version", from.exporter_version()->str()},
          {"torch_version", from.torch_version()->str()},
          {"transformers_version", from.transformers_version()->str()},
          {"license", from.license()->str()}};
}

// "2*T+1", "T", "7"
std::string dim_text(const fb::Dim& dim) {
  if (dim.tokens() == 0) return std::to_string(dim.constant());
  const std::string tokens = dim.tokens() == 1 ? "T" : std::to_string(dim.tokens()) + "*T";
  return dim.constant() == 0 ? tokens : tokens + format("%+lld", static_cast<long long>(dim.constant()));
}

Json value_shape(const fb::Value& value) {
  Json shape = Json::array();
  for (const fb::Dim* dim : *value.shape()) shape.push_back(dim_text(*dim));
  return shape;
}

Json instruction(const fb::Method& method, const fb::Instruction& from) {
  Json outputs = Json::array();
  for (const int32_t index : *from.outputs()) {
    const fb::Value& value = *method.values()->Get(static_cast<uint32_t>(index));
    outputs.push_back({{"value", index}, {"dtype", fb::EnumNameDType(value.dtype())}, {"shape", value_shape(value)}});
  }
  return {{"op", from.op()->str()},
          {"origin", from.origin()->str()},
          {"inputs", std::vector<int32_t>(from.inputs()->begin(), from.inputs()->end())},
          {"outputs", outputs}};
}

Json method(const fb::Method& from) {
  std::map<std::string, int64_t> ops;
  Json instructions = Json::array();
  for (const fb::Instruction* each : *from.instructions()) {
    ++ops[each->op()->str()];
    instructions.push_back(instruction(from, *each));
  }
  return {{"name", from.name()->str()},
          {"lowering", std::string(lowering_of(from))},
          {"min_tokens", from.min_tokens()},
          {"max_tokens", from.max_tokens()},
          {"num_values", from.values()->size()},
          {"num_instructions", from.instructions()->size()},
          {"arena_per_token_bytes", from.per_token_bytes()},
          {"arena_fixed_bytes", from.fixed_bytes()},
          {"ops", ops},
          {"instructions", instructions}};
}

std::string weight_format(const fb::Weight& weight) {
  if (weight.bits() == 0) return fb::EnumNameDType(weight.dtype());
  return format("int%d group %d", weight.bits(), weight.group_size());
}

Json weights(const fb::Program& program) {
  struct Total {
    int64_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Total> totals;
  Json tensors = Json::array();
  uint64_t bytes = 0;
  for (const fb::Weight* weight : *program.weights()) {
    Total& total = totals[weight_format(*weight)];
    ++total.count;
    total.bytes += weight->bytes();
    bytes += weight->bytes();
    tensors.push_back({{"name", weight->name()->str()},
                       {"format", weight_format(*weight)},
                       {"shape", std::vector<int64_t>(weight->shape()->begin(), weight->shape()->end())},
                       {"bytes", weight->bytes()}});
  }
  Json formats = Json::array();
  for (const auto& [name, total] : totals) {
    formats.push_back({{"format", name}, {"count", total.count}, {"bytes", total.bytes}});
  }
  return {{"count", program.weights()->size()}, {"bytes", bytes}, {"formats", formats}, {"tensors", tensors}};
}

Json state(const fb::State& from) {
  Json result = {{"name", from.name()->str()}, {"kind", fb::EnumNameStateKind(from.kind())}};
  if (from.kind() != fb::StateKind::kv_cache) {
    result["shape"] = std::vector<int64_t>(from.shape()->begin(), from.shape()->end());
    return result;
  }
  result["num_heads"] = from.num_heads();
  result["head_dim"] = from.head_dim();
  result["value_head_dim"] = from.value_head_dim();
  result["window"] = from.window();
  result["num_sink_positions"] = from.num_sink_positions();
  result["bytes_per_position"] = {{"float32", kv_position_bytes(from, KvType::kFloat32).value()},
                                  {"float16", kv_position_bytes(from, KvType::kFloat16).value()},
                                  {"int8", kv_position_bytes(from, KvType::kInt8).value()},
                                  {"int4", kv_position_bytes(from, KvType::kInt4).value()}};
  return result;
}

Json segment(const fb::Segment& from) {
  return {{"kind", fb::EnumNameSegmentKind(from.kind())},
          {"offset", from.offset()},
          {"bytes", from.bytes()},
          {"crc32", format("%08x", from.crc32())}};
}

template <typename Vector, typename Convert>
Json list(const Vector& items, Convert convert) {
  Json result = Json::array();
  for (const auto* item : items) result.push_back(convert(*item));
  return result;
}

// Every way to run the file, and why another was chosen; null: this one was, or nobody asked.
Json lowerings(const fb::Program& program, const std::vector<PassedOver>& passed_over) {
  Json result = Json::object();
  for (const std::string_view name : lowerings_of(program)) result[std::string(name)] = nullptr;
  for (const PassedOver& other : passed_over) result[other.lowering] = other.reason;
  return result;
}

Json delegates(const fb::Program& program) {
  if (program.delegates() == nullptr) return Json::array();
  return list(*program.delegates(), [](const fb::Delegate& delegate) {
    return Json{{"backend", delegate.backend()->str()}, {"bytes", delegate.bytes()}, {"num_weights", delegate.weights()->size()}};
  });
}

}  // namespace

Result<std::string> Model::describe() const {
  const fb::Program& from = program();
  MOTE_ASSIGN(const Tokenizer* known_tokenizer, tokenizer());
  Json tokenizer_info = nullptr;
  if (known_tokenizer != nullptr) tokenizer_info = {{"kind", std::string(known_tokenizer->kind())}, {"num_ids", known_tokenizer->num_ids()}};
  const Json json = {{"file", path()},
                     {"file_bytes", file_bytes()},
                     {"provenance", provenance(*from.provenance())},
                     {"vocab_size", vocab_size()},
                     {"max_position_embeddings", max_position_embeddings()},
                     {"bos_token_id", bos_token_id()},
                     {"eos_token_ids", std::vector<int32_t>(eos_token_ids().begin(), eos_token_ids().end())},
                     {"generation_config", Json::parse(generation_config_.json)},
                     {"lowering", std::string(bound_->lowering())},
                     {"lowerings", lowerings(from, passed_over_)},
                     {"methods", list(*from.methods(), method)},
                     {"delegates", delegates(from)},
                     {"weights", weights(from)},
                     {"states", list(*from.states(), state)},
                     {"segments", list(*from.segments(), segment)},
                     {"tokenizer", tokenizer_info},
                     {"chat_template", std::string(chat_template())},
                     {"num_golden_samples", from.golden_samples()->size()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mote
