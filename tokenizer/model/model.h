// Pieces to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// A token and the bytes of the piece that it stands for.
struct Token {
  int32_t id = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Immutable.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a piece, which is not empty.
  // Errors: kInvalidArgument if the piece holds what the vocabulary lacks and there is no unknown token.
  virtual Status encode(std::string_view piece, std::vector<Token>& tokens) const = 0;
  // The same without places.
  virtual Status encode_ids(std::string_view piece, std::vector<int32_t>& ids) const;
};

// A token that the file names but its vocabulary lacks; using it is an error.
inline constexpr int32_t kMissingId = -2;

// Errors: kInvalidTokenizer naming the parameter.
Result<std::unique_ptr<Model>> make_model(const fb::Segment& segment);

}  // namespace mote::tokenizer
