#include "runner/session/method_calls.h"

#include <algorithm>

#include "runner/program/validation.h"

namespace mote {

bool depends_on_call(const fb::Method& method) {
  const int32_t position_ids = method.inputs()->Get(1);
  const auto looks_at_all = [&](const fb::Instruction* instruction) {
    const bool reads_positions = instruction->inputs()->size() > 0 && instruction->inputs()->Get(0) == position_ids;
    return reads_positions && instruction->op()->string_view() == "aten.amax";
  };
  return std::any_of(method.instructions()->begin(), method.instructions()->end(), looks_at_all);
}

bool has_recurrent_state(const fb::Program& program) {
  return std::ranges::any_of(*program.states(),
                             [](const fb::State* state) { return state->kind() == fb::StateKind::recurrent; });
}

int64_t longest_call(const Bound& bound) {
  int64_t prefill = 1, verify = 1;
  for (uint32_t i = 0; i < bound.num_methods(); ++i) {
    const fb::Method& method = bound.method(i);
    if (text_of(*method.name()) == "prefill") prefill = std::max<int64_t>(prefill, method.max_tokens());
    if (text_of(*method.name()) == "verify") verify = std::max<int64_t>(verify, method.max_tokens());
  }
  return std::min({prefill, verify, kMaxTokens});
}

Result<MethodCalls> MethodCalls::find(const Bound& bound, int64_t chunk) {
  MethodCalls calls;
  MOTE_ASSIGN(calls.decode_, bound.method_index("decode"));
  MOTE_ASSIGN(const uint32_t verify, bound.method_index("verify"));
  calls.prefill_ = find_variants(bound, "prefill", chunk);
  calls.verify_ = find_variants(bound, "verify", chunk);
  calls.can_pad_ = !has_recurrent_state(bound.program()) && !depends_on_call(bound.method(verify));
  return calls;
}

std::vector<MethodCalls::Variant> MethodCalls::find_variants(const Bound& bound, std::string_view name, int64_t chunk) {
  std::vector<Variant> variants;
  for (uint32_t i = 0; i < bound.num_methods(); ++i) {
    const fb::Method& method = bound.method(i);
    if (text_of(*method.name()) != name || method.min_tokens() > chunk) continue;
    variants.push_back({i, method.min_tokens(), std::min<int64_t>(method.max_tokens(), chunk)});
  }
  std::ranges::sort(variants, std::ranges::greater(), &Variant::max_tokens);
  return variants;
}

MethodCall MethodCalls::next(const std::vector<Variant>& variants, size_t count, int64_t room, bool every_row) const {
  const auto wanted = static_cast<int64_t>(count);
  const auto exact = std::ranges::find_if(variants, [&](const Variant& v) { return v.min_tokens <= wanted; });
  const int64_t taken = exact == variants.end() ? 0 : std::min(wanted, exact->max_tokens);
  // One call of `verify` that is filled up with further tokens costs less than several calls without, although its head
  // computes the logits of every token.
  if (can_pad_ && taken < wanted && wanted > 1) {
    const auto padded = std::ranges::find_if(verify_.rbegin(), verify_.rend(),
                                             [&](const Variant& v) { return v.max_tokens >= wanted; });
    if (padded != verify_.rend() && padded->max_tokens <= room)
      return {padded->method, padded->max_tokens, count, true};
  }
  if (taken == 0) return decode();
  return {exact->method, taken, static_cast<size_t>(taken), every_row};
}

int64_t MethodCalls::longest_verify() const { return verify_.empty() ? 1 : verify_.front().max_tokens; }

}  // namespace mote
