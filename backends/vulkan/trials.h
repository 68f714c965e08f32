// The heaviest products of a file, each alone with inputs that are made up: forms of products are compared and timed by
// them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "backends/vulkan/delegate.h"

namespace mote::vulkan {

// Thread safety: one thread at a time.
class ProductTrials {
 public:
  // Of those that the program's parts hold. Errors: kOutOfMemory.
  static Result<std::shared_ptr<ProductTrials>> make(const std::shared_ptr<Program>& program);

  // Whether shaders that use these features give the bits that those give which use none. Errors: kUnsupportedBackend
  // naming what differs, or as the driver says.
  Status compare(gpu::GpuFeatures features);
  // The fastest forms that use no other features, as far as they are found within the time, which is looked at between
  // measurements: what is not measured, or fails, is not chosen.
  Result<ProductForms> tune(gpu::GpuFeatures features, std::chrono::nanoseconds time);

 private:
  struct Trial {
    size_t part = 0;
    bool is_exact = true;  // inputs are not rounded in groups
    int64_t columns = 0, rows = 0, times = 0;
    int64_t tokens = 0;                            // of calls with several
    std::array<std::vector<float>, 2> expected{};  // of calls with one token, and with several
  };
  struct Measured {
    ProductForm form;
    double ns = 0;
  };

  Status add(const LoadedPart& part, const GraphNode& node);
  Status run(Trial& trial, const ProductForms& forms, bool is_of_many, std::vector<float>* y, double* ns);
  // Of all trials, weighted by how often the file has them. Errors: where the bits differ.
  Result<double> time(const ProductForm& form, bool is_of_many);
  ProductForm fastest(gpu::GpuFeatures features, bool is_of_many, std::chrono::nanoseconds time);

  std::shared_ptr<Program> program_;  // whose parts are these products
  std::vector<Trial> trials_;
  std::vector<float> input_;
};

}  // namespace mote::vulkan
