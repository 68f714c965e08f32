// What XNNPACK made of the parts of a file, and a session's share of it.
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
  uint64_t private_bytes() const override { return weights_.private_bytes(); }

  const Api& api() const { return api_; }
  const LoadedPart& part(size_t index) const { return parts_[index]; }
  size_t num_parts() const { return parts_.size(); }
  WeightsCacheProvider* provider() const { return weights_.provider(); }

 private:
  explicit Program(const Api& api) : api_(api) {}
  Status load_part(const DelegatePart& part);

  const Api& api_;
  mutable PackedWeights weights_;  // finished: only looked up
  std::vector<LoadedPart> parts_;
};

}  // namespace mote::xnnpack
