#include "backends/xnnpack/delegate.h"

#include <array>
#include <new>
#include <set>

#include "backends/xnnpack/threads.h"
#include "base/log.h"
#include "base/size.h"

namespace mote::xnnpack {
namespace {

// Of all values of a part: a shape from a file must not make XNNPACK fill all memory.
constexpr int64_t kMaxWorkspaceBytes = int64_t{8} << 30;

Status check_tensor(const char* list, size_t index, const Tensor* tensor, const Shape& shape, int64_t tokens) {
  bool fits = tensor != nullptr && tensor->dtype == DType::kFloat32 && tensor->bits == 0 &&
              tensor->rank == static_cast<int>(shape.size()) && tensor->is_contiguous();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = tensor->sizes[i] == shape[i].at(tokens);
  MOTE_REQUIRE(fits, Code::kInvalidProgram, "%s[%zu]: must be a contiguous float32 tensor of shape %s with T = %lld",
               list, index, shape_text(shape).c_str(), static_cast<long long>(tokens));
  return {};
}

Status check_call(const Graph& graph, const Call& call, int64_t tokens) {
  MOTE_REQUIRE(call.inputs.size() == graph.inputs.size() && call.outputs.size() == graph.outputs.size(),
               Code::kInvalidProgram, "has %zu inputs and %zu outputs: must have %zu and %zu", call.inputs.size(),
               call.outputs.size(), graph.inputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_tensor("inputs", i, call.inputs[i], graph.values[graph.inputs[i]].shape, tokens));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    MOTE_RETURN_IF_ERROR(check_tensor("outputs", i, call.outputs[i], graph.values[graph.outputs[i]].shape, tokens));
  }
  Size bytes = 0;
  for (const GraphValue& value : graph.values) {
    if (value.is_static()) continue;
    Size count = 4;
    for (const LinearSize& size : value.shape) count = count * size.at(tokens);
    bytes = bytes + count;
  }
  MOTE_REQUIRE(bytes.at_most(kMaxWorkspaceBytes), Code::kOutOfMemory,
               "its values take more than %lld bytes with T = %lld", static_cast<long long>(kMaxWorkspaceBytes),
               static_cast<long long>(tokens));
  return {};
}

// A part's runtime in one session.
struct Prepared {
  RuntimeHandle runtime;
  int64_t tokens = 0;                 // 0: not prepared
  uint64_t workspace_version = 0;     // for which it was last set up; 0: never
  std::vector<ExternalValue> values;  // inputs, then outputs
};

class SessionDelegate : public Delegate {
 public:
  explicit SessionDelegate(std::shared_ptr<const Program> program)
      : program_(std::move(program)), parts_(program_->num_parts()) {}

  Status start(ThreadPool* pool) {
    threads_ = Threads::make(program_->api(), pool);
    MOTE_REQUIRE(threads_ != nullptr, Code::kOutOfMemory, "no memory for XNNPACK's threads");
    MOTE_ASSIGN(workspace_, make_workspace(program_->api()));
    return {};
  }

  Result<size_t> prepare(size_t part, const Call& call, int64_t tokens) override {
    try {
      MOTE_REQUIRE(part < parts_.size(), Code::kInvalidProgram, "part %zu: there are %zu", part, parts_.size());
      MOTE_RETURN_IF_ERROR(at_place(program_->part(part).place, prepare_part(part, call, tokens)));
      return size_t{0};
    } catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory for a part that XNNPACK runs"); }
  }

  Status execute(size_t part, const Call& call, KernelContext&) override {
    MOTE_REQUIRE(part < parts_.size() && parts_[part].tokens > 0, Code::kInternal, "part %zu was not prepared", part);
    Prepared& prepared = parts_[part];
    return at_place(program_->part(part).place, run(prepared, call));
  }

