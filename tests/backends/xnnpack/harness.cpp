#include "tests/backends/xnnpack/harness.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "runner/program/delegates.h"
#include "runner/program/thread_pool.h"

namespace mote::xnnpack::test {

int32_t GraphBuilder::add(fb::ValueKind kind, const Sizes& shape) {
  auto value = std::make_unique<fb::ValueT>();
  value->kind = kind;
  for (const SizeOf& size : shape) value->shape.emplace_back(size.tokens, size.constant);
  graph_.values.push_back(std::move(value));
  return static_cast<int32_t>(graph_.values.size()) - 1;
}

int32_t GraphBuilder::activation(const Sizes& shape, fb::DType dtype) {
  const int32_t index = add(fb::ValueKind::activation, shape);
  value(index).dtype = dtype;
  return index;
}

int32_t GraphBuilder::weight(const Sizes& shape, int index, fb::WeightForm form, int64_t first_row) {
  const int32_t added = add(fb::ValueKind::weight, shape);
  value(added).weight = index;
  value(added).form = form;
  value(added).first_row = first_row;
  return added;
}

int32_t GraphBuilder::constant(const Sizes& shape, const std::vector<float>& numbers) {
  const int32_t added = add(fb::ValueKind::constant, shape);
  value(added).numbers = numbers;
  return added;
}

fb::NodeT& GraphBuilder::node(fb::Op op, const std::vector<int32_t>& inputs, int32_t output, fb::Function function) {
  auto node = std::make_unique<fb::NodeT>();
  node->op = op;
  node->function = function;
  node->inputs = inputs;
  node->output = output;
  graph_.nodes.push_back(std::move(node));
  return *graph_.nodes.back();
}

Bytes GraphBuilder::build() const { return pack(graph_); }

Bytes pack(const fb::GraphT& graph) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishGraphBuffer(builder, fb::Graph::Pack(builder, &graph));
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Bytes(data, data + builder.GetSize());
}

bool has_library() {
  if (std::getenv("MOTE_XNNPACK_LIBRARY") == nullptr) {
    std::error_code error;
    for (const auto& python : std::filesystem::directory_iterator(".venv/lib", error)) {
      const auto path = python.path() / "site-packages/executorch/lib/libexecutorch_backend_xnnpack.so";
      if (std::filesystem::exists(path, error))
        ::setenv("MOTE_XNNPACK_LIBRARY", std::filesystem::absolute(path).c_str(), 0);
    }
  }
  const Status status = find_backend("xnnpack")->check_device();
  if (!status.ok()) std::printf("skipped: %s\n", status.message().c_str());
  return status.ok();
}

std::unique_ptr<std::byte, void (*)(void*)> align(const Bytes& bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, 64, std::max<size_t>(bytes.size(), 1)) != 0) std::abort();
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(memory));
  return {static_cast<std::byte*>(memory), std::free};
}

Loaded::Loaded(Bytes blob, const std::vector<const Owned*>& weights, int num_threads, const std::string& path,
               uint32_t program_crc32, const std::string& target, const Api* api)
    : blob_(std::move(blob)), aligned_(align(blob_)) {
  DelegateSource source;
  if (std::error_code error; !path.empty()) {
    source.cache_prefix = cache_prefix(path, true, "", program_crc32);
    source.file_bytes = std::filesystem::file_size(path, error);
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0) source.file_owner = static_cast<uint32_t>(info.st_uid);
  }
  source.target = target;
  source.program_crc32 = program_crc32;
  DelegatePart part;
  part.place = "test.mote: delegates[0] (xnnpack)";
  part.blob = {aligned_.get(), blob_.size()};
  for (size_t i = 0; i < weights.size(); ++i)
    part.weights.push_back({static_cast<uint32_t>(i), "w", weights[i]->tensor});
  source.parts.push_back(std::move(part));
  if (api != nullptr)
    status_ = keep(Program::load(*api, source));
  else
    status_ = keep(find_backend("xnnpack")->load(std::move(source)));
  if (!status_.ok()) return;
  pool_ = *make_thread_pool(num_threads);
  auto delegate = program_->open({.threads = pool_.get(), .max_tokens = 4096});
  if (delegate.ok())
    delegate_ = *std::move(delegate);
  else
    status_ = delegate.status();
}

Status Loaded::run(const std::vector<const Owned*>& inputs, const std::vector<mote::test::Shape>& outputs,
                   int64_t tokens) {
  if (!status_.ok()) return status_;
  std::vector<const Tensor*> ins;
  std::vector<Tensor*> outs;
  for (const Owned* input : inputs) ins.push_back(&input->tensor);
  outputs_.clear();
  for (const auto& shape : outputs) outputs_.push_back(mote::test::make(DType::kFloat32, shape));
  for (Owned& output : outputs_) {
    std::fill_n(output.as<float>(), output.count(), NAN);
    outs.push_back(&output.tensor);
  }
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  if (const auto bytes = delegate_->prepare(0, call, tokens); !bytes.ok()) return bytes.status();
  KernelContext context;
  context.threads = pool_.get();
  return delegate_->execute(0, call, context);
}

double relative_error(const Owned& actual, const std::vector<double>& expected) {
  double error = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual.as<float>()[i]) - expected[i]);
    if (std::isnan(difference)) return INFINITY;
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return largest == 0 ? error : error / largest;
}

}  // namespace mote::xnnpack::test
