#include <new>
#include <string>

#include "backends/xnnpack/delegate.h"
#include "backends/xnnpack/library.h"
#include "kernels/formats.h"
#include "kernels/machine/cpu_features.h"

namespace mote::xnnpack {
namespace {

// Whether a product was measured to be faster than with the kernels of the CPU: rows have one scale, and 8 bits or
// inputs that stay floats.
bool is_fast(const DelegatePart& part, const Graph& graph, const GraphNode& product) {
  const GraphValue& x = graph.values[product.inputs[0]];
  const GraphValue& weight = graph.values[product.inputs[1]];
  if (weight.form == fb::WeightForm::int4_rows) return x.dtype == fb::DType::float32;
  return weight.form == fb::WeightForm::int8_rows && !products_fit_bytes(part.weights[weight.weight].tensor.bits);
}

// Whether there are products, and all of them are.
bool has_fast_products(const DelegateSource& source) {
  size_t num_products = 0, num_fast = 0;
  for (const DelegatePart& part : source.parts) {
    const Result<Graph> graph = verify_graph(part);
    if (!graph.ok()) return false;
    for (const GraphNode& node : graph->nodes) {
      if (node.op != fb::Op::fully_connected) continue;
      ++num_products;
      num_fast += is_fast(part, *graph, node);
    }
  }
  return num_products > 0 && num_fast == num_products;
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
    if (was_measured && has_fast_products(source)) return {};
    return "it is not known to multiply such weights faster here, and keeps a packed copy of them in memory";
  } catch (const std::bad_alloc&) {
    return {};  // which load will say
  }

  Status check(const DelegateSource& source) const override try {
    for (const DelegatePart& part : source.parts) MOTE_RETURN_IF_ERROR(verify_graph(part).status());
    return {};
  } catch (const std::bad_alloc&) { return no_memory(source); }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override {
    try {
      MOTE_ASSIGN(const Api* api, library());
      MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(*api, source));
      return std::shared_ptr<const DelegateProgram>(std::move(program));
    } catch (const std::bad_alloc&) { return no_memory(source); }
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
