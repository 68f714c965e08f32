#include "tokenizer/decode/decoders.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/text/growth.h"

namespace mote::tokenizer {
namespace {

int hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte that "<0xXX>" names, -1: another token. Rust's parser also takes a sign before one digit.
int named_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const int high = token[3] == '+' ? 0 : hexadecimal_digit(token[3]);
  const int low = hexadecimal_digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// What WordPiece puts a space before and English does not.
std::string without_spaces_before_signs(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements{{{" .", "."},
                                                                                                {" ?", "?"},
                                                                                                {" !", "!"},
                                                                                                {" ,", ","},
                                                                                                {" ' ", "'"},
                                                                                                {" n't", "n't"},
                                                                                                {" 'm", "'m"},
                                                                                                {" do not", " don't"},
                                                                                                {" 's", "'s"},
                                                                                                {" 've", "'ve"},
                                                                                                {" 're", "'re"}}};
  std::string cleaned(text);
  for (const auto& [from, to] : kReplacements) cleaned = replace_all(cleaned, from, to);
  return cleaned;
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  size_t end = 0;
  if (from.empty()) {
    while (end < text.size()) {
      replaced += to;
      const size_t length = first_utf8_character(text.substr(end)).length;
      replaced += text.substr(end, length);
      end += length;
    }
    return replaced + std::string(to);
  }
  for (size_t found = text.find(from); found != std::string_view::npos; found = text.find(from, end)) {
    replaced += text.substr(end, found - end);
    replaced += to;
    end = found + from.size();
  }
  return replaced += text.substr(end);
}

size_t total_bytes(const std::vector<TokenText>& tokens) {
  size_t bytes = 0;
  for (const TokenText& token : tokens) bytes += token.text.size();
  return bytes;
}

void fuse(std::vector<TokenText>& tokens) {
  TokenText all;
  for (const TokenText& token : tokens) all.text += token.text;
  tokens = {std::move(all)};
}

Status ByteLevelDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  std::string bytes;
  for (const TokenText& token : tokens) bytes += spelled_bytes(token.text).value_or(token.text);
  tokens = {{replace_invalid_utf8(bytes), -1}};
  return {};
}

Status ByteFallbackDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  std::vector<TokenText> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes))
      result.push_back({bytes, -1});
    else
      result.insert(result.end(), bytes.size(), {std::string(kReplacementCharacter), -1});
    bytes.clear();
  };
  for (TokenText& token : tokens) {
    if (const int byte = named_byte(token.text); byte >= 0) {
      bytes += static_cast<char>(static_cast<unsigned char>(byte));
      continue;
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  tokens = std::move(result);
  return {};
}

Status FuseDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  fuse(tokens);
  return {};
}

Status WordPieceDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& text = tokens[i].text;
    if (i > 0 && text.substr(0, prefix_.size()) == prefix_)
      text.erase(0, prefix_.size());
    else if (i > 0)
      text.insert(text.begin(), ' ');
    if (cleanup_) text = without_spaces_before_signs(text);
  }
  return {};
}

Status BpeDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].text = replace_all(tokens[i].text, suffix_, i + 1 == tokens.size() ? "" : " ");
  }
  return {};
}

Status CtcDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  const auto same = [](const TokenText& a, const TokenText& b) { return a.text == b.text; };
  tokens.erase(std::unique(tokens.begin(), tokens.end(), same), tokens.end());
  for (TokenText& token : tokens) {
    token.text = replace_all(token.text, padding_, "");
    if (cleanup_) token.text = replace_all(without_spaces_before_signs(token.text), delimiter_, " ");
  }
  std::erase_if(tokens, [](const TokenText& token) { return token.text.empty(); });
  return {};
}

MetaspaceDecoder::MetaspaceDecoder(char32_t replacement, bool drops_first) : drops_first_(drops_first) {
  append_utf8(replacement_, replacement);
}

Status MetaspaceDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].text = replace_all(tokens[i].text, replacement_, i == 0 && drops_first_ ? "" : " ");
  }
  return {};
}

Status ReplaceDecoder::apply(std::vector<TokenText>& tokens, size_t limit) const {
  size_t others = total_bytes(tokens);
  for (TokenText& token : tokens) {
    others -= token.text.size();
    MOTE_ASSIGN(const std::vector<Span> spans, pattern_.spans(token.text));
    std::string replaced;
    for (const Span& span : spans) {
      replaced += span.is_match ? content_ : token.text.substr(span.begin, span.end - span.begin);
      MOTE_RETURN_IF_ERROR(check_growth(others + replaced.size(), limit));
    }
    others += replaced.size();
    token.text = std::move(replaced);
  }
  return {};
}

StripDecoder::StripDecoder(char32_t content, uint32_t start, uint32_t stop) : start_(start), stop_(stop) {
  append_utf8(content_, content);
}

Status StripDecoder::apply(std::vector<TokenText>& tokens, size_t) const {
  const size_t size = content_.size();
  for (TokenText& token : tokens) {
    std::string_view text = token.text;
    for (uint32_t i = 0; i < start_ && text.substr(0, size) == content_; ++i) text.remove_prefix(size);
    for (uint32_t i = 0; i < stop_ && text.size() >= size && text.substr(text.size() - size) == content_; ++i) {
      text.remove_suffix(size);
    }
    token.text = std::string(text);
  }
  return {};
}

}  // namespace mote::tokenizer
