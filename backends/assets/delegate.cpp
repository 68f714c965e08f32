#include "backends/assets/delegate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "backends/assets/sequence_states.h"
#include "kernels/support/float_bits.h"

namespace mote::assets {
namespace {

// Whether elements of a call's tensor can be made those of a port, or the other way round.
bool converts(DType of_call, DType of_port) {
  switch (of_call) {
    case DType::kFloat32: return of_port == DType::kFloat32 || of_port == DType::kFloat16;
    case DType::kInt64:
    case DType::kInt32: return of_port == DType::kInt32;
    case DType::kBool: return of_port == DType::kBool || of_port == DType::kInt32;
    default: return false;
  }
}

template <typename List>
Status check_arguments(const char* name, const List& list, const std::vector<Port>& ports) {
  MOTE_REQUIRE(list.size() == ports.size(), Code::kInvalidProgram, "%s: has %zu: the call has %zu", name, ports.size(),
               list.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const bool fits = list[i] != nullptr && list[i]->bits == 0 && list[i]->is_contiguous() &&
                      converts(list[i]->dtype, ports[i].dtype) && list[i]->num_elements() == ports[i].num_elements();
    MOTE_REQUIRE(fits, Code::kInvalidProgram, "%s[%zu] (%s): has %lld elements of %s: the call has others", name, i,
                 ports[i].name.c_str(), static_cast<long long>(ports[i].num_elements()), dtype_name(ports[i].dtype));
  }
  return {};
}

template <typename From, typename To> void convert(const void* from, size_t count, void* to) {
  std::transform(static_cast<const From*>(from), static_cast<const From*>(from) + count, static_cast<To*>(to),
                 [](From element) { return static_cast<To>(element); });
}

// Errors: kInvalidArgument for an integer that 32 bits do not hold.
Status give(const Tensor& tensor, const Port& port, Elements* elements) {
  const auto count = static_cast<size_t>(port.num_elements());
  elements->resize(port.num_bytes());
  if (tensor.dtype == DType::kFloat32 && port.dtype == DType::kFloat16) {
    std::transform(tensor.as<float>(), tensor.as<float>() + count, reinterpret_cast<uint16_t*>(elements->data()),
                   float32_to_float16);
  } else if (tensor.dtype == DType::kInt64) {
    const auto fits = [](int64_t number) { return number >= INT32_MIN && number <= INT32_MAX; };
    MOTE_REQUIRE(std::all_of(tensor.as<int64_t>(), tensor.as<int64_t>() + count, fits), Code::kInvalidArgument,
                 "%s: has integers of more than 32 bits", port.name.c_str());
    convert<int64_t, int32_t>(tensor.data, count, elements->data());
  } else if (tensor.dtype == DType::kBool && port.dtype == DType::kInt32) {
    convert<uint8_t, int32_t>(tensor.data, count, elements->data());
  } else if (count > 0) {
    std::memcpy(elements->data(), tensor.data, elements->size());
  }
  return {};
}

// Errors: kInternal for what is no number.
Status take(const Elements& elements, const Port& port, Tensor* tensor) {
  const auto count = static_cast<size_t>(port.num_elements());
  if (tensor->dtype == DType::kFloat32) {
    to_float32(elements.data(), port.dtype, port.num_elements(), tensor->as<float>());
    const bool is_number = std::none_of(tensor->as<float>(), tensor->as<float>() + count,
                                        [](float element) { return std::isnan(element); });
    MOTE_REQUIRE(is_number, Code::kInternal, "%s: the runtime computed what is no number", port.name.c_str());
  } else if (tensor->dtype == DType::kInt64) {
    convert<int32_t, int64_t>(elements.data(), count, tensor->data);
  } else if (tensor->dtype == DType::kBool && port.dtype == DType::kInt32) {
    convert<int32_t, uint8_t>(elements.data(), count, tensor->data);
  } else if (count > 0) {
    std::memcpy(tensor->data, elements.data(), elements.size());
  }
  return {};
}

class SessionDelegate final : public Delegate {
 public:
  explicit SessionDelegate(std::shared_ptr<const Program> program)
      : program_(std::move(program)), states_(program_->asset().shared_from_this()) {}

