// Blobs made by hand, and a backend that runs them as a session would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/xnnpack/delegate.h"
#include "runner/program/delegate.h"
#include "tests/kernels/harness.h"
#include "xnnpack_schema_generated.h"

namespace mote::xnnpack::test {

using mote::test::Multipliers;
using mote::test::Owned;
using Bytes = std::vector<std::byte>;

// A size that grows with T: `n * T`, beside plain numbers.
struct SizeOf {
  int64_t tokens = 0;
  int64_t constant = 0;
  SizeOf(int64_t number) : constant(number) {}  // NOLINT(google-explicit-constructor)
  SizeOf(int64_t factor, int64_t added) : tokens(factor), constant(added) {}
};
inline const SizeOf kT{1, 0};
using Sizes = std::vector<SizeOf>;

class GraphBuilder {
 public:
  int32_t input(const Sizes& shape) { return add(fb::ValueKind::input, shape); }
  int32_t output(const Sizes& shape) { return add(fb::ValueKind::output, shape); }
  int32_t activation(const Sizes& shape, fb::DType dtype = fb::DType::float32);
  int32_t weight(const Sizes& shape, int index, fb::WeightForm form = fb::WeightForm::float32, int64_t first_row = 0);
  int32_t constant(const Sizes& shape, const std::vector<float>& numbers);
  fb::NodeT& node(fb::Op op, const std::vector<int32_t>& inputs, int32_t output,
                  fb::Function function = fb::Function::abs);
  fb::GraphT& graph() { return graph_; }
  fb::ValueT& value(int32_t index) { return *graph_.values[static_cast<size_t>(index)]; }
  Bytes build() const;

 private:
  int32_t add(fb::ValueKind kind, const Sizes& shape);
  fb::GraphT graph_;
};

Bytes pack(const fb::GraphT& graph);

// Whether a library is there; if not the test says why it is skipped. Looks for one in the Python environment of the
// checkout.
bool has_library();

// One part, loaded once; the sizes of calls may change.
class Loaded {
 public:
  // path: of a file that the weights could be in; empty: none   api: nullptr: of the library that is there
  Loaded(Bytes blob, const std::vector<const Owned*>& weights, int num_threads = 1, const std::string& path = {},
         uint32_t program_crc32 = 0, const std::string& target = "xnnpack", const Api* api = nullptr);

  const Status& status() const { return status_; }
  // Runs with T = tokens; outputs are made anew, filled with NaN before.
  Status run(const std::vector<const Owned*>& inputs, const std::vector<mote::test::Shape>& outputs, int64_t tokens);
  const Owned& output(size_t index = 0) const { return outputs_[index]; }
  const DelegateProgram& program() const { return *program_; }

 private:
  template <typename Loading>
  Status keep(Loading program) {
    if (program.ok()) program_ = *std::move(program);
    return program.status();
  }

  Bytes blob_;  // aligned by `aligned_`
  std::unique_ptr<std::byte, void (*)(void*)> aligned_;
  std::unique_ptr<ThreadPool> pool_;
  std::shared_ptr<const DelegateProgram> program_;
  std::unique_ptr<Delegate> delegate_;
  std::vector<Owned> outputs_;
  Status status_;
};

// A copy at a multiple of 64 that ends where an overrun is seen by AddressSanitizer.
std::unique_ptr<std::byte, void (*)(void*)> align(const Bytes& bytes);

// The largest |difference| divided by the largest |expected|.
double relative_error(const Owned& actual, const std::vector<double>& expected);

}  // namespace mote::xnnpack::test
