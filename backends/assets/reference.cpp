#include "backends/assets/reference.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace mote::assets {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr size_t kMostBytes = size_t{1} << 20;  // of a reference; one of a model with 100 layers has 40,000
constexpr int64_t kMostElements = int64_t{1} << 31;
constexpr std::array<std::string_view, 4> kParts = {"keys", "values", "state", "rest"};

struct NamedDType {
  std::string_view name;
  DType dtype;
};
constexpr NamedDType kDTypes[] = {
    {"float32", DType::kFloat32}, {"float16", DType::kFloat16}, {"int32", DType::kInt32}, {"bool", DType::kBool}};

Status invalid(const char* field, const char* accepted) {
  return {Code::kInvalidProgram, format("%s: must be %s", field, accepted)};
}

Result<std::string> take_text(const Json& from, const char* field) {
  const auto found = from.find(field);
  const bool is_text = found != from.end() && found->is_string() && !found->get_ref<const std::string&>().empty() &&
                       found->get_ref<const std::string&>().find('\0') == std::string::npos;
  if (!is_text) return invalid(field, "a text");
  return found->get<std::string>();
}

Result<int64_t> take_integer(const Json& from, const char* field, int64_t least, int64_t most) {
  const auto found = from.find(field);
  const bool is_integer = found != from.end() && found->is_number_integer();
  const int64_t value = is_integer ? found->get<int64_t>() : -1;
  const bool is_large = is_integer && found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX};
  if (!is_integer || is_large || value < least || value > most)
    return invalid(
        field,
        format("a number from %lld to %lld", static_cast<long long>(least), static_cast<long long>(most)).c_str());
  return value;
}

Result<Port> take_port(const Json& from) {
  Port port;
  if (!from.is_object()) return invalid("ports", "objects");
  MOTE_ASSIGN(port.name, take_text(from, "name"));
  MOTE_ASSIGN(const std::string dtype, take_text(from, "dtype"));
  const auto known = std::ranges::find(kDTypes, dtype, &NamedDType::name);
  if (known == std::end(kDTypes)) return invalid("dtype", "float32, float16, int32 or bool");
  port.dtype = known->dtype;
  const auto shape = from.find("shape");
  if (shape == from.end() || !shape->is_array() || shape->size() > kMaxRank) return invalid("shape", "up to 8 sizes");
  int64_t elements = 1;
  for (const Json& size : *shape) {
    const bool fits = size.is_number_unsigned() && size.get<uint64_t>() >= 1 &&
                      size.get<uint64_t>() <= static_cast<uint64_t>(kMostElements / elements);
    if (!fits) return invalid("shape", "sizes of at least 1, of at most 2147483648 elements");
    port.shape.push_back(size.get<int64_t>());
    elements *= port.shape.back();
  }
  return port;
}

Result<std::vector<Json>> take_list(const Json& from, const char* field) {
  const auto found = from.find(field);
  if (found == from.end() || !found->is_array()) return invalid(field, "a list");
  return found->get<std::vector<Json>>();
}

Result<std::vector<Port>> take_ports(const Json& from, const char* field) {
  MOTE_ASSIGN(const std::vector<Json> list, take_list(from, field));
  std::vector<Port> ports;
  for (const Json& each : list) {
    MOTE_ASSIGN(Port port, take_port(each));
    if (std::ranges::find(ports, port.name, &Port::name) != ports.end()) return invalid(field, "of different names");
    ports.push_back(std::move(port));
  }
  return ports;
}

Result<StatePort> take_state(const Json& from, int64_t context_length) {
  StatePort state;
  MOTE_ASSIGN(state.port, take_port(from));
  MOTE_ASSIGN(const int64_t index, take_integer(from, "state", 0, INT32_MAX));
  state.state = static_cast<int32_t>(index);
  MOTE_ASSIGN(const std::string part, take_text(from, "part"));
  const auto known = std::ranges::find(kParts, part);
  if (known == kParts.end()) return invalid("part", "keys, values, state or rest");
  state.part = static_cast<StatePart>(known - kParts.begin());
  if (const auto output = from.find("output"); output != from.end()) {
    if (!output->is_string()) return invalid("states: output", "a text");
    state.output = output->get<std::string>();
  }
  const DType dtype = state.port.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16) return invalid("states: dtype", "float32 or float16");
  const std::vector<int64_t>& shape = state.port.shape;
  if (state.is_cache() && (shape.size() != 4 || shape[0] != 1 || shape[2] != context_length))
    return invalid("states: shape", "1, heads, context_length, width");
  return state;
}

