#include <algorithm>
#include <new>
#include <string>

#include "backends/xnnpack/delegate.h"
#include "backends/xnnpack/library.h"
#include "kernels/cpu_features.h"
#include "kernels/formats.h"

namespace mote::xnnpack {
namespace {

// Whether every product is one that was measured to be faster than with the kernels of the CPU: rows have one scale, and 8 bits
// or inputs that stay floats.
bool has_fast_products(const DelegatePart& part) {
  const Result<Graph> graph = verify_graph(part);
  return graph.ok() && std::ranges::all_of(graph->nodes, [&](const GraphNode& node) {
    if (node.op != fb::Op::fully_connected) return true;
    const GraphValue& x = graph->values[node.inputs[0]];
    const GraphValue& weight = graph->values[node.inputs[1]];
    if (weight.form == fb::WeightForm::int4_rows) return x.dtype == fb::DType::float32;
    return weight.form == fb::WeightForm::int8_rows && !products_fit_bytes(part.weights[weight.weight].tensor.bits);
  });
}

class XnnpackBackend : public Backend {
 public:
  std::string_view name() const override { return "xnnpack"; }

  Status check_device() const override {
    const Result<const Api*> api = library();
    return api.ok() ? Status() : api.status();
  }

  // Measured on AMD's Zen 4, and there with the portable kernels (docs/performance.md); nothing else was.
  std::string why_not(const DelegateSource& source) const override try {
    if (!has_vector_kernels()) return {};
    const bool was_measured = cpu_features().ok() && cpu_features()->has_all(CpuFeature::kOneStream);
    if (was_measured && std::ranges::all_of(source.parts, has_fast_products)) return {};
    return "its products with such weights are not known to be faster here, and it keeps a packed copy of them in memory";
  } catch (const std::bad_alloc&) {
    return {};  // which load will say
  }

  Status check(const DelegateSource& source) const override try {
    for (const DelegatePart& part : source.parts) MOTE_RETURN_IF_ERROR(verify_graph(part).status());
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory(source);
  }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override {
    try {
      MOTE_ASSIGN(const Api* api, library());
      MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(*api, source));
      return std::shared_ptr<const DelegateProgram>(std::move(program));
    } catch (const std::bad_alloc&) {
      return no_memory(source);
    }
  }

 private:
  static Status no_memory(const DelegateSource& source) {
    return {Code::kOutOfMemory, source.parts.front().place + ": no memory for the parts that XNNPACK runs"};
  }
};

const XnnpackBackend backend;
const BackendRegistration registration(&backend);

}  // namespace
}  // namespace mote::xnnpack
