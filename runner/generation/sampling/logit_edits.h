// What penalties, biases and bans make of some logits. They act on greedy decoding too.
// Source: transformers generation/logits_process.py; DRY: text-generation-webui, pull request 5677
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runner/generation/sampling/options.h"

namespace mote {

struct LogitEdit {
  int32_t id = 0;
  float logit = 0.0f;
};

// Thread safety: one thread at a time. Cost of a step: the ids that occurred, where a penalty asks for them, and one
// look at the text for DRY and n-grams. No allocation once its lists have grown.
class LogitEdits {
 public:
  // `options` passed check_sampling. eos_ids: what min_new_tokens holds back.
  LogitEdits(const SamplingOptions& options, int32_t vocab_size, std::span<const int32_t> eos_ids);

  // Whether no logit ever changes.
  bool is_idle() const;

  // The text goes on with `id`, the prompt first; ids outside the vocabulary are left out.
  void observe(int32_t id, bool is_generated);

  // The ids whose logits change, ascending, with their new logits. `logits` [vocab_size]. Valid until the next call.
  std::span<const LogitEdit> apply(std::span<const float> logits);

 private:
  // What is known of an id.
  struct Mark {
    int32_t id = 0;
    int32_t seen = 0;       // times in the window of the repetition penalty
    int32_t generated = 0;  // times in the output
    float bias = 0.0f;
    float step_bias = 0.0f;     // of this step: sequences that the id would complete
    float step_penalty = 0.0f;  // likewise DRY; infinity: banned
  };

  Mark& mark(int32_t id);
  void ban(int32_t id);
  void add_marks(std::span<const int32_t> ids);
  void count_new_ids();
  void add_sequence_biases();
  void ban_repeated_ngrams();
  void add_dry_penalties();
  int32_t repeated_length(std::span<const int32_t> text, size_t end) const;
  bool is_breaker(int32_t id) const;
  float edited(const Mark& mark, float logit) const;

  SamplingOptions options_;  // sequence_bias: only those of more than one id, the marks have the others
  int32_t vocab_size_;
  std::vector<int32_t> eos_ids_;
  bool counts_ = false;  // a penalty needs to know which ids occurred
  std::vector<int32_t> text_;
  size_t num_prompt_ = 0;    // ids of the text that were not generated, in front of the others
  size_t num_counted_ = 0;   // ids of the text that their marks know of
  std::vector<Mark> marks_;  // by id
  std::vector<LogitEdit> edits_;
};

}  // namespace mote
