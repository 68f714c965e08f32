// What a file says of the embeddings that its model gives.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "runner/model/model.h"

namespace mote {

// How the hidden states of a text's tokens become one vector.
enum class Pooling : int32_t {
  kMean = 0,
  kLastToken,
  kFirstToken,
  kMax,
  kMeanSqrtLength,  // the sum divided by the root of their number
  kWeightedMean     // the i-th token counts i times
};

struct EmbeddingConfig {
  Pooling pooling = Pooling::kMean;
  bool include_prompt = true;  // whether the tokens of the prompt count
  int64_t dimensions = 0;
  int64_t max_tokens = 0;      // of a text with its prompt
  bool bidirectional = false;  // tokens attend to what follows them, so that a text is computed in one call
  std::map<std::string, std::string, std::less<>> prompts{};
  std::string default_prompt_name{};  // empty: none
};

// A JSON object of its fields.
std::string describe(const EmbeddingConfig& config);

// Errors: kInvalidArgument if the file has no method that gives embeddings; kInvalidProgram naming the field.
Result<EmbeddingConfig> embedding_config(const Model& model);

}  // namespace mote
