// The parts of a file that QNN runs: a program that the sessions of a model share, and a delegate for each session.
#pragma once

#include <memory>
#include <vector>

#include "backends/qnn/caches.h"
#include "backends/qnn/contexts.h"
#include "runner/program/delegate.h"

namespace mote::qnn {

// The graphs of all parts, and the states that they share. Errors: kInvalidProgram.
struct Parts {
  std::vector<Graph> graphs;
  States states;

  static Result<Parts> verify(const DelegateSource& source);
};

class Program : public DelegateProgram, public std::enable_shared_from_this<Program> {
 public:
  // Errors: as Backend.load.
  static Result<std::shared_ptr<const Program>> load(const Library& library, const DelegateSource& source, Parts parts,
                                                     const Lost& lost);

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override;
  bool has_state() const override { return !parts_.states.empty(); }
  bool is_lost() const override { return contexts_->hangs(); }
  uint64_t private_bytes() const override { return contexts_->bytes(); }

  const Parts& parts() const { return parts_; }
  const std::string& place(size_t part) const { return places_[part]; }
  Contexts& contexts() const { return *contexts_; }

 private:
  Program() = default;

  Parts parts_;
  std::vector<std::string> places_;
  std::shared_ptr<Contexts> contexts_;
};

}  // namespace mote::qnn
