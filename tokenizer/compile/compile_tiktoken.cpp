#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tokenizer/compile/base64.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/compile/ranks.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {
namespace {

constexpr const char* kGpt2 = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct KnownName {
  std::string_view name;
  const char* pattern;
};
constexpr KnownName kKnownNames[] = {{"cl100k_base", kCl100k}, {"o200k_base", kO200k}, {"p50k_base", kGpt2},
                                     {"r50k_base", kGpt2},     {"gpt2", kGpt2},        {"llama3", kLlama3},
                                     {"qwen", kQwen}};

// Patterns of tiktoken that mean the same as another one does to Oniguruma, where {1,3}+ is no possessive repetition.
constexpr std::array<std::pair<std::string_view, const char*>, 2> kSame{{
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", kGpt2},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     kCl100k},
}};

Result<std::string> pattern_of(const TiktokenOptions& options) {
  for (const auto& [pattern, same] : kSame) {
    if (options.pattern == pattern) return std::string(same);
  }
  if (!options.pattern.empty()) return options.pattern;
  for (const KnownName& known : kKnownNames) {
    if (options.name.find(known.name) != std::string::npos) return std::string(known.pattern);
  }
  return Status(Code::kInvalidTokenizer,
                "tiktoken: the name \"" + options.name +
                    "\" is not known: give the pattern, or a name with cl100k_base, o200k_base, p50k_base, "
                    "r50k_base, gpt2, llama3 or qwen");
}

Status read_line(std::string_view line, size_t number, std::vector<std::string>& ranks) {
  const size_t space = line.find(' ');
  const auto bytes = decode_base64(line.substr(0, space));
  int64_t rank = -1;
  if (space != std::string_view::npos && line.size() - space <= 8) {
    rank = 0;
    for (const char c : line.substr(space + 1)) rank = c >= '0' && c <= '9' && rank >= 0 ? 10 * rank + (c - '0') : -1;
    if (line.size() == space + 1) rank = -1;
  }
  MOTE_REQUIRE(bytes.has_value() && !bytes->empty() && rank >= 0 && rank < kMaxTokenId, Code::kInvalidTokenizer,
               "tiktoken: line %zu = \"%s\": must be base64, a space, and a rank below %d", number,
               replace_invalid_utf8(line.substr(0, 60)).c_str(), kMaxTokenId);
  const auto index = static_cast<size_t>(rank);
  if (ranks.size() <= index) ranks.resize(index + 1);
  MOTE_REQUIRE(ranks[index].empty(), Code::kInvalidTokenizer,
               "tiktoken: line %zu: rank %zu stands in an earlier line too", number, index);
  ranks[index] = *bytes;
  return {};
}

Result<std::vector<std::string>> read_ranks(std::string_view text) {
  std::vector<std::string> ranks;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) MOTE_RETURN_IF_ERROR(read_line(line, number, ranks));
  }
  return ranks;
}

}  // namespace

Result<std::vector<std::byte>> compile_tiktoken(std::string_view text, const TiktokenOptions& options) {
  MOTE_ASSIGN(const std::string pattern, pattern_of(options));
  MOTE_ASSIGN(const std::vector<std::string> ranks, read_ranks(text));
  Draft draft;
  MOTE_RETURN_IF_ERROR(fill_ranks(ranks, 0, pattern, draft));
  std::vector<std::pair<std::string, int32_t>> special(options.special_tokens.begin(), options.special_tokens.end());
  std::sort(special.begin(), special.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (size_t i = 0; i < special.size(); ++i) {
    const auto& [token, id] = special[i];
    const bool taken = id >= 0 && static_cast<size_t>(id) < ranks.size() && !ranks[static_cast<size_t>(id)].empty();
    const bool repeated = i > 0 && special[i - 1].second == id;
    MOTE_REQUIRE(!token.empty() && is_valid_utf8(token) && id >= 0 && id <= kMaxTokenId && !taken && !repeated,
                 Code::kInvalidTokenizer,
                 "tiktoken: special_tokens[\"%s\"] = %d: must be an id from 0 to %d that no other token has, of a text "
                 "that is not empty",
                 replace_invalid_utf8(token).c_str(), id, kMaxTokenId);
  }
  add_special_tokens(special, draft);
  return finish(std::move(draft));
}

}  // namespace mote::tokenizer
