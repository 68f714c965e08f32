#include "runner/model/parts.h"

#include <set>

#include "runner/program/delegates.h"
#include "runner/program/validation.h"
#include "tokenizer/parts.h"

namespace mote {
namespace {

using Parts = std::set<std::string>;

// The products of an instruction with tiles of a weight.
void add_products(const fb::Program& program, const fb::Method& method, const fb::Instruction& from, Parts& parts) {
  for (const fb::Attribute* attribute : *from.attributes()) {
    if (text_of(*attribute->name()) != "activations" || attribute->text() == nullptr) continue;
    const std::string_view rounding = text_of(*attribute->text());
    for (const int32_t index : *from.inputs()) {
      if (index < 0) continue;
      const fb::Value& value = *method.values()->Get(static_cast<uint32_t>(index));
      if (value.kind() != fb::ValueKind::weight) continue;
      const int bits = program.weights()->Get(static_cast<uint32_t>(value.weight()))->bits();
      if (bits == 0) continue;
      parts.insert("weights." + std::to_string(bits));
      parts.insert(rounding == "float"          ? "linear.floats"
                   : rounding == "grouped_int8" ? "linear.groups"
                                                : "linear.codes");
    }
  }
}

}  // namespace

Result<std::vector<std::string>> parts_of(const Verified& verified) {
  const fb::Program& program = verified.program();
  Parts parts;
  for (const fb::Method* method : *program.methods()) {
    for (const fb::Instruction* each : *method->instructions()) {
      if (text_of(*each->op()) == kDelegateOp) continue;
      parts.insert(each->op()->str());
      add_products(program, *method, *each, parts);
    }
  }
  if (program.delegates() != nullptr) {
    for (const fb::Delegate* delegate : *program.delegates()) parts.insert("backends." + delegate->backend()->str());
  }
  if (program.embedding() != nullptr) parts.insert("embeddings");
  if (!verified.segment(fb::SegmentKind::chat_template).empty()) parts.insert("templates");
  if (!verified.segment(fb::SegmentKind::tokenizer).empty()) {
    MOTE_ASSIGN(const std::vector<std::byte> tokenizer, verified.copy(fb::SegmentKind::tokenizer));
    const auto needed = tokenizer::parts_of(tokenizer);
    if (!needed.ok()) return Status(needed.status().code(), verified.file().name() + ": " + needed.status().message());
    parts.insert(needed->begin(), needed->end());
  }
  return std::vector<std::string>(parts.begin(), parts.end());
}

}  // namespace mote
