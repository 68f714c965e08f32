// Runs the methods of a bound program. One executor a session.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "runner/program/delegates.h"
#include "runner/program/profile.h"
#include "runner/program/program.h"
#include "runner/program/value_sink.h"

namespace mote {

struct ExecutorOptions {
  int64_t max_tokens = 256;    // largest T of a call, 1..kMaxTokens; a method's own max_tokens also holds
  int64_t context_length = 0;  // for delegates that keep states; 0: not known
  int64_t rewind_tokens = 0;   // likewise, as DelegateOptions has it
  uint64_t rewind_bytes = 0;
  uint64_t max_arena_bytes = uint64_t{64}
                             << 30;  // more than this for activations and scratch is kOutOfMemory, unallocated
};

// The states that instructions read and write from call to call. Both lists are indexed by state; a state has an entry
// in each and uses the one of its kind.
struct States {
  std::span<KvCache> kv_caches;
  std::span<RecurrentState> recurrent_states;
};

// What a run tells, both off by default and then at no cost.
struct Watch {
  Profile* profile = nullptr;  // what each instruction takes is added to it
  ValueSink sink = nullptr;    // gets what each instruction computes
};

class Invocation;

// Owns the arena that all methods share, and for each method the operands prepared for one T: a decode step keeps its
// own while prefill runs with other T. Thread safety: one thread at a time. `threads` outlives the executor.
class Executor {
 public:
  // Allocates the arena for `max_tokens` and prepares every method for its largest T, so that later calls rarely
  // allocate. Errors: kInvalidArgument, kOutOfMemory, kInvalidProgram.
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const Bound> bound, const ExecutorOptions& options,
                                                  ThreadPool* threads);
  ~Executor();

  // Makes `method` ready for T = tokens; nothing is done if it is. Errors: kInvalidArgument, kOutOfMemory,
  // kInvalidProgram.
  Status prepare(uint32_t method, int64_t tokens);

  // Valid after prepare(method). Inputs are contiguous int64, written by the caller before each run: methods share the
  // arena, so another method's run overwrites them.
  std::span<int64_t> input(uint32_t method, size_t index);
  // The same of an input of float32.
  std::span<float> float_input(uint32_t method, size_t index);
  // Contiguous float32, valid until the next run of any method.
  std::span<const float> output(uint32_t method, size_t index) const;
  // The largest of every kMaximaBlock elements of each row of output 0, [rows, num_maxima(width)], valid as long as the
  // output. Empty if the op that makes the output does not find them.
  std::span<const float> maxima(uint32_t method) const;
  // The calls that follow are asked for the `count` largest elements of each row of output 0 alone, at most
  // kMostLargest; 0: for the output.
  void want_largest(size_t count);
  // What the latest run found of that if it was one of `method`, [rows, count], as Delegate::largest has it. Empty:
  // nobody asked, or a backend that makes the output does not find them.
  std::span<const LargestElement> largest(uint32_t method) const;
  // Where largest(method) is not empty, output 0 is valid only after this. Errors: what the device reports.
  Status read_output(uint32_t method);
  // The input of the op that makes output 0, [rows, width], valid as long as the output. Empty where maxima is.
  std::span<const float> source(uint32_t method) const;

  // Runs the prepared method for one sequence. `cancelled` is looked at before every instruction. No allocation of its
  // own. Errors: kCancelled, or what a kernel reports (ids out of range), with the instruction's origin.
  Status run(uint32_t method, States states, const std::atomic<bool>& cancelled, const Watch& watch = {});
  // The same for several sequences whose tokens, in this order, are the method's T; no two share a state. The method
  // must compute each token's row on its own (runner/program/token_rows.h).
  Status run_together(uint32_t method, std::span<const SequenceStates> sequences, const std::atomic<bool>& cancelled,
                      const Watch& watch = {});

  // For each state how many floats its op records of a token (RecurrentState::rows) in a prepared method; 0: it records
  // none, as the state is no recurrent one, a delegate keeps it or its op cannot.
  std::vector<int64_t> recurrent_rows(uint32_t method) const;
  // Brings recurrent states to where a call of the prepared method would begin (SequenceStates::recurrent), and
  // computes nothing else. Cost: reads and writes each state once, and the rows.
  Status replay(uint32_t method, const SequenceStates& states);

  const std::shared_ptr<const Bound>& bound() const;
  // The session's delegates, whose states the session moves along with its own.
  Delegates& delegates();
  const Delegates& delegates() const;

  uint64_t arena_bytes() const;
  uint64_t scratch_bytes() const;
  uint64_t delegate_bytes() const;  // that the session's delegates hold themselves

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mote