 private:
  Status prepare_part(size_t index, const Call& call, int64_t tokens) {
    const LoadedPart& part = program_->part(index);
    Prepared& prepared = parts_[index];
    prepared.tokens = 0;
    MOTE_REQUIRE(tokens >= 1 && tokens <= kMaxTokens, Code::kInvalidProgram, "T = %lld: must be 1 to %lld",
                 static_cast<long long>(tokens), static_cast<long long>(kMaxTokens));
    MOTE_RETURN_IF_ERROR(check_call(part.graph, call, tokens));
    if (prepared.runtime == nullptr) MOTE_RETURN_IF_ERROR(make(part, tokens, &prepared));
    MOTE_RETURN_IF_ERROR(reshape(part.graph, prepared, tokens));
    prepared.tokens = tokens;
    return {};
  }

  Status make(const LoadedPart& part, int64_t tokens, Prepared* prepared) {
    MOTE_ASSIGN(prepared->runtime, make_runtime(program_->api(), part.graph, part.tensors, tokens, program_->provider(),
                                                workspace_.get(), threads_->threadpool()));
    for (const auto* list : {&part.graph.inputs, &part.graph.outputs}) {
      for (const uint32_t value : *list) prepared->values.push_back({value, nullptr});
    }
    return {};
  }

  Status reshape(const Graph& graph, Prepared& prepared, int64_t tokens) {
    const Api& api = program_->api();
    std::array<size_t, kMaxTensorDims> sizes{};
    for (const uint32_t input : graph.inputs) {
      const Shape& shape = graph.values[input].shape;
      for (size_t i = 0; i < shape.size(); ++i) sizes[i] = static_cast<size_t>(shape[i].at(tokens));
      MOTE_RETURN_IF_ERROR(status_of(
          api.reshape_external_value(prepared.runtime.get(), input, shape.size(), sizes.data()), "reshape an input"));
    }
    // It may move the workspace, into which all runtimes point.
    ++workspace_version_;
    MOTE_RETURN_IF_ERROR(status_of(api.reshape_runtime(prepared.runtime.get()), "reshape"));
    for (const uint32_t output : graph.outputs) {
      const Shape& shape = graph.values[output].shape;
      size_t rank = 0;
      MOTE_RETURN_IF_ERROR(
          status_of(api.get_external_value_shape(prepared.runtime.get(), output, &rank, sizes.data()), "tell a shape"));
      bool same = rank == shape.size();
      for (size_t i = 0; same && i < rank; ++i) same = sizes[i] == static_cast<size_t>(shape[i].at(tokens));
      MOTE_REQUIRE(same, Code::kInvalidProgram, "XNNPACK gives values[%u] another shape than %s", output,
                   shape_text(shape).c_str());
    }
    return {};
  }

  Status run(Prepared& prepared, const Call& call) {
    const Api& api = program_->api();
    bool is_set_up = prepared.workspace_version == workspace_version_;
    const auto point = [&](ExternalValue& value, void* data) {
      is_set_up = is_set_up && value.data == data;
      value.data = data;
    };
    for (size_t i = 0; i < call.inputs.size(); ++i) point(prepared.values[i], call.inputs[i]->data);
    for (size_t i = 0; i < call.outputs.size(); ++i)
      point(prepared.values[call.inputs.size() + i], call.outputs[i]->data);
    if (!is_set_up) {
      prepared.workspace_version = 0;
      MOTE_RETURN_IF_ERROR(status_of(
          api.setup_runtime_v2(prepared.runtime.get(), prepared.values.size(), prepared.values.data()), "set up"));
      prepared.workspace_version = workspace_version_;
    }
    const Status status = status_of(threads_->run(prepared.runtime.get()), "run");
    MOTE_RETURN_IF_ERROR(program_->check_readable());
    return status;
  }

