// Several sequences of one model that decode together: continuous batching.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "runner/generation/generation.h"
#include "runner/session/engine.h"
#include "runner/session/session.h"

namespace mote {

struct BatchOptions {
  int64_t max_sequences = 16;  // that are computed at the same time, 1..kMaxSequences; more wait for their turn
  SessionOptions session{};  // of sequences without a session of their own; threads, cpus and priority are the batch's
};

constexpr int64_t kMaxSequences = 256;

struct BatchPiece {
  int64_t sequence = -1;                 // as add called it
  Piece piece;                           // as Generation::next gives it
  Status status;                         // not ok: the sequence ended without a further piece
  std::optional<Statistics> statistics;  // with the last piece

  bool is_last() const { return statistics.has_value(); }
};

// How a sequence's pieces are handed out: by the step that computes them, or one after the other by next.
enum class PieceDelivery { kByStep, kByNext };

// Every sequence gets what it would get alone, to the bit. A step reads the weights once for all: it computes a chunk
// of the prompt of the sequence that has waited longest, if there is one, then a token of each whose prompt is read.
// Thread safety: add, cancel and next from any thread, also during a step; step from one thread at a time.
class Batch {
 public:
  // Errors: kInvalidArgument naming the option; kUnsupportedOp naming the instruction of a program whose tokens depend
  // on each other otherwise than through its states; kOutOfMemory.
  static Result<std::unique_ptr<Batch>> open(std::shared_ptr<const Model> model, const BatchOptions& options);
  ~Batch();

  // A new sequence, which the next steps compute. Computes nothing. `session`: what it continues, with its own context
  // length and KV type; it has no other calls until the last piece. nullptr: a new one. Returns: its number; they count
  // up from 0. Errors: those of Session::open and Generation::begin; kInvalidArgument for a session of another model or
  // one that is in the batch.
  Result<int64_t> add(std::vector<int32_t> prompt, const GenerationOptions& options,
                      std::shared_ptr<Session> session = nullptr, PieceDelivery delivery = PieceDelivery::kByStep);
  // The same with a fork of `session`, which computes with the batch's engine: several samples from one prefill.
  Result<int64_t> add_fork(Session& session, std::vector<int32_t> prompt, const GenerationOptions& options);
  // The sequence's next piece is its last, at the end of the step that runs. Nothing happens if it is over.
  void cancel(int64_t sequence);
  // The same for all whose pieces next hands out.
  void cancel_those_of_next();
  // Sequences that are not over.
  size_t num_sequences() const;

  // At most one piece for each sequence; none if there is nothing to compute. Valid until the next call of step. A
  // sequence that the system has no memory for ends with kOutOfMemory. Errors: kInvalidArgument while another thread
  // is in it.
  Result<std::span<const BatchPiece>> step();
  // The next piece of a sequence that is delivered by next, until its last: makes steps, for all sequences, unless
  // another thread is in one, which is then waited for. Thread safety: any threads, for a sequence one at a time.
  BatchPiece next(int64_t sequence);

  int64_t max_sequences() const { return options_.max_sequences; }
  int num_threads() const { return engine_.threads->num_threads(); }
  const Model& model() const { return *model_; }

 private:
  struct Sequence;
  Batch(std::shared_ptr<const Model> model, const BatchOptions& options);
  Status prepare();
  void admit();
  void drop_cancelled(std::deque<std::unique_ptr<Sequence>>& sequences);
  void wait() const;
  void start_without_prompt();
  void read_prompts();
  void decode();
  Result<std::span<const float>> run(std::span<const SequenceStates> rows);
  void take(Sequence& sequence, std::span<const float> logits, std::span<const float> maxima);
  void cancel(Sequence& sequence);
  void give(Sequence& sequence, Piece piece);
  void fail(Sequence& sequence, Status status);
  void end(Sequence& sequence);
  void deliver();
  bool take_unclaimed();
  void compute_step();
  void step_for_next(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<const Model> model_;
  BatchOptions options_;
  AdapterMix adapters_;  // of the options, kept in memory for the sequences to come
  Engine engine_;
  uint32_t decode_ = 0;
  uint32_t verify_ = 0;

  mutable std::mutex mutex_;  // of what follows up to running_
  int64_t num_added_ = 0;
  std::deque<std::unique_ptr<Sequence>> added_;                     // since the last step
  std::unordered_map<int64_t, std::shared_ptr<Session>> sessions_;  // of sequences that are not over
  std::unordered_map<int64_t, std::deque<BatchPiece>> delivered_;   // by next, for those that have no last piece yet
  bool is_in_next_ = false;                                         // a call of next makes a step
  std::condition_variable stepped_;

  std::mutex step_mutex_;                          // of all that follows
  std::deque<std::unique_ptr<Sequence>> waiting_;  // for a place among the running
  std::deque<std::unique_ptr<Sequence>> running_;
  std::vector<BatchPiece> pieces_;      // of the step that is computed
  std::vector<BatchPiece> handed_out_;  // by step; no call of next touches them
  std::deque<BatchPiece> unclaimed_;    // that a call of next computed for step
  std::vector<Sequence*> members_;      // of the decode call
  std::vector<SequenceStates> rows_;    // theirs
  const std::atomic<bool> not_cancelled_{false};
};

}  // namespace mote
