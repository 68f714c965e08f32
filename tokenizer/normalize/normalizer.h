// What happens to text before it is split.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"

namespace mote::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual Result<std::string> normalize(std::string text) const = 0;
};

// The normalizer that `field` describes; nullptr: none. Supported: null, NFC, Sequence of these.
Result<std::unique_ptr<Normalizer>> make_normalizer(const Field& field);

}  // namespace mote::tokenizer
