// The patterns that scanners were written for, as their tokenizers spell them.
#include <string>

#include "tokenizer/pretokenize/gap_scanner.h"
#include "tokenizer/pretokenize/scanner.h"
#include "tokenizer/pretokenize/word_scanner.h"

namespace mote::tokenizer {
namespace {

using Contractions = WordOptions::Contractions;

template <typename T, typename... Arguments>
std::unique_ptr<Scanner> made_scanner(Arguments... arguments) {
  return std::make_unique<T>(arguments...);
}

struct Known {
  std::string_view pattern;
  std::unique_ptr<Scanner> (*make)();
};

std::unique_ptr<Scanner> gpt2() { return made_scanner<Gpt2Scanner>(); }
std::unique_ptr<Scanner> llama3() { return made_scanner<WordScanner>(WordOptions{}); }
std::unique_ptr<Scanner> cl100k() { return made_scanner<WordScanner>(WordOptions{.last_space_whole = true}); }
std::unique_ptr<Scanner> qwen2() { return made_scanner<WordScanner>(WordOptions{.max_digits = 1}); }
std::unique_ptr<Scanner> qwen35() {
  return made_scanner<WordScanner>(WordOptions{.max_digits = 1, .marks_in_words = true});
}
std::unique_ptr<Scanner> o200k() {
  return made_scanner<CasedWordScanner>(WordOptions{.contractions = Contractions::kSuffix, .slash_behind_signs = true});
}
std::unique_ptr<Scanner> tekken() {
  return made_scanner<CasedWordScanner>(
      WordOptions{.contractions = Contractions::kNone, .max_digits = 1, .slash_behind_signs = true});
}
std::unique_ptr<Scanner> deepseek() { return made_scanner<DeepSeekScanner>(); }
std::unique_ptr<Scanner> cjk() { return made_scanner<CjkScanner>(); }
std::unique_ptr<Scanner> one_digit() { return made_scanner<DigitsScanner>(1); }
std::unique_ptr<Scanner> three_digits() { return made_scanner<DigitsScanner>(3); }
std::unique_ptr<Scanner> falcon() { return made_scanner<ThreeDigitsScanner>(); }

constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     cl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen35},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     o200k},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     tekken},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     deepseek},
    {"[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+", cjk},
    {R"(\p{N})", one_digit},
    {R"(\p{N}{1,3})", three_digits},
    {R"([0-9][0-9][0-9])", falcon},
};

}  // namespace

std::unique_ptr<Scanner> scanner_for(std::string_view pattern) {
  for (const Known& known : kKnown) {
    if (known.pattern == pattern) return known.make();
  }
  return nullptr;
}

}  // namespace mote::tokenizer
