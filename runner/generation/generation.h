// The loop from a prompt to text, one token at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/generation/generation_options.h"
#include "runner/generation/pacer.h"
#include "runner/generation/sampling/sampler.h"
#include "runner/generation/speculation/speculator.h"
#include "runner/generation/statistics.h"
#include "runner/generation/stop_strings.h"
#include "runner/grammars/constraint.h"
#include "runner/session/session.h"
#include "tokenizer/text_stream.h"

namespace mote {

// What of the options can be told without a session. Errors: kInvalidArgument naming the option, its value and what
// would be accepted.
Status check_generation(const Model& model, const GenerationOptions& options);

enum class FinishReason : int32_t { kEos = 0, kLength = 1, kStopString = 2, kCancelled = 3, kStopToken = 4, kTime = 5 };

struct Piece {
  std::string text;                           // whole characters; may be empty
  int32_t id = -1;                            // the token that was sampled; -1: none
  std::optional<FinishReason> finish_reason;  // set in the last piece
  float logprob = 0.0f;                       // of the token, if asked for
  std::vector<TokenLogprob> top_logprobs{};   // likeliest first
};

// How long a wait for the pace goes on before it asks whether it was cancelled.
inline constexpr std::chrono::milliseconds kMostWait{10};

// Thread safety: as its session, which outlives it and has no other calls until the generation ends.
class Generation {
 public:
  // Checks everything; computes nothing. Errors: kInvalidArgument, kContextFull naming both numbers, kInvalidTokenizer.
  // `speculator`: the session's, for what it learned and its draft model; nullptr: a new one.
  static Result<std::unique_ptr<Generation>> begin(Session& session, std::vector<int32_t> prompt,
                                                   const GenerationOptions& options,
                                                   std::shared_ptr<Speculator> speculator = nullptr);

  ~Generation() { end(); }

  // The first call prefills the prompt. After the last piece: empty pieces with the same finish reason. After
  // std::bad_alloc: kInvalidState, while the session is as Session::prefill leaves it.
  Result<Piece> next();

  // next() in parts, for who runs the model otherwise: start() once, then by turns the model reads pending() and
  // accept() is told what came out, until a piece has a finish reason; cancelled() gives the last piece at any time.
  void start() { start_ = Clock::now(); }
  // What the session has not been given yet: the prompt, later the last token.
  std::span<const int32_t> pending() const { return unread_; }
  // The piece that follows from the logits after the last pending id and their maxima (Session::logit_maxima).
  Piece accept(std::span<const float> logits, std::span<const float> maxima);
  Piece cancelled();
  bool is_out_of_time() const { return options_.max_time > 0.0 && seconds_since(start_) > options_.max_time; }
  // How long the option `pace` holds the next token back; whoever runs the model waits for that.
  Clock::duration time_to_wait() const {
    return is_out_of_time() ? Clock::duration::zero() : pacer_.left(Clock::now());
  }
  // The piece of a token that the grammar leaves no choice about, so that it needs no logits; nullopt: logits must come
  // next. Who never asks gets the same tokens from accept().
  std::optional<Piece> forced();
  // What ended the generation before its time: the grammar cannot go on.
  const Status& status() const { return status_; }
  std::optional<FinishReason> finish_reason() const { return finish_reason_; }

  // From any thread, while the generation lives: the running or the next call of next ends it with kCancelled. The
  // session is then as if that call had not been made, but for the whole chunks of a prompt. Does nothing to one that
  // has ended.
  void cancel();

  Statistics statistics() const { return statistics_; }

 private:
  Generation(Session& session, const Tokenizer* tokenizer, std::vector<int32_t> prompt,
             const GenerationOptions& options, StopStrings stop_strings, std::shared_ptr<Speculator> speculator);
  Result<Piece> compute_next();
  void wait();
  Result<std::span<const float>> prefill();
  Result<std::span<const float>> compute();
  void note_prefill();
  Piece accept_id(int32_t id, std::span<const float> logits, std::span<const float> maxima);
  int32_t choose(std::span<const float> logits, std::span<const float> maxima);
  void add_token(int32_t id, Piece& piece);
  Result<std::span<const float>> decode();
  std::optional<FinishReason> reason_to_finish(int32_t id) const;
  void add_logprobs(std::span<const float> logits, std::span<const float> maxima, Piece& piece);
  bool is_hidden(int32_t id, std::optional<FinishReason> reason) const;
  void add_text(int32_t id, Piece& piece);
  void finish(FinishReason reason, Piece& piece);
  void end();

  Session& session_;
  const Tokenizer* tokenizer_;  // nullptr: there is no text
  std::vector<int32_t> unread_;
  GenerationOptions options_;
  Sampler sampler_;
  std::shared_ptr<Speculator> speculator_;
  bool has_decoded_ = false;
  bool is_incomplete_ = false;  // a call of next was left by an exception
  TextStream text_;
  StopStrings stop_strings_;
  Pacer pacer_;
  Statistics statistics_;
  Clock::time_point start_;
  Clock::time_point first_token_;
  std::optional<Constraint> constraint_;
  std::vector<uint32_t> mask_;
  Status status_;
  std::optional<FinishReason> finish_reason_;
  std::mutex cancel_mutex_;
  bool ended_ = false;             // guarded by cancel_mutex_
  bool cancel_requested_ = false;  // likewise
};

}  // namespace mote
