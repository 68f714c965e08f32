// One sequence of tokens on a model: its caches, its threads, its position.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/model/model.h"
#include "runner/program/executor.h"
#include "runner/program/profile.h"
#include "runner/session/draft_head.h"
#include "runner/session/engine.h"
#include "runner/session/method_calls.h"
#include "runner/session/options.h"
#include "runner/session/position.h"
#include "runner/session/state/memory.h"
#include "runner/session/state/prefix_cache.h"
#include "runner/session/state/session_snapshot.h"

namespace mote {

// `options` with its zeros replaced by defaults. Errors: kInvalidArgument naming the option.
Result<SessionOptions> resolve(const Model& model, SessionOptions options);

// What the options say of going back.
RewindLimits rewind_limits(const SessionOptions& options);

// A session keeps its model alive. Thread safety: one thread at a time, but for cancel and position.
class Session {
 public:
  // `engine`: computes for this session and for others of the model, which have no call at the same time; nullptr: the
  // session makes an engine of its own. Errors: kInvalidArgument naming the option; kOutOfMemory.
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<const Model> model, const SessionOptions& options,
                                               const Engine* engine = nullptr);
  // What the session has computed goes to the prefix cache, if it has one.
  ~Session();

  // Appends `ids` (at least one) in chunks. Returns the logits after the last, [vocab_size], valid until the next call.
  // Errors: kInvalidArgument for no ids or an id outside the vocabulary, kContextFull, kCancelled, kFileChanged.
  // A failed call, or one that throws std::bad_alloc, leaves the chunks before the failed one in place.
  Result<std::span<const float>> prefill(std::span<const int32_t> ids);
  Result<std::span<const float>> decode(int32_t id);
  // As decode(id), with the logits after each id of `draft` computed in the same call: decoding these ids next, in
  // their order, then costs nothing. Until they are decoded they are at no position; any other call forgets them.
  // Errors: also kInvalidArgument for more than longest_draft() ids.
  Result<std::span<const float>> decode(int32_t id, std::span<const int32_t> draft);
  // The most ids of a draft: 0 for a session that shares its engine, and where recurrent states have no rows to go back
  // by (SessionOptions::rewind_tokens).
  size_t longest_draft() const;
  // Whether decode(id) costs nothing.
  bool is_drafted(int32_t id) const { return !position_.drafted().empty() && position_.drafted().front() == id; }
  // Whether the target has a head for multi-token prediction, whose guesses this session can verify.
  bool has_draft_head() const { return head_.exists() && longest_draft() > 0; }
  // Tokens that the head will read with the next guess.
  size_t num_unread_by_head() const { return head_.reads_session() ? 1 : static_cast<size_t>(head_.num_rows(0)); }
  // From now on the head reads along what the session computes. It cannot read what was computed before.
  void follow_with_head(bool wanted);
  // Logits, [vocab_size], of the id that the head expects behind `id`, which is to come next; guess_next: behind an id
  // that it expected, as often as wanted. Both change nothing but that logits are computed again if they are asked for.
  // Valid until the next call; empty: the head knows no hidden state here. Errors: those of decode.
  Result<std::span<const float>> guess(int32_t id);
  Result<std::span<const float>> guess_next(int32_t id);
  // As prefill, for callers that do not need the logits yet. Without ids it does nothing.
  Status append(std::span<const int32_t> ids);
  // The ids of a text that goes on where the session is: BOS and such, as the tokenizer asks, only at its start.
  // parse_special: special tokens spelled in it become their ids. Errors: those of Model::require_tokenizer.
  Result<std::vector<int32_t>> encode(std::string_view text, bool parse_special) const;
  // As append, but the ids are computed only when a later call needs that. Errors: those of rewind.
  Status defer(std::span<const int32_t> ids);
  bool has_deferred() const { return !position_.deferred().empty(); }
  // Makes `ids` (at least one) the tokens of the session. The longest beginning of them that the session holds or the
  // prefix cache has is kept, and only the rest is computed. Returns how many ids were kept. Errors: those of rewind
  // and prefill.
  Result<int64_t> set_tokens(std::span<const int32_t> ids);
  // As set_tokens, but computes nothing: afterwards the session has the longest beginning of `ids`, without the last
  // id, whose states it held or the prefix cache has. Returns its length; the caller goes on with the ids behind it.
  Result<int64_t> rewind_to_prefix(std::span<const int32_t> ids);
  // Takes the longest beginning of `ids`, without the last id, from the prefix cache, if the session is empty. Returns
  // its length. prefill does that itself; this is for callers that give a text in parts.
  size_t reuse(std::span<const int32_t> ids);
  // The logits after the last token, valid until the next call. They are computed again where the session no longer has
  // them. Errors: kInvalidArgument at position 0, those of prefill.
  Result<std::span<const float>> logits();
  // From now on prefill and decode need find only the `count` largest logits, at most kMostLargest; 0: all. Where the
  // target does, what they return is empty, largest() has these, and logits() still gives all.
  void want_largest(size_t count) { wanted_largest_ = count; }
  // The largest logits after the last id, the largest first, of equal ones the lowest id; a logit that is not a number
  // counts as -infinity. Valid until the next call; empty where the last call did not look for
  // them.
  std::span<const LargestElement> largest() const;
  // The largest logit of every kMaximaBlock ids among the logits that the last prefill, decode or logits() returned,
  // valid as long as these. The output head finds them as it writes the logits. Empty for a model that changes its
  // logits after the head, and where the logits came from a fork or a file.
  std::span<const float> logit_maxima() const;
  // The hidden state that the output head computed the same logits from, [hidden_size], valid as long as these. If the
  // last norm is part of the head, it is the state before that norm. Empty where logit_maxima is.
  std::span<const float> hidden_state() const;
  // As prefill, with the logits after each id written to `logits`, [ids, vocab_size].
  Status verify(std::span<const int32_t> ids, float* logits);

