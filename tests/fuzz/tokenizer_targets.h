// What the fuzz targets of the tokenizers do with their input: read it, and use what could be read. Each returns
// normally for any bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mote::test {

using Input = std::span<const std::byte>;

void fuzz_tokenizer_json(Input input);
void fuzz_sentencepiece(Input input);
void fuzz_ranks(Input input);    // tiktoken and Tekken
void fuzz_segment(Input input);  // a compiled tokenizer
void fuzz_encode(Input input);   // text, for sound tokenizers
void fuzz_decode(Input input);   // ids, for sound tokenizers

struct Target {
  const char* name;
  void (*run)(Input);
  std::vector<std::string> (*seeds)();
};
const std::vector<Target>& tokenizer_targets();

}  // namespace mote::test
