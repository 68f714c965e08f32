// Tokenizer files to the segment that Tokenizer::open reads.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::tokenizer {

// A Hugging Face tokenizer.json with any component that tokenizers 0.23 knows. `truncation` and `padding` are passed
// over. Errors: kInvalidTokenizer naming the field, its value and what would be accepted.
Result<std::vector<std::byte>> compile_json(std::string_view json);

// A SentencePiece .model, BPE or Unigram.
Result<std::vector<std::byte>> compile_sentencepiece(std::string_view model);

struct TiktokenOptions {
  std::string pattern;                            // "": must be one of the known names
  std::string name;                               // cl100k_base, o200k_base, p50k_base, r50k_base, gpt2, llama3, qwen
  std::map<std::string, int32_t> special_tokens;  // spelling to id
};
// A .tiktoken file: lines of base64 and rank.
Result<std::vector<std::byte>> compile_tiktoken(std::string_view ranks, const TiktokenOptions& options);

// Mistral's tekken.json.
Result<std::vector<std::byte>> compile_tekken(std::string_view json);

// Whichever of these `bytes` is, by its content. `name`: of the file, which tells known tiktoken vocabularies apart.
Result<std::vector<std::byte>> compile_any(std::string_view bytes, std::string_view name);

}  // namespace mote::tokenizer