  std::shared_ptr<const Program> program_;
  std::unique_ptr<Threads> threads_;  // outlives the runtimes
  WorkspaceHandle workspace_;
  uint64_t workspace_version_ = 0;
  std::vector<Prepared> parts_;
};

// How much of the weights of all parts those parts have that are done: each weight is packed once.
class PackedShare {
 public:
  explicit PackedShare(std::span<const DelegatePart> parts) {
    PackedShare whole;
    for (const DelegatePart& part : parts) whole.add(part);
    all_ = whole.done_;
  }
  void add(const DelegatePart& part) {
    for (const DelegateWeight& weight : part.weights) {
      if (seen_.insert(weight.index).second) done_ += static_cast<double>(weight.tensor.num_elements());
    }
  }
  double fraction() const { return all_ > 0.0 ? done_ / all_ : 0.0; }

 private:
  PackedShare() = default;
  std::set<uint32_t> seen_;
  double done_ = 0.0;
  double all_ = 0.0;
};

}  // namespace

// With what was packed before, else writing what is packed now, else without a file: whatever is wrong with it, a load
// works.
Result<std::shared_ptr<const Program>> Program::load(const Api& api, const DelegateSource& source) {
  std::string failure;
  if (const std::optional<CachePlace> place = CachePlace::find(api, source)) {
    Result<PackedCache> cache = PackedCache::open(*place);
    if (cache.ok()) {
      auto loaded = load_with(api, source, std::make_unique<PackedWeights>(*std::move(cache)), &failure);
      if (failure.empty()) return loaded;
      failure = place->path + ": " + failure;
    } else {
      failure = cache.status().message();
    }
    MOTE_LOG_LINE(kInfo, "xnnpack: packing weights: %s", failure.c_str());
    Result<PackedCacheWriter> writer = PackedCacheWriter::create(*place);
    if (writer.ok()) {
      auto loaded = load_with(api, source, std::make_unique<PackedWeights>(*std::move(writer)), &failure);
      if (failure.empty()) return loaded;
    } else {
      failure = writer.status().message();
    }
    MOTE_LOG_LINE(kInfo, "xnnpack: packed weights are not kept: %s", failure.c_str());
  }
  return load_with(api, source, std::make_unique<PackedWeights>(), &failure);
}

Result<std::shared_ptr<const Program>> Program::load_with(const Api& api, const DelegateSource& source,
                                                          std::unique_ptr<PackedWeights> weights,
                                                          std::string* failure) {
  std::shared_ptr<Program> program(new Program(api, std::move(weights)));
  Status status;
  PackedShare share(source.parts);
  for (size_t i = 0; i < source.parts.size() && status.ok(); ++i) {
    status = report(source.progress, share.fraction());
    if (status.ok()) status = program->load_part(source.parts[i]);
    share.add(source.parts[i]);
  }
  if (status.ok() && source.check_unchanged) status = source.check_unchanged();  // before what was packed is kept
  if (status.ok()) status = program->weights_->finish();
  *failure = program->weights_->cache_failure();
  if (!status.ok()) return status;
  return std::shared_ptr<const Program>(std::move(program));
}

// Makes a runtime only to have its weights packed.
Status Program::load_part(const DelegatePart& part) {
  LoadedPart loaded{.place = part.place};
  MOTE_ASSIGN(loaded.graph, verify_graph(part));
  MOTE_ASSIGN(std::vector<StaticTensor> tensors, weights_->add(part, loaded.graph));
  MOTE_ASSIGN(WorkspaceHandle workspace, make_workspace(api_));
  const Result<RuntimeHandle> runtime =
      make_runtime(api_, loaded.graph, tensors, 1, weights_->provider(), workspace.get(), nullptr);
  if (!runtime.ok()) return at_place(part.place, runtime.status());
  weights_->finish_part();
  for (StaticTensor& tensor : tensors) tensor.block_scales = nullptr;
  loaded.tensors = std::move(tensors);
  parts_.push_back(std::move(loaded));
  return {};
}

Result<std::unique_ptr<Delegate>> Program::open(const DelegateOptions& options) const {
  try {
    auto delegate = std::make_unique<SessionDelegate>(shared_from_this());
    MOTE_RETURN_IF_ERROR(delegate->start(options.threads));
    return std::unique_ptr<Delegate>(std::move(delegate));
  } catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory for a session of XNNPACK"); }
}

}  // namespace mote::xnnpack
