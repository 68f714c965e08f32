// The parts of a file that a GPU runs: a program that the sessions of a model share, and a delegate for each session.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/weights.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

struct LoadedPart {
  Graph graph;
  std::vector<const DeviceWeight*> weights;  // of the part, in its order
  std::vector<size_t> caches;                // of the program, for each of graph.caches
  std::vector<size_t> histories;             // likewise
};

class Program : public DelegateProgram, public std::enable_shared_from_this<Program> {
 public:
  // Errors: as Backend.load.
  static Result<std::shared_ptr<const Program>> load(std::shared_ptr<const gpu::GpuContext> context,
                                                     const DelegateSource& source);

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override;
  bool has_state() const override { return !caches_.empty() || !histories_.empty(); }
  uint64_t private_bytes() const override { return weights_->bytes(); }

  const std::shared_ptr<const gpu::GpuContext>& context() const { return context_; }
  Pipelines& pipelines() const { return *pipelines_; }
  const LoadedPart& part(size_t index) const { return parts_[index]; }
  size_t num_parts() const { return parts_.size(); }
  const std::vector<GraphCache>& caches() const { return caches_; }
  const std::vector<GraphHistory>& histories() const { return histories_; }

 private:
  explicit Program(std::shared_ptr<const gpu::GpuContext> context) : context_(std::move(context)) {}
  Status load_part(const DelegatePart& part);

  std::shared_ptr<const gpu::GpuContext> context_;
  std::unique_ptr<Pipelines> pipelines_;
  std::unique_ptr<DeviceWeights> weights_;
  std::vector<LoadedPart> parts_;
  std::vector<GraphCache> caches_;
  std::vector<GraphHistory> histories_;
};

}  // namespace mote::vulkan
