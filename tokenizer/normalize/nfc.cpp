#include "tokenizer/normalize/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace mote::tokenizer {

Result<std::string> Nfc::normalize(std::string text) const {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return text;
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                               static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(composed, &std::free);
  MOTE_REQUIRE(length >= 0, Code::kInvalidArgument, "the text cannot be normalised: %s", utf8proc_errmsg(length));
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
}

}  // namespace mote::tokenizer