  // As prefill, with ln P(ids[i + 1] | everything before) written to logprobs[i], [ids - 1], by the model's own
  // distribution.
  Status score(std::span<const int32_t> ids, float* logprobs);

  const Model& model() const { return *model_; }
  // The target that it runs on, and that target's name: "cpu", "vulkan", ...
  const Bound& bound() const { return *bound_; }
  std::string_view backend() const { return bound_->target(); }
  // Why it left another target by itself, in one sentence: what that one failed with; empty: it did not.
  const std::string& moved_because() const { return moved_because_; }
  // From now on another target of the file computes. Keys, values and the logits after the last token go along where
  // both targets can read them; else the next call computes the tokens again. Errors: kInvalidArgument naming the
  // targets that there are, and for a session of a batch; kUnsupportedBackend; those of opening a session there; none
  // changes the session. Cost: that of opening a session and of reading and writing its caches; the first move of a
  // model to a target loads that.
  Status move_to(std::string_view backend);
  // The options of the session, with every default filled in.
  const SessionOptions& options() const { return options_; }
  // Forgets all tokens, and holds those that come in elements of this type.
  Status set_kv_dtype(KvType type);
  int64_t context_length() const { return options_.context_length; }
  // How many tokens the session has. Any thread, also while a call runs.
  int64_t position() const { return position_.count(); }
  int num_threads() const { return engine_.threads->num_threads(); }
  int64_t prefill_chunk() const { return options_.prefill_chunk; }
  // First tokens that kShift never forgets: those of the options, or of the last chat with kKeepSystem.
  int64_t num_keep() const { return num_keep_; }
  bool keeps_system() const { return options_.num_keep == kKeepSystem; }
  void set_num_keep(int64_t count) { num_keep_ = count; }
  // Tokens that kShift has forgotten since the session was opened.
  int64_t forgotten_tokens() const { return position_.num_forgotten(); }
  // The ids at all positions so far.
  std::span<const int32_t> tokens() const { return position_.ids(); }
  // Bytes that the caches take when the context is full, and bytes that they hold now, shared ones included.
  uint64_t state_bytes() const { return states_.bytes(); }
  uint64_t held_state_bytes() const { return states_.held_bytes(); }
  uint64_t arena_bytes() const {
    return executor().arena_bytes() + executor().scratch_bytes() + executor().delegate_bytes();
  }

