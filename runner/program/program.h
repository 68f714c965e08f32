// Third stage of loading: a verified program whose ops were found and which accepted their operands, in one of its
// targets.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/op.h"
#include "kernels/ops/linear/packed_weights.h"
#include "runner/program/delegate.h"
#include "runner/program/verified.h"

namespace mote {

// A backend that the target uses, with its parts of the file.
struct LoadedBackend {
  const Backend* backend = nullptr;
  std::shared_ptr<const DelegateProgram> program;  // nullptr: bound only to be described
};

enum class Purpose { kRun, kDescribe };

struct BindOptions {
  Purpose purpose = Purpose::kRun;
  std::string cache_dir{};   // where backends may keep what they pack; empty: beside the file, or in MOTE_CACHE_DIR
  bool guards_pages = true;  // of files that backends map, by a handler of SIGBUS
  bool is_choice = false;    // as in DelegateSource
  bool tune = false;         // likewise
  Progress progress{};
};

// The part of a backend that runs an instruction instead of a CPU kernel.
struct DelegateCall {
  size_t backend = 0;  // index into Bound::backends()
  size_t part = 0;     // of its parts
};

// Immutable, shared by all sessions of a model. Thread safety: immutable, but for packed weights, which any thread may
// add.
class Bound {
 public:
  const Mapped& file() const { return verified_->file(); }
  const Verified& verified() const { return *verified_; }
  const std::shared_ptr<const Verified>& shared_verified() const { return verified_; }
  const fb::Program& program() const { return verified_->program(); }

  std::string_view target() const { return target_; }
  // The methods of the target: those of kGenerating and kHeadMethods, kEmbed, or all of them.
  uint32_t num_methods() const { return static_cast<uint32_t>(methods_.size()); }
  const fb::Method& method(uint32_t index) const { return *methods_[index].method; }
  Result<uint32_t> method_index(std::string_view name) const;
  bool has_method(std::string_view name) const { return method_index(name).ok(); }
  // The op of each instruction of a method.
  std::span<const Op* const> ops(uint32_t method) const { return methods_[method].ops; }
  // For each instruction of a method the delegate that runs it, if one does; empty: the CPU runs all of them.
  std::span<const std::optional<DelegateCall>> delegate_calls(uint32_t method) const {
    return methods_[method].delegate_calls;
  }
  std::span<const LoadedBackend> backends() const { return backends_; }
  // Whether delegates keep states of the model.
  bool has_delegate_state() const;
  // Whether the device of a backend is gone: sessions that open from now on need the target bound again.
  bool is_lost() const;
  // Whether the CPU kernels use a state. Delegates keep the other states, which need no memory of the runner.
  bool uses_state(size_t state) const { return uses_state_[state]; }
  // Whether the runner keeps a state itself.
  bool keeps_state(size_t state) const { return !has_delegate_state() || uses_state_[state]; }
  // The depth of the head for multi-token prediction that keeps a state, beside those of the session, if one does.
  std::optional<size_t> head_of(size_t state) const { return head_of_.empty() ? std::nullopt : head_of_[state]; }
  // One entry a state, in the file's order.
  std::span<const StateShape> state_shapes() const { return state_shapes_; }
  // Whether that head attends to states of the session and has none of its own.
  bool head_reads_session() const { return head_reads_session_; }
  // Weights in the layouts of the kernels that were chosen, if any of them cannot read the file's.
  PackedWeights& packed_weights() const { return *packed_weights_; }

 private:
  struct Method {
    const fb::Method* method = nullptr;
    std::vector<const Op*> ops;
    std::vector<std::optional<DelegateCall>> delegate_calls;
  };

  friend Result<std::shared_ptr<const Bound>> bind(std::shared_ptr<const Verified> verified, std::string_view target,
                                                   const BindOptions& options);
  explicit Bound(std::shared_ptr<const Verified> verified) : verified_(std::move(verified)) {}
  // The same methods, with the only backend that runs parts of them.
  Result<std::shared_ptr<const Bound>> with(LoadedBackend backend) const;
  Status make_weights(const BindOptions& options);
  Status load_backends(const BindOptions& options);
  Status find_used_states();

  std::shared_ptr<const Verified> verified_;
  std::string_view target_;
  std::vector<Method> methods_;
  std::vector<LoadedBackend> backends_;
  std::vector<StateShape> state_shapes_;
  std::vector<bool> uses_state_;                // [states]
  std::vector<std::optional<size_t>> head_of_;  // [states], empty before they are looked at
  bool head_reads_session_ = false;
  std::unique_ptr<PackedWeights> packed_weights_ = std::make_unique<PackedWeights>();
};

// Finds every op and has it check its operands for the smallest T, the next and (where at most 4096) the largest, so
// that a file whose instructions do not fit the kernels is refused here; then has the target's backends load their
// parts. Errors: what `progress` gives; kInvalidArgument if the file has no such target; kUnsupportedOp naming op and
// origin; kInvalidProgram naming the instruction and what its op says; kUnsupportedBackend naming a backend that is not
// in this build or does not work on this device; what a backend says of its parts. A target that is only to be
// described is not made ready to run: nothing is packed.
Result<std::shared_ptr<const Bound>> bind(std::shared_ptr<const Verified> verified, std::string_view target,
                                          const BindOptions& options = {});
// Binds the first of the file's targets.
Result<std::shared_ptr<const Bound>> bind(Verified verified);

}  // namespace mote
