// The states of a head for multi-token prediction.
#include <algorithm>

#include "runner/program/validation.h"

namespace mote {
namespace {

bool names_state(const fb::Instruction& instruction, int64_t state) {
  return std::ranges::any_of(*instruction.attributes(), [&](const fb::Attribute* attribute) {
    return text_of(*attribute->name()) == "state" && attribute->dims() != nullptr &&
           attribute->dims()->Get(0)->constant() == state;
  });
}

// Whether an instruction leaves the cache that it attends to as it is: it gets no keys.
bool is_read_only(const fb::Instruction& instruction) {
  const std::string_view op = text_of(*instruction.op());
  const bool has_keys = instruction.inputs()->size() > 1 && instruction.inputs()->Get(1) >= 0;
  return (op == "mote.attention" || op == "mote.attention_lse") && !has_keys;
}

// Another method of the file that uses a state of a head, or nullptr.
const fb::Method* other_user(const fb::Program& program, const fb::Method& head, int64_t state) {
  for (const fb::Method* method : *program.methods()) {
    if (text_of(*method->name()) != text_of(*head.name()) && uses_state(*method, state)) return method;
  }
  return nullptr;
}

}  // namespace

bool uses_state(const fb::Method& method, int64_t state) {
  return std::ranges::any_of(*method.instructions(),
                             [&](const fb::Instruction* instruction) { return names_state(*instruction, state); });
}

// A head goes back and forth on its own, so it changes no states but its own, and these are such that can go back.
Status verify_head_states(const Path& path, const fb::Program& program, const fb::Method& head, bool is_alone) {
  const char* name = head.name()->c_str();
  bool has_own = false, has_others = false;
  for (uint32_t i = 0; i < program.states()->size(); ++i) {
    if (!uses_state(head, i)) continue;
    const fb::State& state = *program.states()->Get(i);
    const fb::Method* other = other_user(program, head, i);
    has_own |= other == nullptr;
    has_others |= other != nullptr;
    if (other == nullptr && (state.kind() != fb::StateKind::kv_cache || state.window() != 0))
      return invalid(path, "%s: uses states[%u], %s: must be a KV cache without a window", name, i,
                     state.name()->c_str());
    if (other != nullptr && !is_alone)
      return invalid(path, "%s: uses states[%u], %s: must be used by no other method, and %s does", name, i,
                     state.name()->c_str(), other->name()->c_str());
    for (const fb::Instruction* instruction : *head.instructions()) {
      if (other == nullptr || !names_state(*instruction, i) || is_read_only(*instruction)) continue;
      return invalid(path, "%s: changes states[%u], %s: must be used by no other method, and %s does", name, i,
                     state.name()->c_str(), other->name()->c_str());
    }
  }
  if (has_own && has_others)
    return invalid(path, "%s: uses states of its own and those of other methods: must be one of them", name);
  return {};
}

}  // namespace mote
