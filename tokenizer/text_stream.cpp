#include "tokenizer/text_stream.h"

#include <algorithm>

#include "base/utf8.h"

namespace mote {
namespace {

constexpr size_t kContext = 6;      // ids before a text that are decoded with it
constexpr size_t kMaxWindow = 512;  // ids held back at most: a character has fewer bytes

size_t common_prefix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

TextStream::TextStream(const Tokenizer* tokenizer, bool skip_special, std::span<const int32_t> context)
    : tokenizer_(tokenizer), skip_special_(skip_special) {
  if (tokenizer_ == nullptr || tokenizer_->is_byte_level()) return;
  const auto kept = context.last(std::min(context.size(), kContext));
  ids_.assign(kept.begin(), kept.end());
  given_ = tokenizer_->decode(ids_, skip_special_);
}

std::string TextStream::push(int32_t id) {
  if (tokenizer_ == nullptr || (skip_special_ && tokenizer_->is_special(id))) return {};
  return tokenizer_->is_byte_level() ? push_bytes(id) : push_decoded(id);
}

std::string TextStream::push_bytes(int32_t id) {
  pending_ += tokenizer_->token_bytes(id);
  const size_t complete = pending_.size() - incomplete_utf8_suffix(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

// Decodes the last ids again with the new one. A text that ends in U+FFFD may be the beginning of a character.
std::string TextStream::push_decoded(int32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_->decode(ids_, skip_special_);
  if (text.ends_with(kReplacementCharacter) && ids_.size() < kMaxWindow) return {};
  std::string fresh = text.substr(text.starts_with(given_) ? given_.size() : common_prefix(text, given_));
  fresh = replace_invalid_utf8(fresh);
  if (ids_.size() > 2 * kContext) ids_.erase(ids_.begin(), ids_.end() - static_cast<ptrdiff_t>(kContext));
  given_ = tokenizer_->decode(ids_, skip_special_);
  return fresh;
}

std::string TextStream::finish() {
  std::string text;
  if (tokenizer_ != nullptr && tokenizer_->is_byte_level()) {
    text = replace_invalid_utf8(pending_);
  } else if (tokenizer_ != nullptr) {
    text = tokenizer_->decode(ids_, skip_special_);
    text = replace_invalid_utf8(text.substr(text.starts_with(given_) ? given_.size() : common_prefix(text, given_)));
    given_ += text;
  }
  pending_.clear();
  return text;
}

}  // namespace mote
