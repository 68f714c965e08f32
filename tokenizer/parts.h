// Which parts of Mote (base/parts.h) a compiled tokenizer needs.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "segment_generated.h"

namespace mote::tokenizer {

inline constexpr std::string_view kRegexPart = "tokenizer.regex";

// The part that a stage is in; empty: every build has it.
constexpr std::string_view part_of(fb::ModelKind kind) {
  switch (kind) {
    case fb::ModelKind::bpe:
    case fb::ModelKind::byte_level_bpe: return "tokenizer.bpe";
    case fb::ModelKind::unigram: return "tokenizer.unigram";
    case fb::ModelKind::wordpiece:
    case fb::ModelKind::wordlevel: return "tokenizer.wordpiece";
    case fb::ModelKind::sentencepiece_bpe:
    case fb::ModelKind::sentencepiece_unigram: return "tokenizer.sentencepiece";
  }
  return {};
}
constexpr std::string_view part_of(fb::NormalizerKind kind) {
  switch (kind) {
    case fb::NormalizerKind::nfc:
    case fb::NormalizerKind::nfd:
    case fb::NormalizerKind::nfkc:
    case fb::NormalizerKind::nfkd:
    case fb::NormalizerKind::strip_accents:
    case fb::NormalizerKind::bert: return "tokenizer.unicode_forms";
    case fb::NormalizerKind::precompiled: return "tokenizer.charsmap";
    case fb::NormalizerKind::sentencepiece: return "tokenizer.sentencepiece";
    default: return {};
  }
}

// The parts that opening and using the tokenizer takes, each once. Errors: those of verify_segment.
Result<std::vector<std::string_view>> parts_of(std::span<const std::byte> segment);

}  // namespace mote::tokenizer
