#include "tokenizer/compile/protobuf.h"

#include <cstring>

namespace mote::tokenizer {

float ProtobufField::as_float() const {
  const auto bits = static_cast<uint32_t>(value);
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

bool ProtobufReader::fail() {
  ok_ = false;
  return false;
}

bool ProtobufReader::read_varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return fail();
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return fail();
}

bool ProtobufReader::read_fixed(size_t size, uint64_t& value) {
  if (rest_.size() < size) return fail();
  value = 0;
  std::memcpy(&value, rest_.data(), size);
  rest_.remove_prefix(size);
  return true;
}

bool ProtobufReader::next(ProtobufField& field) {
  if (!ok_ || rest_.empty()) return false;
  uint64_t key = 0;
  if (!read_varint(key)) return false;
  field = {static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
  if (field.number == 0 || key >> 32 != 0) return fail();
  switch (field.wire_type) {
    case 0: return read_varint(field.value);
    case 1: return read_fixed(8, field.value);
    case 5: return read_fixed(4, field.value);
    case 2: {
      uint64_t size = 0;
      if (!read_varint(size)) return false;
      if (size > rest_.size()) return fail();
      field.bytes = rest_.substr(0, static_cast<size_t>(size));
      rest_.remove_prefix(static_cast<size_t>(size));
      return true;
    }
    default: return fail();
  }
}

}  // namespace mote::tokenizer
