#include "base/small_file.h"

#include "base/open_file.h"

namespace mote {

std::string text_of_small_file(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 17, kBytesAtOnce = size_t{1} << 12;
  const Result<OpenedFile> file = open_regular_file(path);
  if (!file.ok()) return {};
  std::string text;
  size_t count = 0;
  for (size_t more = 1; more > 0 && count < kMostBytes; count += more) {
    text.resize(count + kBytesAtOnce);
    more = read_some(file->descriptor.get(), std::as_writable_bytes(std::span(text).subspan(count))).count;
  }
  text.resize(count);
  return text;
}

std::string first_word_of_file(const std::string& path) {
  const std::string text = text_of_small_file(path);
  return text.substr(0, text.find_first_of(" \t\n"));
}

}  // namespace mote
