// The parts of a file that XNNPACK runs: a program that the sessions of a model share, and a delegate for each session.
#pragma once

#include <memory>
#include <vector>

#include "backends/xnnpack/subgraph.h"
#include "runner/program/delegate.h"

namespace mote::xnnpack {

struct LoadedPart {
  std::string place;
  Graph graph{};
  std::vector<StaticTensor> tensors{};
};

class Program : public DelegateProgram, public std::enable_shared_from_this<Program> {
 public:
  // Errors: as Backend.load.
  static Result<std::shared_ptr<const Program>> load(const Api& api, const DelegateSource& source);

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override;
  uint64_t private_bytes() const override { return weights_->private_bytes(); }
  uint64_t file_backed_bytes() const override { return weights_->file_backed_bytes(); }

  const Api& api() const { return api_; }
  const LoadedPart& part(size_t index) const { return parts_[index]; }
  size_t num_parts() const { return parts_.size(); }
  Status check_readable() const { return weights_->check_readable(); }
  WeightsCacheProvider* provider() const { return weights_->provider(); }

 private:
  Program(const Api& api, std::unique_ptr<PackedWeights> weights) : api_(api), weights_(std::move(weights)) {}
  // failure: set to what went wrong with the cache of packed weights, if that is why the load failed; else empty
  static Result<std::shared_ptr<const Program>> load_with(const Api& api, const DelegateSource& source,
                                                          std::unique_ptr<PackedWeights> weights, std::string* failure);
  Status load_part(const DelegatePart& part);

  const Api& api_;
  std::unique_ptr<PackedWeights> weights_;  // finished: only looked up
  std::vector<LoadedPart> parts_;
};

}  // namespace mote::xnnpack
