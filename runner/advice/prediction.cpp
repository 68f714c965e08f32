#include "runner/advice/prediction.h"

#include <algorithm>
#include <chrono>

#include "runner/program/validation.h"

namespace mote {
namespace {

double seconds_of(const Profile::Event& event) {
  return std::chrono::duration<double>(event.end - event.start).count();
}

struct Kind {
  std::string name;
  bool depends_on_tokens = false;
};

// T counts as 1: what one method does with many tokens another does with one.
void add_operand(const fb::Program& program, const fb::Value& value, Kind& kind) {
  kind.name += ' ';
  if (value.kind() == fb::ValueKind::weight) {
    const fb::Weight& weight = *program.weights()->Get(static_cast<uint32_t>(value.weight()));
    kind.name +=
        fb::EnumNameDType(weight.dtype()) + std::to_string(weight.bits()) + '/' + std::to_string(weight.group_size());
  }
  for (const fb::Dim* dim : *value.shape()) {
    kind.depends_on_tokens |= dim->tokens() != 0;
    kind.name += ',' + std::to_string(dim->tokens() + dim->constant());
  }
}

Kind kind_of(const Bound& bound, uint32_t method, uint32_t index) {
  const fb::Method& in = bound.method(method);
  const fb::Instruction& instruction = *in.instructions()->Get(index);
  Kind kind{instruction.op()->str()};
  for (const auto* operands : {instruction.inputs(), instruction.outputs()}) {
    for (const int32_t value : *operands) {
      if (value >= 0) add_operand(bound.program(), *in.values()->Get(static_cast<uint32_t>(value)), kind);
    }
  }
  return kind;
}

}  // namespace

void Prediction::add_decode(const Profile& profile) {
  for (uint64_t i = profile.events().first(); i < profile.events().num_added(); ++i) {
    const Profile::Event& event = profile.events()[i];
    decode_[kind_of(bound_, profile.calls()[event.call_index].method, event.instruction).name].add(seconds_of(event));
  }
}

double Prediction::of_prompt(const Profile& profile, int64_t tokens) const {
  const auto& calls = profile.calls();
  double whole_seconds = 0;
  int64_t whole_tokens = 0;
  for (uint64_t i = calls.first(); i + 1 < calls.num_added(); ++i) {
    whole_seconds += std::chrono::duration<double>(calls[i].end - calls[i].start).count();
    whole_tokens += calls[i].tokens;
  }
  if (whole_tokens > 0) return whole_seconds * static_cast<double>(tokens) / static_cast<double>(whole_tokens);
  const Profile::Call& call = calls[calls.first()];
  Times seen;
  for (uint64_t i = profile.events().first(); i < profile.events().num_added(); ++i) {
    const Profile::Event& event = profile.events()[i];
    seen[kind_of(bound_, call.method, event.instruction).name].add(seconds_of(event));
  }
  return of_call(call.method, seen) * static_cast<double>(tokens) / static_cast<double>(call.tokens);
}

double Prediction::of_call(uint32_t method, const Times& seen) const {
  const std::span<const Op* const> ops = bound_.ops(method);
  double in_prompt = 0, in_decode = 0;  // of what both have
  for (const auto& [name, time] : seen) {
    const auto step = decode_.find(name);
    if (step == decode_.end()) continue;
    in_prompt += time.mean();
    in_decode += step->second.mean();
  }
  const double ratio = in_decode > 0 ? in_prompt / in_decode : 1;
  double seconds = 0;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i]->is_view) continue;
    const Kind kind = kind_of(bound_, method, i);
    if (const auto time = seen.find(kind.name); time != seen.end()) {
      seconds += time->second.mean();
    } else if (const auto step = decode_.find(kind.name); step != decode_.end()) {
      seconds += step->second.mean() * (kind.depends_on_tokens ? ratio : 1);
    }
  }
  return seconds;
}

}  // namespace mote
