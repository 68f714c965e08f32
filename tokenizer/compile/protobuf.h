// The wire format of protocol buffers, read within the bounds of its message.
// Source: protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string_view>

namespace mote::tokenizer {

// A field of a message. Of wire type 2 `bytes` is its content, of the others `value` its bits.
struct ProtobufField {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  uint64_t value = 0;
  std::string_view bytes;

  float as_float() const;  // wire type 5
};

// Reads fields from the front. After next() returned false, ok() says whether the message ended there or is damaged.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}
  bool next(ProtobufField& field);
  bool ok() const { return ok_; }

 private:
  bool fail();
  bool read_varint(uint64_t& value);
  bool read_fixed(size_t size, uint64_t& value);

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace mote::tokenizer
