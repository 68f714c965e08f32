#include "tokenizer/decode/byte_level.h"

#include "tokenizer/byte_alphabet.h"

namespace mote::tokenizer {

Status ByteLevelDecoder::check(const Field& field) {
  const char* supported = "ByteLevel, or a Sequence of only that";
  if (field.is_null()) return field.error(supported);
  MOTE_RETURN_IF_ERROR(field.require_object());
  const std::string type = field.type();
  if (type == "ByteLevel") return {};
  if (type != "Sequence") return field["type"].error(supported);
  const Field list = field["decoders"];
  MOTE_RETURN_IF_ERROR(list.require_array());
  if (list.json().size() != 1) return list.error("a list of one ByteLevel");
  return check(list[size_t{0}]);
}

ByteLevelDecoder::ByteLevelDecoder(const std::vector<std::string>& spelled) {
  offsets_.reserve(spelled.size() + 1);
  for (const std::string& token : spelled) {
    offsets_.push_back(static_cast<uint32_t>(block_.size()));
    block_ += spelled_bytes(token).value_or(token);
  }
  offsets_.push_back(static_cast<uint32_t>(block_.size()));
}

std::string_view ByteLevelDecoder::bytes(int32_t id) const {
  if (id < 0 || id >= num_ids()) return {};
  const auto index = static_cast<size_t>(id);
  return std::string_view(block_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
}

}  // namespace mote::tokenizer