  // For callers that compute a call of this session together with those of others: begin_call checks the ids and
  // returns the states that the call reads and writes; end_call tells the session how the call ended. Errors: those of
  // prefill; where the session was cancelled, kCancelled.
  Result<SequenceStates> begin_call(std::span<const int32_t> ids);
  void end_call(std::span<const int32_t> ids, const Status& status);

  // The most ids that a call can take: the positions that are free, and with kShift also those that can be freed.
  size_t room() const;
  // kContextFull unless `count` more ids fit.
  Status require_room(size_t count) const;
  // Errors: kInvalidArgument naming the id that is not in the vocabulary.
  Status check_ids(std::span<const int32_t> ids) const;

  // The adapters that its text is computed with.
  const AdapterMix& adapters() const { return adapters_; }
  // From now on the session computes with these. Where they differ from those before, its tokens stay, and a later call
  // computes them again. Errors: kInvalidArgument for an adapter of another model or a weight that is no finite number;
  // kUnsupportedOp where the model has a state that one of its backends keeps.
  Status set_adapters(AdapterMix adapters);

  // Forgets every position.
  void reset();

  // Goes back to the first `position` ids. Cost: little; but if a sliding window has moved on too far, the ids that
  // stay are computed again, and if a recurrent state has, those behind the nearest checkpoint. Errors:
  // kInvalidArgument beyond the present position; those of prefill, after which the session is at a position before it.
  Status rewind(int64_t position);

  // Another session with the same options and tokens. From then on the two are independent. Their caches share memory
  // until one of them writes to it. Cost: that of opening a session; with an `engine`, as for open, little. Errors:
  // those of open; kInvalidArgument after an interrupted call.
  Result<std::unique_ptr<Session>> fork(const Engine* engine = nullptr);
  // The tokens and states of the session as they are now, for adopt.
  Result<std::shared_ptr<const SessionSnapshot>> snapshot();
  // Goes on from the first `position` tokens of a snapshot of the same model, with its adapters. Cost: little if the
  // options are the same; else the tokens are computed again. Errors: kInvalidArgument for another model, other
  // adapters or a position that it has not, those of prefill.
  Status adopt(const SessionSnapshot& snapshot, int64_t position);

  // Writes tokens and caches to a file, whole or not at all. Errors: kFileUnwritable; kInvalidArgument after an
  // interrupted call.
  Status save(const std::string& path);
  // Goes on from a saved session. A file of another kv_dtype, or of another prefill_chunk where the model has sliding
  // windows, gives its tokens, which are computed again. Errors: kFileNotFound, kFileUnreadable, kInvalidSession naming
  // the field, the other model or the other adapters, kContextFull; none changes the session but those of prefill.
  Status restore(const std::string& path);

  // From now on every instruction is measured; what was measured before is forgotten. Cost: allocates 7 MB.
  void start_profile() {
    profile_ = std::make_unique<Profile>();
    watch_.profile = profile_.get();
  }
  // Ends the measuring and returns its results; nullptr if it was not started.
  std::unique_ptr<Profile> stop_profile() {
    watch_.profile = nullptr;
    return std::move(profile_);
  }

  // From now on `sink` gets what each instruction computes; nullptr: nobody does. Not what a batch computes for the
  // session.
  void set_value_sink(ValueSink sink) { watch_.sink = std::move(sink); }

  // From any thread: the running or the next call returns kCancelled.
  void cancel() { cancelled_->store(true); }
  // Takes back a cancel that no call has seen yet.
  void forget_cancel() { cancelled_->store(false); }
  bool is_cancelled() const { return cancelled_->load(); }
  // Whether there was a cancel that no call has reported, which this call takes back.
  bool take_cancel() { return cancelled_->exchange(false); }
  bool shares_engine() const { return shares_engine_; }
  // From now on a cancel of either session ends the running or the next call of whichever comes to see it.
  void share_cancel(const Session& other) { cancelled_ = other.cancelled_; }

 private:
  Session(std::shared_ptr<const Model> model, std::shared_ptr<const Bound> bound, const SessionOptions& options,
          StateMemory states)
      : model_(std::move(model)),
        bound_(std::move(bound)),
        options_(options),
        num_keep_(std::max<int64_t>(options.num_keep, 0)),
        states_(std::move(states)) {}
  // What the ids of a call are for: `draft` makes all but the first drafted ones.
  enum class Wanted { decode, prefill, verify, draft };
  struct Computed {
    MethodCall call;
    std::span<const float> rows;
  };