  Result<size_t> prepare(size_t part, const Call& call, int64_t tokens) override {
    const Status status = check_call(program_->asset().functions()[part], call, tokens);
    return status.ok() ? Result<size_t>(size_t{0}) : Result<size_t>(at_place(program_->place(part), status));
  }
  Status execute(size_t part, const Call& call, KernelContext&) override try {
    return at_place(program_->place(part), run(part, call));
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for a call of an asset's function"}; }

  uint64_t held_bytes() const override { return states_.held_bytes(); }
  bool seek(int64_t position) override { return states_.seek(position); }
  int64_t nearest(int64_t to) const override {
    return !states_.has_recurrent() || to == states_.position() ? std::min(to, states_.position()) : 0;
  }
  int64_t most_taken_back() const override { return states_.has_recurrent() ? 0 : Delegate::most_taken_back(); }
  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const override { return states_.snapshot(); }
  Status restore(const DelegateSnapshot& snapshot) override try {
    return states_.restore(snapshot);
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for states"}; }
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const override {
    return states_.import(bytes);
  }
  std::optional<DType> cache_dtype(int32_t state) const override { return states_.cache_dtype(state); }
  Status read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const override {
    return states_.read_cache(state, keys, values);
  }
  Status write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) override {
    return states_.write_cache(state, positions, keys, values);
  }
  bool has_recurrent(int32_t state) const override { return states_.holds_recurrent(state); }
  Status read_recurrent(int32_t state, std::span<std::byte> elements) const override {
    return states_.read_recurrent(state, elements);
  }
  Status write_recurrent(int32_t state, int64_t positions, std::span<const std::byte> elements) override {
    return states_.write_recurrent(state, positions, elements);
  }

 private:
  static Status check_call(const Reference& function, const Call& call, int64_t tokens) {
    MOTE_RETURN_IF_ERROR(check_arguments("inputs", call.inputs, function.inputs));
    MOTE_RETURN_IF_ERROR(check_arguments("outputs", call.outputs, function.outputs));
    const std::optional<size_t> positions = function.input("position_ids");
    const bool fits = !positions || (call.inputs[*positions]->dtype == DType::kInt64 &&
                                     function.inputs[*positions].num_elements() == tokens);
    MOTE_REQUIRE(fits, Code::kInvalidProgram, "position_ids: has %lld elements: the call has %lld tokens",
                 static_cast<long long>(function.inputs[*positions].num_elements()), static_cast<long long>(tokens));
    return {};
  }

  // The position behind the call. Errors: kUnsupportedBackend beyond what the asset holds.
  Result<int64_t> end_of(const Reference& function, const Call& call) const {
    const Tensor& positions = *call.inputs[*function.input("position_ids")];
    const int64_t first = positions.as<int64_t>()[0], end = first + positions.num_elements();
    MOTE_REQUIRE(first == states_.position(), Code::kInvalidArgument, "position %lld: the asset's states are at %lld",
                 static_cast<long long>(first), static_cast<long long>(states_.position()));
    MOTE_REQUIRE(end <= function.context_length, Code::kUnsupportedBackend, "%lld positions: the asset holds %lld",
                 static_cast<long long>(end), static_cast<long long>(function.context_length));
    return end;
  }

  Status run(size_t part, const Call& call) {
    const Reference& function = program_->asset().functions()[part];
    int64_t end = states_.position();
    if (!function.states.empty()) { MOTE_ASSIGN(end, end_of(function, call)); }
    std::vector<Elements> inputs(function.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      MOTE_RETURN_IF_ERROR(give(*call.inputs[i], function.inputs[i], &inputs[i]));
    std::shared_ptr<AssetStates> states;
    if (!function.states.empty()) { MOTE_ASSIGN(states, states_.held()); }
    MOTE_ASSIGN(const std::vector<Elements> outputs,
                program_->asset().predict(part, std::move(inputs), std::move(states)));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Status taken = take(outputs[i], function.outputs[i], call.outputs[i]);
      if (taken.ok()) continue;
      states_.distrust();  // what made the outputs may have made states too
      return taken;
    }
    states_.moved_to(end);
    return {};
  }

  std::shared_ptr<const Program> program_;
  SequenceStates states_;
};

// Whether what belongs to one state of the program is there together.
Status check_ports(const std::string& place, const std::vector<StatePort>& ports) {
  const auto find = [&](int32_t state, StatePart part) {
    const auto found =
        std::ranges::find_if(ports, [&](const StatePort& port) { return port.state == state && port.part == part; });
    return found == ports.end() ? nullptr : &*found;
  };
  for (const StatePort& port : ports) {
    const bool is_second = port.part == StatePart::values || port.part == StatePart::rest;
    if (!is_second) continue;
    const StatePort* first = find(port.state, port.is_cache() ? StatePart::keys : StatePart::state);
    const bool fits =
        first != nullptr && first->port.dtype == port.port.dtype &&
        (port.is_cache() ? first->port.shape[1] == port.port.shape[1] : first->port.shape == port.port.shape);
    MOTE_REQUIRE(fits, Code::kInvalidProgram, "%s: states: %s does not fit the other part of state %d", place.c_str(),
                 port.port.name.c_str(), port.state);
  }
  return {};
}

}  // namespace

Result<Parts> Parts::verify(const DelegateSource& source, const AssetKind& kind) {
  Parts parts;
  for (const DelegatePart& part : source.parts) {
    MOTE_ASSIGN(Reference function, parse_reference(part, kind));
    const Reference& first = parts.functions.empty() ? function : parts.functions.front();
    const bool is_same = function.asset == first.asset && function.sha256 == first.sha256 &&
                         function.context_length == first.context_length;
    MOTE_REQUIRE(is_same, Code::kInvalidProgram, "%s: asset, sha256, context_length: must be those of the other parts",
                 part.place.c_str());
    for (const StatePort& port : function.states) {
      const auto known = std::ranges::find_if(parts.ports, [&](const StatePort& other) {
        return other.port.name == port.port.name || (other.state == port.state && other.part == port.part);
      });
      MOTE_REQUIRE(known == parts.ports.end() || *known == port, Code::kInvalidProgram,
                   "%s: states: %s is another in another part", part.place.c_str(), port.port.name.c_str());
      if (known == parts.ports.end()) parts.ports.push_back(port);
    }
    parts.functions.push_back(std::move(function));
  }
  MOTE_RETURN_IF_ERROR(check_ports(source.parts.front().place, parts.ports));
  return parts;
}

Program::Program(std::shared_ptr<OpenedAsset> asset, const DelegateSource& source) : asset_(std::move(asset)) {
  for (const DelegatePart& part : source.parts) places_.push_back(part.place);
}

Result<std::unique_ptr<Delegate>> Program::open(const DelegateOptions&) const {
  return std::unique_ptr<Delegate>(std::make_unique<SessionDelegate>(shared_from_this()));
}

}  // namespace mote::assets