Status take_states(const Json& from, Reference* reference) {
  MOTE_ASSIGN(const std::vector<Json> list, take_list(from, "states"));
  for (const Json& each : list) {
    MOTE_ASSIGN(StatePort state, take_state(each, reference->context_length));
    const bool is_new = std::ranges::none_of(reference->states, [&](const StatePort& other) {
      return other.port.name == state.port.name || (other.state == state.state && other.part == state.part);
    });
    if (!is_new) return invalid("states", "different ones");
    reference->states.push_back(std::move(state));
  }
  return {};
}

Status check(const Reference& reference, const AssetKind& kind) {
  const std::string& asset = reference.asset;
  const bool is_name = asset.size() > kind.suffix.size() && asset.ends_with(kind.suffix) &&
                       asset.find_first_of("/\\:") == std::string::npos && !asset.starts_with('.');
  MOTE_REQUIRE(is_name, Code::kInvalidProgram, "asset = '%s': must be a name that ends in %s", asset.c_str(),
               std::string(kind.suffix).c_str());
  const std::optional<size_t> positions = reference.input("position_ids");
  if (!reference.states.empty() && (!positions || reference.inputs[*positions].dtype != DType::kInt32))
    return invalid("inputs", "with position_ids of int32, as there are states");
  for (const StatePort& state : reference.states) {
    if (!state.is_carried()) continue;
    if (!kind.carries_states) return invalid("states: output", "absent");
    const bool is_new = !reference.input(state.port.name) &&
                        std::ranges::find(reference.outputs, state.output, &Port::name) == reference.outputs.end() &&
                        std::ranges::count(reference.states, state.output, &StatePort::output) == 1;
    if (!is_new) return invalid("states", "inputs and outputs of other names than there are");
    const int64_t tokens = reference.inputs[*positions].num_elements();
    if (state.is_cache() && tokens > reference.context_length) return invalid("inputs", "of at most context_length");
  }
  return {};
}

Result<Reference> parse(const DelegatePart& part, const AssetKind& kind) {
  if (part.blob.size() > kMostBytes) return invalid("its bytes", "at most 1048576");
  if (!part.weights.empty()) return invalid("its weights", "in the asset");
  const auto* text = reinterpret_cast<const char*>(part.blob.data());
  const Json fields = Json::parse(text, text + part.blob.size(), nullptr, false);
  if (!fields.is_object()) return invalid("its bytes", "an object in JSON");
  Reference reference;
  MOTE_RETURN_IF_ERROR(take_integer(fields, "format", kFormat, kFormat).status());
  MOTE_ASSIGN(reference.asset, take_text(fields, "asset"));
  MOTE_ASSIGN(reference.sha256, take_text(fields, "sha256"));
  MOTE_ASSIGN(reference.function, take_text(fields, "function"));
  MOTE_ASSIGN(reference.context_length, take_integer(fields, "context_length", 1, INT32_MAX));
  MOTE_ASSIGN(reference.inputs, take_ports(fields, "inputs"));
  MOTE_ASSIGN(reference.outputs, take_ports(fields, "outputs"));
  MOTE_RETURN_IF_ERROR(take_states(fields, &reference));
  MOTE_RETURN_IF_ERROR(check(reference, kind));
  return reference;
}

}  // namespace

int64_t Port::num_elements() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

size_t StatePort::bytes_of(int64_t positions) const {
  if (!is_cache()) return port.num_bytes();
  return static_cast<size_t>(port.shape[1] * positions * port.shape[3] * dtype_bytes(port.dtype));
}

std::vector<int64_t> StatePort::sizes_of(int64_t positions) const {
  std::vector<int64_t> sizes = port.shape;
  if (is_cache()) sizes[2] = positions;
  return sizes;
}

std::optional<size_t> Reference::input(std::string_view name) const {
  const auto found = std::ranges::find(inputs, name, &Port::name);
  return found == inputs.end() ? std::nullopt : std::optional(static_cast<size_t>(found - inputs.begin()));
}

Port Reference::carried_output(const StatePort& state) const {
  Port port = state.port;
  port.name = state.output;
  if (state.is_cache()) port.shape[2] = inputs[*input("position_ids")].num_elements();
  return port;
}

Result<Reference> parse_reference(const DelegatePart& part, const AssetKind& kind) {
  Result<Reference> found = parse(part, kind);
  if (found.ok()) return found;
  return Status(found.status().code(), part.place + ": is no reference to an asset of " + std::string(kind.vendor) +
                                           ": " + found.status().message());
}

}  // namespace mote::assets
