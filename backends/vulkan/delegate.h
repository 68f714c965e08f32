// The parts of a file that a GPU runs: a program that the sessions of a model share, and a delegate for each session.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/gpu/context.h"
#include "backends/vulkan/graph.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/plan.h"
#include "backends/vulkan/submissions.h"
#include "backends/vulkan/weights.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

struct LoadedPart {
  Graph graph;
  std::vector<const DeviceWeight*> weights;  // of the part, in its order
  std::vector<size_t> caches;                // of the program, for each of graph.caches
  std::vector<size_t> histories;             // likewise
  std::vector<size_t> recurrences;
};

class Program : public DelegateProgram, public std::enable_shared_from_this<Program> {
 public:
  // kept: see Pipelines. Errors: as Backend.load.
  static Result<std::shared_ptr<Program>> load(std::shared_ptr<const gpu::GpuContext> context, KeptFile kept,
                                               const DelegateSource& source);
  // Makes the pipelines that calls will need, so that none of them has to wait for one. Errors: as the driver says.
  Status make_pipelines() const;
  // What its shaders may use; all that the device has until it is set, which is before calls begin. Products get their
  // usual forms, or those that are forced.
  void set_features(gpu::GpuFeatures features);
  // Before calls begin, and after set_features.
  void set_products(const ProductForms& forms) { products_ = forms; }
  // What set_features gives products from here on, as far as features allow and none are forced.
  void set_tuned(const std::optional<ProductForms>& forms) { tuned_ = forms; }
  bool forces_products() const { return forced_.has_value(); }
  const ProductForms& products() const { return products_; }

  // Another one, over the same weights, for parts that are added to it.
  std::shared_ptr<Program> without_parts();
  void add_part(LoadedPart part) { parts_.push_back(std::move(part)); }

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override;
  bool has_state() const override { return !caches_.empty() || !histories_.empty() || !recurrences_.empty(); }
  bool is_lost() const override { return context_->is_lost(); }
  uint64_t private_bytes() const override { return weights_ ? weights_->bytes() : 0; }
  uint64_t file_backed_bytes() const override { return weights_ ? weights_->imported_bytes() : 0; }

  const std::shared_ptr<const gpu::GpuContext>& context() const { return context_; }
  Pipelines& pipelines() const { return *pipelines_; }
  DeviceWeights& weights() const { return *weights_; }
  // What a session has room for, of which plans depend.
  struct Room {
    int64_t splits = 1;                              // see make_plan
    int64_t history_rows = 4096, recorded_rows = 0;  // see DeviceTraits
  };
  // As make_plan, for a part on this device.
  Result<Plan> plan(size_t index, int64_t tokens, const Room& room) const;
  const LoadedPart& part(size_t index) const { return parts_[index]; }
  size_t num_parts() const { return parts_.size(); }
  // Of calls of so many tokens: few read weights, many multiply.
  Pace& pace(int64_t tokens) const { return tokens > 8 ? pace_of_many_ : pace_of_few_; }
  const std::vector<GraphCache>& caches() const { return caches_; }
  const std::vector<GraphHistory>& histories() const { return histories_; }
  const std::vector<GraphRecurrence>& recurrences() const { return recurrences_; }

 private:
  explicit Program(std::shared_ptr<const gpu::GpuContext> context)
      : context_(std::move(context)),
        pace_of_few_(context_->is_cpu() ? kPaceOfCpu : 1),
        pace_of_many_(context_->is_cpu() ? kPaceOfCpu : 1) {}
  Status require_memory(const DelegateSource& source, const std::vector<Graph>& graphs) const;
  Status load_part(const DelegatePart& part, Graph graph);

  std::shared_ptr<const gpu::GpuContext> context_;
  gpu::GpuFeatures features_;
  static constexpr double kPaceOfCpu = 10;
  mutable Pace pace_of_few_, pace_of_many_;
  std::optional<gpu::GpuFeatures> forced_;  // of products
  ProductForms products_;
  std::optional<ProductForms> tuned_;
  std::shared_ptr<const Program> weights_owner_;  // of a program that is made of another
  std::shared_ptr<Pipelines> pipelines_;
  std::unique_ptr<DeviceWeights> weights_;
  std::vector<LoadedPart> parts_;
  std::vector<GraphCache> caches_;
  std::vector<GraphHistory> histories_;
  std::vector<GraphRecurrence> recurrences_;
};

}  // namespace mote::vulkan
