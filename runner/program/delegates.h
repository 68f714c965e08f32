// The instructions that delegates run: which part of which backend each of them is, and a session's delegates.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runner/program/program.h"

namespace mote {

inline constexpr std::string_view kDelegateOp = "mote.delegate";

// Gathers the parts of each backend while instructions are looked through.
class DelegateParts {
 public:
  explicit DelegateParts(const Verified& verified) : verified_(verified) {}

  // The call of an instruction that its op has checked; no two may run the same delegate. Errors: kInvalidProgram.
  Result<DelegateCall> add(const fb::Instruction& instruction);
  // Errors: kUnsupportedBackend, what Backend::load says.
  Result<std::vector<LoadedBackend>> load();

 private:
  struct Source {
    std::string_view backend;
    DelegateSource source;
  };

  DelegateSource empty_source() const;
  DelegatePart part(uint32_t index) const;

  const Verified& verified_;
  std::vector<Source> sources_;
  std::vector<bool> is_used_;  // [delegates]
};

// Thread safety: one thread at a time.
class Delegates {
 public:
  // Errors: what DelegateProgram::open says. `threads` outlives it.
  static Result<Delegates> open(std::span<const LoadedBackend> backends, const DelegateOptions& options);

  // Delegate::prepare and execute of the part that `call` names.
  Result<size_t> prepare(const DelegateCall& call, const Call& operands, int64_t tokens);
  Status execute(const DelegateCall& call, const Call& operands, KernelContext& context);

  uint64_t held_bytes() const;

 private:
  std::vector<std::unique_ptr<Delegate>> delegates_;  // [backends]
};

}  // namespace mote