  static Result<std::unique_ptr<Session>> open_on(std::shared_ptr<const Bound> bound,
                                                  std::shared_ptr<const Model> model, const SessionOptions& options,
                                                  const Engine* engine);
  Status prepare_methods(const Engine* engine);
  Status open_head();
  Status go_on_in(std::shared_ptr<const Bound> bound);
  Status leave_backend(const Status& failed);
  void note_failure(std::string_view left, const Status& failed);
  Result<std::shared_ptr<const SessionSnapshot>> take_snapshot();
  Status check_call(std::span<const int32_t> ids);
  // Where the states are to be after a call, and where what it is part of ends.
  struct Extent {
    int64_t num_kept = 0;
    int64_t end = 0;
    bool is_prompt = false;
  };
  Result<SequenceStates> begin_chunk(int64_t tokens, const Extent& extent);
  void end_states(int64_t reached, bool has_succeeded);
  Status keep_recurrent();
  Status settle_states();
  int64_t go_back_near(int64_t to);
  Status require_whole() const;
  Status make_room(size_t count);
  Result<std::span<const float>> compute_deferred(std::span<const int32_t> ids);
  Status require_computed();
  Result<std::span<const float>> compute(std::span<const int32_t> ids);
  Result<std::span<const float>> compute_if_possible(std::span<const int32_t> ids);
  Result<int64_t> keep_prefix(std::span<const int32_t> ids);
  bool adopt_longest_prefix(std::span<const int32_t> ids, int64_t least);
  void remember();
  MethodCall next_call(Wanted wanted, size_t count) const;
  // Computes the first of `ids`, as many as one call takes; where a backend fails, on the CPU.
  Result<Computed> run(Wanted wanted, std::span<const int32_t> ids);
  Result<std::span<const float>> run_call(const MethodCall& call, std::span<const int32_t> ids, size_t num_drafted,
                                          const Extent& extent);
  Executor& executor() const { return *engine_.executor; }
  // The part of `rows`, which the last call wrote for each of its rows of logits, that belongs to the logits returned
  // last.
  std::span<const float> row_of(std::span<const float> rows) const;
  Result<std::span<const float>> returned_logits();
  // What a call returns: these, or nothing where largest() has what is wanted.
  Result<std::span<const float>> wanted_logits();
  void forget_draft();
  bool has_delegate_state() const { return bound_->has_delegate_state(); }
  void note_hidden_states(const MethodCall& call, int64_t before);
  Status run_head(size_t depth, int64_t from, std::span<const int32_t> ids, std::span<const float> hidden_states);
  std::vector<int32_t> ids_for_head(size_t depth, int64_t count) const;
  Status catch_up_head(size_t depth, int64_t count);
  Status make_rows_fit(size_t depth, int64_t count);
  Result<std::span<const float>> guess_behind(int32_t id);
  Result<std::span<const float>> guess_by_layer(size_t depth);
  Result<std::span<const float>> guess_again(size_t depth);
  Status make_head_room(int64_t count, int32_t next);
  // Takes the states from `from` positions back to the first `to`. False: they cannot go back, and must be computed
  // again.
  bool go_back(int64_t from, int64_t to);
  bool adopt_delegates(const SessionSnapshot& snapshot, int64_t to);
  // Appends ids in chunks and calls body(index, logits) with those after each.
  template <typename Body> Status for_each_row(std::span<const int32_t> ids, const Body& body);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Bound> bound_;  // the target of it that runs
  std::string moved_because_;
  size_t wanted_largest_ = 0;
  SessionOptions options_;
  int64_t num_keep_;
  StateMemory states_;
  DraftHead head_;
  std::vector<int32_t> guesses_;  // behind the text, since it guesses: the id that came next, then its own
  Engine engine_;
  bool shares_engine_ = false;  // others may make calls with it between two calls of this session
  std::unique_ptr<Profile> profile_;
  Watch watch_;
  MethodCalls calls_;
  Position position_;
  AdapterMix adapters_;
  std::vector<AdapterUse> adapter_uses_;  // of them
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace mote
