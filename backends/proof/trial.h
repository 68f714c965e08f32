// A backend that works or does not, as a whole, tried once with a file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/proof/verdict.h"
#include "runner/program/delegate.h"

namespace mote::proof {

// What a verdict is true for, and where it is kept.
struct Tried {
  std::string device;
  KeptFile file;
  std::string backend;

  Verdict read() const;
  void keep(const Verdict& verdict) const;
  // Errors: kUnsupportedBackend where it failed.
  Status check(const Verdict& verdict) const;
  // Why a file that can run on the CPU should; empty: it was not tried, or the CPU is not known to be faster.
  std::string why_the_cpu(const Verdict& verdict) const;
};

// What replayed a sample.
struct Attempt {
  std::shared_ptr<const DelegateProgram> program;
  uint64_t own_ns = 0;  // a token; 0: not measured
  std::string note{};   // for people
};

// Makes an attempt and keeps what came of it; meanwhile, that one was begun. Errors: kUnsupportedBackend, or the
// attempt's where that says nothing of the device.
Result<std::shared_ptr<const DelegateProgram>> try_out(const Tried& tried, const DelegateSource& source,
                                                       const std::function<Result<Attempt>()>& attempt);

}  // namespace mote::proof
