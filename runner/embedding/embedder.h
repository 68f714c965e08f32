// Texts to vectors, several at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/embedding/embedding_config.h"
#include "runner/embedding/pooled.h"
#include "runner/session/engine.h"
#include "runner/session/options.h"
#include "runner/session/state/memory.h"

namespace mote {

// A text, or token ids, which are taken as they are.
struct EmbedInput {
  std::string_view text{};
  std::span<const int32_t> ids{};
  bool is_text = true;
};

struct EmbedOptions {
  std::string_view prompt_name{};  // of the file's prompts; empty: its default, if it has one
  std::string_view prompt{};       // put before each text
  bool has_prompt = false;
  int64_t dimensions = 0;     // the first ones of each vector; 0: all
  bool normalized = true;     // to length 1, after `dimensions`
  bool cut_to_fit = true;     // texts that are too long lose their end; else they are an error
  bool parse_special = true;  // special tokens spelled in a text become their ids
};

// Thread safety: one thread at a time but for cancel.
class Embedder {
 public:
  // Of the options of a session, those count that say how to compute; context_length bounds the tokens of a text, 0:
  // as many as the model takes. Errors: those of embedding_config and of opening a session.
  static Result<std::unique_ptr<Embedder>> open(std::shared_ptr<const Model> model, const SessionOptions& options);

  // Writes the vectors of the inputs one after another, dimensions(options) floats each, and how many tokens each input
  // has to `num_tokens` (empty, or one an input). What an input gives does not depend on the others. Errors:
  // kInvalidArgument naming the input or option; kContextFull; kCancelled; what the model reports.
  Status embed(std::span<const EmbedInput> inputs, const EmbedOptions& options, float* to,
               std::span<int64_t> num_tokens);
  // Errors: kInvalidArgument for more than there are.
  Result<int64_t> dimensions(const EmbedOptions& options) const;

  // {"passed": bool, "samples": [..]}, as check_golden of a session gives; a sample's "tokens" are 1. Keys and values
  // are float32 meanwhile.
  Result<std::string> check_golden();

  const Model& model() const { return *model_; }
  const EmbeddingConfig& config() const { return config_; }
  int64_t max_tokens() const { return config_.max_tokens; }
  int num_threads() const { return engine_.threads->num_threads(); }

  // From any thread: the running or the next call returns kCancelled.
  void cancel() { cancelled_.store(true); }

 private:
  // The tokens of an input, of which the first num_skipped are its prompt's and do not count.
  struct Text {
    std::vector<int32_t> ids{};
    int64_t num_skipped = 0;
  };
  // Consecutive tokens of one text in a call.
  struct Piece {
    size_t text = 0;
    size_t first = 0;
    size_t count = 0;
    size_t slot = 0;
  };
  // What one text of a call is computed with.
  struct Slot {
    StateMemory states;
    int64_t capacity = 0;  // tokens that the states have room for
    Pooled pooled{};
  };

  Embedder(std::shared_ptr<const Model> model, EmbeddingConfig config) : model_(std::move(model)), config_(config) {}
  Result<std::string> replay_golden();
  Status prepare(const SessionOptions& options);
  Result<std::string_view> prompt_of(const EmbedOptions& options) const;
  Result<Text> read(const EmbedInput& input, std::string_view prompt, const EmbedOptions& options) const;
  Result<Text> encode(std::string_view prompt, std::string_view text, const EmbedOptions& options) const;
  Result<std::vector<int32_t>> shortened(const std::string& text, const EmbedOptions& options) const;
  std::vector<Piece> next_call(std::span<const Text> texts, size_t& text, size_t& first) const;
  Status begin(const Text& text, size_t slot);
  Status compute(std::span<const Text> texts, std::span<const Piece> pieces);

  std::shared_ptr<const Model> model_;
  EmbeddingConfig config_;
  SessionOptions options_;
  uint32_t method_ = 0;
  bool can_compute_together_ = false;
  int64_t call_tokens_ = 0;  // the most of a call, but for a text that must be computed whole
  Engine engine_;
  std::vector<Slot> slots_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace mote
