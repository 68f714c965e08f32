#include "tokenizer/model/byte_ids.h"

namespace mote::tokenizer {

Status read_byte_ids(const fb::Segment& segment, std::array<int32_t, 256>& ids) {
  ids.fill(-1);
  const auto* table = segment.model()->byte_ids();
  if (table == nullptr || table->size() == 0) return {};
  MOTE_REQUIRE(table->size() == 256, Code::kInvalidTokenizer, "model.byte_ids has %u entries: must be 256",
               table->size());
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const int32_t id = table->Get(byte);
    MOTE_REQUIRE(id >= -1 && (id < 0 || static_cast<uint32_t>(id) < segment.token_flags()->size()),
                 Code::kInvalidTokenizer, "model.byte_ids[%u] = %d: must be below %u", byte, id,
                 segment.token_flags()->size());
    ids[byte] = id;
  }
  return {};
}

}  // namespace mote::tokenizer
