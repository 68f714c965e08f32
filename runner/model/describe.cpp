#include "runner/model/describe.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/json.h"
#include "base/parts.h"
#include "runner/model/generation_config.h"
#include "runner/model/model.h"
#include "runner/model/parts.h"
#include "runner/program/delegates.h"
#include "runner/program/kv_sizes.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

using Json = JsonText;

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

// A float with the digits that it has, not those of the double beside it: 0.0021, not 0.0020999999716877937.
double shortest(float value) { return std::strtod(format("%.6g", static_cast<double>(value)).c_str(), nullptr); }

Json check(const fb::Check* from) {
  if (from == nullptr) return nullptr;
  return {{"mode", from->mode()->str()},
          {"median_relative_error", shortest(from->median_relative_error())},
          {"max_relative_error", shortest(from->max_relative_error())},
          {"tolerance", shortest(from->tolerance())},
          {"top1_agreement", shortest(from->top1_agreement())},
          {"num_positions", from->num_positions()}};
}

// A dimension as text, such as "2*T+1", "T" or "7".
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

// The delegate that an instruction calls; -1: none, or one that the file does not have.
int64_t delegate_of(const fb::Program& program, const fb::Instruction& instruction) {
  if (text_of(*instruction.op()) != kDelegateOp || program.delegates() == nullptr) return -1;
  for (const fb::Attribute* attribute : *instruction.attributes()) {
    if (text_of(*attribute->name()) != "delegate" || attribute->dims() == nullptr || attribute->dims()->size() == 0)
      continue;
    const int64_t index = attribute->dims()->Get(0)->constant();
    return index >= 0 && index < program.delegates()->size() ? index : -1;
  }
  return -1;
}

const fb::Delegate& delegate(const fb::Program& program, int64_t index) {
  return *program.delegates()->Get(static_cast<uint32_t>(index));
}

bool is_view(const fb::Method& method, const fb::Instruction& instruction) {
  const auto& outputs = *instruction.outputs();
  return outputs.size() > 0 && method.values()->Get(static_cast<uint32_t>(outputs[0]))->alias_of() != -1;
}

// What runs an instruction: "cpu" or a backend; empty: it is a view, which nothing runs.
std::string runs_on(const fb::Program& program, const fb::Method& method, const fb::Instruction& instruction) {
  if (is_view(method, instruction)) return {};
  const int64_t index = delegate_of(program, instruction);
  return index < 0 ? std::string(kCpu) : delegate(program, index).backend()->str();
}

Json delegate_ops(const fb::Delegate& from) {
  Json ops = Json::object();
  for (uint32_t i = 0; from.ops() != nullptr && i < from.ops()->size(); ++i)
    ops.add(from.ops()->Get(i)->str(), from.op_counts()->Get(i));
  return ops;
}

int64_t num_delegate_ops(const fb::Delegate& from) {
  int64_t total = 0;
  for (uint32_t i = 0; from.op_counts() != nullptr && i < from.op_counts()->size(); ++i)
    total += from.op_counts()->Get(i);
  return total;
}

// How many of a step's instructions each backend runs, and how often the work passes from one to another. The CPU
// counts at both ends, since it has the tokens and needs the logits.
void add_division(Json& to, const fb::Program& program, const fb::Method& method) {
  std::map<std::string, int64_t> num_run;
  int64_t num_delegates = 0, num_crossings = 0;
  std::string previous(kCpu);
  for (const fb::Instruction* each : *method.instructions()) {
    const std::string runner = runs_on(program, method, *each);
    if (runner.empty()) continue;
    const int64_t index = delegate_of(program, *each);
    num_run[runner] += index < 0 ? 1 : num_delegate_ops(delegate(program, index));
    num_delegates += index < 0 ? 0 : 1;
    num_crossings += runner == previous ? 0 : 1;
    previous = runner;
  }
  num_crossings += previous == kCpu ? 0 : 1;
  to.add({{"runs_on", num_run}, {"num_delegates", num_delegates}, {"num_crossings", num_crossings}});
}

Json value(Json to, const fb::Method& method, int32_t index) {
  const fb::Value& from = *method.values()->Get(static_cast<uint32_t>(index));
  to.add({{"value", index}, {"dtype", fb::EnumNameDType(from.dtype())}, {"shape", value_shape(from)}});
  return to;
}

// Which inputs are weights: their places, and those of the weights in the file.
Json weights_of(const fb::Method& method, const fb::Instruction& from) {
  Json result = Json::array();
  for (uint32_t i = 0; i < from.inputs()->size(); ++i) {
    const int32_t index = from.inputs()->Get(i);
    if (index < 0) continue;
    const fb::Value& input = *method.values()->Get(static_cast<uint32_t>(index));
    if (input.kind() == fb::ValueKind::weight) result.push_back({{"input", i}, {"tensor", input.weight()}});
  }
  return result;
}

