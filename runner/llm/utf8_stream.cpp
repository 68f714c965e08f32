#include "runner/llm/utf8_stream.h"

#include "base/utf8.h"

namespace mote {

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  const size_t complete = pending_.size() - incomplete_utf8_suffix(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Utf8Stream::finish() {
  std::string text = replace_invalid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace mote
