// The instructions that delegates run: which part of which backend each of them is, and a session's delegates.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/program/program.h"

namespace mote {

inline constexpr std::string_view kDelegateOp = "mote.delegate";

// How the paths of files begin that are kept of a model: beside it, or in `cache_dir`, where models of one name share
// the folder. Empty: nowhere, because it has no path and there is no folder.
std::string cache_prefix(const std::string& name, bool has_path, const std::string& cache_dir, uint32_t program_crc32);

// Collects the parts of each backend from the instructions of a lowering, one by one.
class DelegateParts {
 public:
  // options: cache_dir, where backends may keep what they pack, may be empty: that of MOTE_CACHE_DIR is taken then, if
  // it is set, or the file's.
  DelegateParts(std::shared_ptr<const Verified> verified, std::string_view target, BindOptions options = {})
      : owner_(std::move(verified)), verified_(*owner_), target_(target), options_(std::move(options)) {}

  // Adds a verified instruction and returns the call that runs it. No two instructions may run the same delegate.
  // Errors: kInvalidProgram.
  Result<DelegateCall> add(const fb::Instruction& instruction);
  // Has each backend load its parts, or only check them where nothing is to run. whole_methods: of a target's only
  // backend. Errors: kUnsupportedBackend, and what Backend::load or Backend::check says.
  Result<std::vector<LoadedBackend>> load(Purpose purpose,
                                          const std::function<Result<WholeMethods>(LoadedBackend)>& whole_methods,
                                          const Progress& progress = {});
  // What Backend::why_not says of the first backend that has a reason; empty: none has.
  std::string why_not() const;
  // What Backend::findings says; empty: nothing.
  std::string findings() const;

 private:
  struct Source {
    std::string_view backend;
    DelegateSource source;
  };

  DelegateSource empty_source() const;
  DelegatePart part(uint32_t index) const;

  const std::shared_ptr<const Verified> owner_;
  const Verified& verified_;
  const std::string target_;
  const BindOptions options_;
  std::vector<Source> sources_;
  std::vector<bool> is_used_;  // [delegates]
};

// The state of one backend's delegate.
struct NamedSnapshot {
  std::string backend;
  std::shared_ptr<const DelegateSnapshot> snapshot;
};

// The delegates of one session, one for each backend. Thread safety: one thread at a time.
class Delegates {
 public:
  // Opens them. The options' `threads` outlive the delegates. Errors: what DelegateProgram::open says.
  static Result<Delegates> open(std::span<const LoadedBackend> backends, const DelegateOptions& options);

  // Delegate::prepare and execute of the part that `call` names; execute_measured where there are `steps`.
  Result<size_t> prepare(const DelegateCall& call, const Call& operands, int64_t tokens);
  Status execute(const DelegateCall& call, const Call& operands, KernelContext& context,
                 std::vector<DelegateStep>* steps = nullptr);

  // Delegate::want_largest of the part's delegate for this call alone; largest and read_output of its latest call.
  Status execute_largest(const DelegateCall& call, const Call& operands, KernelContext& context, size_t count,
                         std::vector<DelegateStep>* steps = nullptr);
  std::span<const LargestElement> largest(const DelegateCall& call) const {
    return delegates_[call.backend].delegate->largest();
  }
  Status read_output(const DelegateCall& call, Tensor* output) {
    return noted(delegates_[call.backend].delegate->read_output(output));
  }

  uint64_t held_bytes() const;
  // What the latest call of prepare, execute or snapshot failed with, where that is not the caller's fault but the
  // delegate's or its device's, so that another target may go on; else no error.
  const Status& failure() const { return failure_; }

  // The calls below go to all delegates that have a state.
  bool seek(int64_t position);
  int64_t nearest(int64_t to) const;
  int64_t most_taken_back() const;
  // A snapshot of each, in the order of the backends; empty: one of them cannot make one.
  Result<std::vector<NamedSnapshot>> snapshot();
  // False: the snapshots are not those of delegates like these. After that, or an error, all are at position 0.
  Result<bool> restore(std::span<const NamedSnapshot> snapshots);
  // As Delegate::import. Errors: those of Delegate::import; kInvalidSession if that backend has no delegate with a
  // state.
  Result<NamedSnapshot> import(std::string_view backend, std::span<const std::byte> bytes) const;
  // The delegate that gives keys and values of a state as rows; nullptr: none does.
  Delegate* cache_holder(int32_t state) const;
  // The same of a recurrent state.
  Delegate* recurrent_holder(int32_t state) const;

 private:
  struct Opened {
    std::string_view backend;
    bool has_state = false;
    std::unique_ptr<Delegate> delegate;
  };
  template <typename Outcome> Outcome noted(Outcome outcome);

  std::vector<Opened> delegates_;  // [backends]
  Status failure_;
};

// Whether an error of a delegate says that it or its device cannot, rather than what is wrong with the call or the
// file.
bool is_of_device(Code code);

}  // namespace mote