Json attributes(const fb::Instruction& from) {
  Json result = Json::object();
  for (const fb::Attribute* each : *from.attributes()) {
    Json to = Json::array();
    if (each->text() != nullptr) to = each->text()->str();
    if (each->numbers() != nullptr) to = std::vector<double>(each->numbers()->begin(), each->numbers()->end());
    for (uint32_t i = 0; each->dims() != nullptr && i < each->dims()->size(); ++i)
      to.push_back(dim_text(*each->dims()->Get(i)));
    result.add(each->name()->str(), to);
  }
  return result;
}

Json instruction(const fb::Program& program, const fb::Method& method, const fb::Instruction& from) {
  Json outputs = Json::array();
  for (const int32_t index : *from.outputs()) outputs.push_back(value(Json::object(), method, index));
  const std::string runner = runs_on(program, method, from);
  Json result = {{"op", from.op()->str()},
                 {"origin", from.origin()->str()},
                 {"runs_on", runner.empty() ? Json(nullptr) : Json(runner)},
                 {"inputs", std::vector<int32_t>(from.inputs()->begin(), from.inputs()->end())},
                 {"outputs", outputs},
                 {"weights", weights_of(method, from)},
                 {"attributes", attributes(from)}};
  if (const int64_t index = delegate_of(program, from); index >= 0) result.add("delegate", index);
  return result;
}

// The name, which methods of a target share that differ by the one length of their calls.
std::string label(const fb::Method& method) {
  const std::string name = method.name()->str();
  const bool has_length = method.min_tokens() == method.max_tokens() && method.max_tokens() > 1;
  return has_length ? format("%s[%d]", name.c_str(), method.max_tokens()) : name;
}

Json method(const fb::Program& program, const fb::Method& from) {
  std::map<std::string, int64_t> ops;
  Json instructions = Json::array();
  for (const fb::Instruction* each : *from.instructions()) {
    ++ops[each->op()->str()];
    instructions.push_back(instruction(program, from, *each));
  }
  Json inputs = Json::array();
  for (uint32_t i = 0; i < from.inputs()->size(); ++i) {
    inputs.push_back(value({{"name", from.input_names()->Get(i)->str()}}, from, from.inputs()->Get(i)));
  }
  Json result = {{"name", from.name()->str()}, {"label", label(from)}, {"target", std::string(target_of(from))}};
  add_division(result, program, from);
  result.add({
      {"min_tokens", from.min_tokens()},
      {"max_tokens", from.max_tokens()},
      {"num_values", from.values()->size()},
      {"num_instructions", from.instructions()->size()},
      {"arena_per_token_bytes", from.per_token_bytes()},
      {"arena_fixed_bytes", from.fixed_bytes()},
      {"ops", ops},
      {"inputs", inputs},
      {"outputs", std::vector<int32_t>(from.outputs()->begin(), from.outputs()->end())},
      {"instructions", instructions},
  });
  return result;
}

std::string weight_format(const fb::Weight& weight) {
  if (weight.bits() == 0) return fb::EnumNameDType(weight.dtype());
  std::string name = weight.codebook() == nullptr ? format("int%d group %d", weight.bits(), weight.group_size())
                                                  : format("codebook group %d", weight.group_size());
  if (weight.scale_columns() == 0) return name;
  name += weight.scale_columns() == weight.group_size() ? ", float16 scales"
                                                        : format(", float16 scales of %d", weight.scale_columns());
  if (weight.low() != fb::WeightOffset::none) name += format(", %s", fb::EnumNameWeightOffset(weight.low()));
  return name;
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
    Json tensor = {{"name", weight->name()->str()},
                   {"format", weight_format(*weight)},
                   {"shape", std::vector<int64_t>(weight->shape()->begin(), weight->shape()->end())},
                   {"bytes", weight->bytes()}};
    if (const auto* rows = weight->source_rows(); rows != nullptr)
      tensor.add("source_rows", std::vector<int32_t>(rows->begin(), rows->end()));
    tensors.push_back(tensor);
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
    result.add("shape", std::vector<int64_t>(from.shape()->begin(), from.shape()->end()));
    return result;
  }
  result.add({{"num_heads", from.num_heads()},
              {"head_dim", from.head_dim()},
              {"value_head_dim", from.value_head_dim()},
              {"window", from.window()},
              {"num_sink_positions", from.num_sink_positions()},
              {"stride", from.stride()},
              {"bytes_per_position", Json{{"float32", kv_position_bytes(from, KvType::kFloat32).value()},
                                          {"float16", kv_position_bytes(from, KvType::kFloat16).value()},
                                          {"int8", kv_position_bytes(from, KvType::kInt8).value()},
                                          {"int4", kv_position_bytes(from, KvType::kInt4).value()}}}});
  return result;
}

