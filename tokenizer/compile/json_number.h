// Numbers of JSON as the reader of Hugging Face's tokenizers reads them, which is not always the nearest double.
#pragma once

#include <string_view>

namespace mote::tokenizer {

// `text` is a number in JSON's syntax. Where two paths of a Unigram model are equal but for rounding, ids depend on the
// last bit. Source: serde_json de.rs (parse_number, f64_from_parts) without its feature float_roundtrip
double json_number(std::string_view text);

}  // namespace mote::tokenizer
