#include "runner/grammars/utf8_ranges.h"

#include <array>
#include <string>

#include "base/utf8.h"

namespace mote::constraints {
namespace {

constexpr std::array<char32_t, 4> kLastOfLength = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

std::string encoded(char32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

}  // namespace

void append_utf8_sequences(CodePointRange range, std::vector<ByteSequence>& sequences) {
  for (const char32_t last : kLastOfLength) {
    if (range.low <= last && range.high > last) {
      append_utf8_sequences({range.low, last}, sequences);
      append_utf8_sequences({last + 1, range.high}, sequences);
      return;
    }
  }
  // Splits the range until all bytes behind the first one that varies run over the whole of 80..BF.
  for (int bits = 6; bits <= 18 && range.high > 0x7F; bits += 6) {
    const char32_t rest = (char32_t{1} << bits) - 1;
    if ((range.low & ~rest) == (range.high & ~rest)) continue;
    if ((range.low & rest) != 0) {
      append_utf8_sequences({range.low, range.low | rest}, sequences);
      append_utf8_sequences({(range.low | rest) + 1, range.high}, sequences);
      return;
    }
    if ((range.high & rest) != rest) {
      append_utf8_sequences({range.low, (range.high & ~rest) - 1}, sequences);
      append_utf8_sequences({range.high & ~rest, range.high}, sequences);
      return;
    }
  }
  const std::string low = encoded(range.low);
  const std::string high = encoded(range.high);
  ByteSequence sequence;
  for (size_t i = 0; i < low.size(); ++i)
    sequence.push_back({static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])});
  sequences.push_back(std::move(sequence));
}

}  // namespace mote::constraints
