#include "tokenizer/pretokenize/pretokenizer.h"

#include "tokenizer/pretokenize/byte_level.h"
#include "tokenizer/pretokenize/split.h"

namespace mote::tokenizer {
namespace {

using Chain = std::vector<std::unique_ptr<Pretokenizer>>;

constexpr const char* kSupported = "ByteLevel, or a Sequence of Split that ends with ByteLevel";

// `bytes_spelled`: a ByteLevel came before, so the text would be spelled in its alphabet from here on.
Status append(const Field& field, Chain& chain, bool& bytes_spelled) {
  MOTE_RETURN_IF_ERROR(field.require_object());
  const std::string type = field.type();
  if (type == "Sequence") {
    const Field list = field["pretokenizers"];
    MOTE_RETURN_IF_ERROR(list.require_array());
    for (size_t i = 0; i < list.json().size(); ++i) MOTE_RETURN_IF_ERROR(append(list[i], chain, bytes_spelled));
    return {};
  }
  if (bytes_spelled) return field["type"].error("absent: ByteLevel comes last");
  if (type == "Split") {
    MOTE_ASSIGN(auto split, Split::make(field));
    chain.push_back(std::move(split));
  } else if (type == "ByteLevel") {
    MOTE_ASSIGN(auto byte_level, ByteLevelPretokenizer::make(field));
    chain.push_back(std::move(byte_level));
    bytes_spelled = true;
  } else {
    return field["type"].error(kSupported);
  }
  return {};
}

}  // namespace

Result<Chain> make_pretokenizers(const Field& field) {
  Chain chain;
  bool bytes_spelled = false;
  if (field.is_null()) return field.error(kSupported);
  MOTE_RETURN_IF_ERROR(append(field, chain, bytes_spelled));
  if (!bytes_spelled) return field.error(kSupported);
  return chain;
}

}  // namespace mote::tokenizer
