#include <algorithm>
#include <new>
#include <unordered_map>

#include "base/log.h"
#include "base/parts.h"
#include "runner/program/asset_weights.h"
#include "runner/program/delegates.h"
#include "runner/program/invocation.h"
#include "runner/program/program.h"
#include "runner/program/validation.h"
#include "runner/program/whole_methods.h"

namespace mote {
namespace {

constexpr int64_t kLargestCheckedTokens = 4096;

StateShape shape_of(const fb::State& state) {
  StateShape shape;
  shape.is_kv_cache = state.kind() == fb::StateKind::kv_cache;
  shape.num_heads = state.num_heads();
  shape.head_dim = state.head_dim();
  shape.value_head_dim = state.value_head_dim();
  shape.window = state.window();
  shape.stride = state.stride();
  shape.recurrent.rank = static_cast<int>(state.shape()->size());
  for (uint32_t i = 0; i < state.shape()->size(); ++i) shape.recurrent.sizes[i] = state.shape()->Get(i);
  shape.recurrent.set_contiguous_strides();
  return shape;
}

std::string place(const Bound& bound, const fb::Method& method, uint32_t index) {
  const fb::Instruction& instruction = *method.instructions()->Get(index);
  return format("%s: %s: instructions[%u] (%s, %s)", bound.file().name().c_str(), method.name()->c_str(), index,
                instruction.op()->c_str(), instruction.origin()->c_str());
}

// An instruction's output shares memory with an input if its op is a view, and only then.
Status check_views(const Bound& bound, const fb::Method& method, uint32_t index, const Op& op) {
  const fb::Instruction& instruction = *method.instructions()->Get(index);
  for (const int32_t output : *instruction.outputs()) {
    const bool aliases = method.values()->Get(static_cast<uint32_t>(output))->alias_of() != -1;
    MOTE_REQUIRE(aliases == op.is_view, Code::kInvalidProgram,
                 "%s: values[%d].alias_of must be %s, because the op is %s view", place(bound, method, index).c_str(),
                 output, op.is_view ? "the op's input" : "-1", op.is_view ? "a" : "no");
  }
  return {};
}

Status find_ops(const Bound& bound, const fb::Method& method, std::vector<const Op*>& ops) {
  std::unordered_map<std::string_view, const Op*> known;
  ops.reserve(method.instructions()->size());
  for (uint32_t i = 0; i < method.instructions()->size(); ++i) {
    const auto [entry, is_new] = known.try_emplace(text_of(*method.instructions()->Get(i)->op()), nullptr);
    if (is_new) entry->second = find_op(entry->first);
    const Op* op = entry->second;
    if (op == nullptr && was_left_out(entry->first))
      return left_out(entry->first, Code::kUnsupportedOp, place(bound, method, i));
    MOTE_REQUIRE(op != nullptr, Code::kUnsupportedOp,
                 "%s: this runner has no op of that name; use the runner of the exporter's version",
                 place(bound, method, i).c_str());
    MOTE_REQUIRE(op->check != nullptr && (op->is_view || op->run != nullptr), Code::kInternal,
                 "%s: the op is not complete", place(bound, method, i).c_str());
    MOTE_RETURN_IF_ERROR(check_views(bound, method, i, *op));
    ops.push_back(op);
  }
  return {};
}

Status check_calls(const Bound& bound, uint32_t index) {
  const fb::Method& method = bound.method(index);
  const int64_t min = method.min_tokens();
  const int64_t max = std::min<int64_t>(method.max_tokens(), kMaxTokens);
  Invocation invocation(bound, index);
  MOTE_RETURN_IF_ERROR(invocation.prepare(min, nullptr, 1));
  if (max > min) MOTE_RETURN_IF_ERROR(invocation.prepare(min + 1, nullptr, 1));
  if (max > min + 1 && max <= kLargestCheckedTokens) return invocation.prepare(max, nullptr, 1);
  return {};
}

// Whether kernels or delegates of a verified method read weights.
bool reads_weights(const fb::Program& program, const fb::Method& method) {
  const auto is_weight = [](const fb::Value* value) { return value->kind() == fb::ValueKind::weight; };
  if (std::ranges::any_of(*method.values(), is_weight)) return true;
  return program.delegates() != nullptr && std::ranges::any_of(*program.delegates(), [](const fb::Delegate* each) {
           return each->weights()->size() > 0;
         });
}

// For each state, whether the instructions of a verified method name it.
std::vector<bool> states_of(const fb::Method& method, size_t num_states) {
  std::vector<bool> named(num_states);
  for (const fb::Instruction* instruction : *method.instructions()) {
    for (const fb::Attribute* attribute : *instruction->attributes()) {
      if (text_of(*attribute->name()) == "state")
        named[static_cast<size_t>(attribute->dims()->Get(0)->constant())] = true;
    }
  }
  return named;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// Whether a method other than a head's uses a state, in any target.
bool is_of_model(const fb::Program& program, size_t state) {
  return std::ranges::any_of(*program.methods(), [&](const fb::Method* method) {
    return !head_depth(*method).has_value() && uses_state(*method, static_cast<int64_t>(state));
  });
}

}  // namespace

Result<uint32_t> Bound::method_index(std::string_view name) const {
  for (uint32_t i = 0; i < num_methods(); ++i) {
    if (text_of(*method(i).name()) == name) return i;
  }
  return Status(Code::kInvalidArgument,
                format("%s: has no method %.*s", file().name().c_str(), static_cast<int>(name.size()), name.data()));
}

Status Bound::load_backends(const BindOptions& options) {
  DelegateParts parts(verified_, target_, options);
  for (Method& method : methods_) {
    for (uint32_t i = 0; i < method.ops.size(); ++i) {
      if (method.ops[i]->name != kDelegateOp) continue;
      method.delegate_calls.resize(method.ops.size());
      const Result<DelegateCall> call = parts.add(*method.method->instructions()->Get(i));
      if (!call.ok())
        return Status(call.status().code(), place(*this, *method.method, i) + ": " + call.status().message());
      method.delegate_calls[i] = *call;
    }
  }
  const auto whole_methods_of = [this](LoadedBackend backend) -> Result<WholeMethods> {
    MOTE_ASSIGN(std::shared_ptr<const Bound> bound, with(std::move(backend)));
    return whole_methods(std::move(bound));
  };
  MOTE_ASSIGN(backends_, parts.load(options.purpose, whole_methods_of, options.progress));
  return {};
}

Result<std::shared_ptr<const Bound>> Bound::with(LoadedBackend backend) const {
  const std::shared_ptr<Bound> bound(new Bound(verified_));
  bound->target_ = target_;
  bound->methods_ = methods_;
  bound->backends_.push_back(std::move(backend));
  bound->state_shapes_ = state_shapes_;
  MOTE_RETURN_IF_ERROR(bound->find_used_states());
  return std::shared_ptr<const Bound>(bound);
}

// A state must be kept by delegates in all methods or in none: a CPU kernel in decode would not find the keys that a
// delegate got in prefill.
Status Bound::find_used_states() {
  uses_state_.assign(state_shapes_.size(), false);
  head_of_.assign(state_shapes_.size(), std::nullopt);
  const Method* first = nullptr;
  for (const Method& method : methods_) {
    const std::vector<bool> used = states_of(*method.method, state_shapes_.size());
    if (const std::optional<size_t> depth = head_depth(*method.method); depth.has_value()) {
      for (size_t i = 0; i < used.size(); ++i) {
        if (used[i]) head_of_[i] = depth;
      }
      continue;
    }
    if (first == nullptr) first = &method;
    for (size_t i = 0; i < used.size(); ++i) {
      MOTE_REQUIRE(&method == first || backends_.empty() || used[i] == uses_state_[i], Code::kInvalidProgram,
                   "%s: states[%zu]: the kernels use it in %s or in %s of the target %s, and not in both",
                   file().name().c_str(), i, first->method->name()->c_str(), method.method->name()->c_str(),
                   std::string(target_).c_str());
      if (used[i]) uses_state_[i] = true;
    }
  }
  for (size_t i = 0; i < head_of_.size(); ++i) {
    if (!head_of_[i].has_value()) continue;
    if (is_of_model(program(), i)) {
      MOTE_REQUIRE(uses_state_[i], Code::kInvalidProgram,
                   "%s: states[%zu]: mtp reads it, and a delegate of the target %s keeps it", file().name().c_str(), i,
                   std::string(target_).c_str());
      head_of_[i] = std::nullopt;
      head_reads_session_ = true;
    } else {
      uses_state_[i] = true;
    }
  }
  for (size_t i = 0; i < uses_state_.size() && !has_delegate_state(); ++i) {
    MOTE_REQUIRE(backends_.empty() || uses_state_[i], Code::kInvalidProgram,
                 "%s: states[%zu]: neither a kernel nor a delegate of the target %s keeps it", file().name().c_str(), i,
                 std::string(target_).c_str());
  }
  return {};
}

// What is only described needs none.
Status Bound::make_weights(const BindOptions& options) {
  const auto reads = [&](const Method& method) { return reads_weights(program(), *method.method); };
  if (verified_->has_weights() || options.purpose == Purpose::kDescribe || std::ranges::none_of(methods_, reads))
    return {};
  return load_asset_weights(*verified_, options);
}

bool Bound::has_delegate_state() const {
  return std::ranges::any_of(backends_, [](const LoadedBackend& backend) { return backend.program->has_state(); });
}

bool Bound::is_lost() const {
  return std::ranges::any_of(backends_, [](const LoadedBackend& backend) { return backend.program->is_lost(); });
}

Result<std::shared_ptr<const Bound>> bind(std::shared_ptr<const Verified> verified, std::string_view target,
                                          const BindOptions& options) try {
  const std::shared_ptr<Bound> bound(new Bound(std::move(verified)));
  for (const fb::Method* method : *bound->program().methods()) {
    if (target_of(*method) == target) bound->methods_.push_back({method, {}, {}});
  }
  MOTE_RETURN_IF_ERROR(check_ops());
  MOTE_REQUIRE(!bound->methods_.empty(), Code::kInvalidArgument, "%s: has no target %.*s: it has %s",
               bound->file().name().c_str(), static_cast<int>(target.size()), target.data(),
               joined(targets_of(bound->program())).c_str());
  bound->target_ = target_of(*bound->methods_.front().method);
  for (const fb::State* state : *bound->program().states()) bound->state_shapes_.push_back(shape_of(*state));
  for (Bound::Method& method : bound->methods_) MOTE_RETURN_IF_ERROR(find_ops(*bound, *method.method, method.ops));
  MOTE_RETURN_IF_ERROR(report(options.progress, 0.0));
  MOTE_RETURN_IF_ERROR(bound->make_weights(options));
  for (uint32_t i = 0; i < bound->num_methods(); ++i) {
    MOTE_RETURN_IF_ERROR(report(options.progress, 0.0));
    if (bound->verified().has_weights() || !reads_weights(bound->program(), bound->method(i)))
      MOTE_RETURN_IF_ERROR(check_calls(*bound, i));
  }
  MOTE_RETURN_IF_ERROR(bound->load_backends(options));
  if (options.purpose == Purpose::kDescribe) return std::shared_ptr<const Bound>(bound);
  MOTE_RETURN_IF_ERROR(bound->find_used_states());
  if (const uint64_t bytes = bound->packed_weights().bytes(); bytes > 0) {
    MOTE_LOG_LINE(kInfo, "%s: kernels keep %llu bytes of packed weights", bound->file().name().c_str(),
                  static_cast<unsigned long long>(bytes));
  }
  return std::shared_ptr<const Bound>(bound);
} catch (const std::bad_alloc&) {
  return Status(Code::kOutOfMemory, "the system has no memory for the program's instructions");
}

Result<std::shared_ptr<const Bound>> bind(Verified verified) {
  const auto shared = std::make_shared<const Verified>(std::move(verified));
  return bind(shared, targets_of(shared->program()).front());
}

}  // namespace mote
