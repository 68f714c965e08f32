// A byte-level BPE tokenizer.json of a few tokens, for tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tokenizer/compile/compile.h"

namespace mote::test {

struct TinyTokenizer {
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type": "ByteLevel"})";
  std::string added_tokens = R"([{"id": 0, "content": "<eos>", "special": true}])";
  // Ids 1..8: single bytes, then what they merge to. Id 0 is the added token's.
  std::string model =
      R"({"type": "BPE", "vocab": {"<eos>": 0, "a": 1, "b": 2, "c": 3, "d": 4, "Ġ": 5, "Ã": 6, "©": 7, "Ċ": 8,
      "ab": 9, "abc": 10, "Ġa": 11, "Ã©": 12, "bc": 13}, "merges": ["a b", ["Ġ", "a"], "ab c", "Ã ©", "b c"]})";

  std::string json() const {
    return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": )" + added_tokens +
           R"(, "normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer + R"(, "post_processor": )" +
           post_processor + R"(, "decoder": )" + decoder + R"(, "model": )" + model + "}";
  }
  // What a .mote file holds. Empty if the tokenizer is refused.
  std::string compiled() const {
    const auto segment = tokenizer::compile_json(json());
    if (!segment.ok()) return {};
    return std::string(reinterpret_cast<const char*>((*segment).data()), (*segment).size());
  }
};

}  // namespace mote::test