Json segment(const fb::Segment& from) {
  Json result = {{"kind", fb::EnumNameSegmentKind(from.kind())},
                 {"offset", from.offset()},
                 {"bytes", from.bytes()},
                 {"crc32", format("%08x", from.crc32())}};
  if (from.file() != nullptr) result.add("file", from.file()->str());
  return result;
}

template <typename Vector, typename Convert>
Json list(const Vector& items, Convert convert) {
  Json result = Json::array();
  for (const auto* item : items) result.push_back(convert(*item));
  return result;
}

// Every lowering of the file, each with the reason why another was chosen; null where it was chosen itself or nothing
// was to be chosen.
Json targets(const fb::Program& program, const std::vector<PassedOver>& passed_over) {
  Json result = Json::object();
  for (const std::string_view name : targets_of(program)) {
    const auto other = std::ranges::find(passed_over, name, &PassedOver::target);
    result.add(name, other == passed_over.end() ? Json(nullptr) : Json(other->reason));
  }
  return result;
}

Json findings_of(const std::vector<Finding>& found) {
  Json result = Json::object();
  for (const Finding& each : found) result.add(each.target, each.text);
  return result;
}

Json delegates(const fb::Program& program) {
  if (program.delegates() == nullptr) return Json::array();
  return list(*program.delegates(), [](const fb::Delegate& delegate) {
    return Json{{"backend", delegate.backend()->str()},
                {"bytes", delegate.bytes()},
                {"num_weights", delegate.weights()->size()},
                {"weights", std::vector<int32_t>(delegate.weights()->begin(), delegate.weights()->end())},
                {"ops", delegate_ops(delegate)}};
  });
}

std::string_view text_segment(const Verified& verified, fb::SegmentKind kind) {
  const std::span<const std::byte> bytes = verified.segment(kind);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Json> about_tokenizer(const Verified& verified) {
  if (verified.segment(fb::SegmentKind::tokenizer).empty()) return Json(nullptr);
  MOTE_ASSIGN(std::vector<std::byte> bytes, verified.copy(fb::SegmentKind::tokenizer));
  const Result<Tokenizer> opened = Tokenizer::open(std::move(bytes));
  if (!opened.ok()) return Status(opened.status().code(), verified.file().name() + ": " + opened.status().message());
  return Json{{"kind", std::string(opened->kind())}, {"num_ids", opened->num_ids()}};
}

}  // namespace

Result<std::string> describe(const Verified& verified, std::string_view target,
                             const std::vector<PassedOver>& passed_over, const std::vector<Finding>& found) {
  MOTE_REQUIRE_PART("reports", Code::kInvalidArgument);
  const fb::Program& from = verified.program();
  const std::string& path = verified.file().name();
  const std::vector<int32_t> eos(from.eos_token_ids()->begin(), from.eos_token_ids()->end());
  MOTE_ASSIGN(const Json tokenizer_info, about_tokenizer(verified));
  MOTE_ASSIGN(const std::vector<std::string> parts, parts_of(verified));
  const auto config = generation_config_with_eos(text_of(*from.generation_config()), eos);
  if (!config.ok()) return Status(config.status().code(), path + ": " + config.status().message());
  const Json json = {{"file", path},
                     {"file_bytes", verified.file().file_bytes().size()},
                     {"provenance", provenance(*from.provenance())},
                     {"vocab_size", from.vocab_size()},
                     {"max_position_embeddings", from.max_position_embeddings()},
                     {"bos_token_id", from.bos_token_id()},
                     {"eos_token_ids", eos},
                     {"generation_config", Json::raw(*config)},
                     {"target", target.empty() ? Json(nullptr) : Json(std::string(target))},
                     {"targets", targets(from, passed_over)},
                     {"findings", findings_of(found)},
                     {"methods", list(*from.methods(), [&](const fb::Method& each) { return method(from, each); })},
                     {"delegates", delegates(from)},
                     {"weights", weights(from)},
                     {"states", list(*from.states(), state)},
                     {"segments", list(*from.segments(), segment)},
                     {"tokenizer", tokenizer_info},
                     {"chat_template", std::string(text_segment(verified, fb::SegmentKind::chat_template))},
                     {"parts", parts},
                     {"num_golden_samples", from.golden_samples()->size()},
                     {"check", check(from.check())}};
  return json.dump();
}

Result<std::string> describe_file(const std::string& path) {
  MOTE_ASSIGN(Mapped mapped, map(path));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  const auto shared = std::make_shared<const Verified>(std::move(verified));
  MOTE_ASSIGN(const Chosen chosen, choose_target(shared, {.purpose = Purpose::kDescribe}));
  return describe(*shared, chosen.bound == nullptr ? std::string_view() : chosen.bound->target(), chosen.passed_over,
                  findings(shared, {}));
}

Result<std::string> Model::describe() const {
  return mote::describe(bound_->verified(), bound_->target(), passed_over_,
                        findings(bound_->shared_verified(), bound_->target(), bind_options_));
}

}  // namespace mote
