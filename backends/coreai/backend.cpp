// Core AI as a library of assets, from iOS 27 and macOS 27 on, by what is written in Swift.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>

#include "backends/assets/apple.h"
#include "backends/assets/backend.h"
#include "backends/assets/strided.h"
#include "backends/coreai/runtime.h"

namespace mote::coreai {
namespace {

using assets::Elements;
using assets::Port;
using assets::Reference;
using assets::StatePort;

constexpr std::string_view kFiles[] = {"main.mlirb"};
constexpr assets::AssetKind kKind{"coreai", "Core AI", ".aimodel", kFiles, true};

std::atomic<const mote_coreai_runtime*> runtime_in_use{nullptr};

// Where a call says why it fails.
class Said {
 public:
  const mote_coreai_error* error() { return &error_; }
  Status status(const std::string& what) const {
    std::string text(text_.data());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return {Code::kInternal, "Core AI cannot " + what + ": " + (text.empty() ? "it does not say why" : text)};
  }

 private:
  std::array<char, 512> text_{};
  mote_coreai_error error_{text_.data(), static_cast<int32_t>(text_.size())};
};

struct Release {
  const mote_coreai_runtime* runtime;
  void operator()(void* handle) const { runtime->release(handle); }
};
using Handle = std::unique_ptr<void, Release>;

Result<mote_coreai_dtype> dtype_of(const Port& port) {
  switch (port.dtype) {
    case DType::kFloat32: return MOTE_COREAI_FLOAT32;
    case DType::kFloat16: return MOTE_COREAI_FLOAT16;
    case DType::kInt32: return MOTE_COREAI_INT32;
    default: return Status(Code::kInternal, port.name + ": Core AI has no arrays of that dtype");
  }
}

// An array of the runtime's for a port.
class NdArray {
 public:
  NdArray() = default;
  static Result<NdArray> make(const mote_coreai_runtime* runtime, void* function, mote_coreai_role role,
                              const Port& port) {
    MOTE_ASSIGN(const mote_coreai_dtype dtype, dtype_of(port));
    Said said;
    NdArray array;
    array.handle_ =
        Handle(runtime->make_array(function, role, port.name.c_str(), dtype, said.error()), Release{runtime});
    if (array.handle_ == nullptr) return said.status("make an array for " + port.name);
    return array;
  }

  void* handle() const { return handle_.get(); }

  // Copies the part with these sizes, from its beginning.
  Status read(const Port& port, std::span<const int64_t> sizes, std::byte* to) const {
    return visit(port, [&](void* elements, std::span<const int64_t> strides) {
      assets::gather(elements, sizes, strides, dtype_bytes(port.dtype), to);
    });
  }
  Status write(const Port& port, std::span<const int64_t> sizes, const std::byte* from) const {
    return visit(port, [&](void* elements, std::span<const int64_t> strides) {
      assets::scatter(from, sizes, strides, dtype_bytes(port.dtype), elements);
    });
  }
  // As write, of a cache from a position on.
  Status write_rows(const Port& port, int64_t position, std::span<const int64_t> sizes, const std::byte* from) const {
    return visit(port, [&](void* elements, std::span<const int64_t> strides) {
      auto* first = static_cast<std::byte*>(elements) + position * strides[2] * dtype_bytes(port.dtype);
      assets::scatter(from, sizes, strides, dtype_bytes(port.dtype), first);
    });
  }

 private:
  template <typename Copy> Status visit(const Port& port, const Copy& copy) const {
    struct Visit {
      const Port& port;
      const Copy& copy;
      bool fits = false;
    } visit{port, copy};
    const auto visitor = [](void* context, void* elements, const int64_t* shape, const int64_t* strides, int32_t rank) {
      auto& given = *static_cast<Visit*>(context);
      const std::span<const int64_t> sizes(shape, static_cast<size_t>(rank));
      given.fits = std::ranges::equal(sizes, given.port.shape);
      if (given.fits) given.copy(elements, std::span(strides, sizes.size()));
    };
    const bool visited = handle_.get_deleter().runtime->visit(handle(), visitor, &visit) != 0;
    MOTE_REQUIRE(visited && visit.fits, Code::kInternal, "Core AI has %s with another shape or layout",
                 port.name.c_str());
    return {};
  }

  Handle handle_{nullptr, Release{nullptr}};
};

class States final : public assets::AssetStates {
 public:
  Status add(const mote_coreai_runtime* runtime, void* function, const StatePort& port) {
    const auto role = port.is_carried() ? MOTE_COREAI_INPUT : MOTE_COREAI_STATE;
    MOTE_ASSIGN(NdArray array, NdArray::make(runtime, function, role, port.port));
    const Elements zeros(port.port.num_bytes());
    MOTE_RETURN_IF_ERROR(array.write(port.port, port.port.shape, zeros.data()));
    arrays_.emplace(port.port.name, std::move(array));
    return {};
  }
  void* handle(const StatePort& port) const { return arrays_.at(port.port.name).handle(); }
  // Puts what a call made of a state that is an input in its place. position: of the call's first token
  Status take(const StatePort& state, const Port& port, const NdArray& made, int64_t position) const {
    Elements elements(port.num_bytes());
    MOTE_RETURN_IF_ERROR(made.read(port, port.shape, elements.data()));
    const NdArray& array = arrays_.at(state.port.name);
    if (!state.is_cache()) return array.write(state.port, port.shape, elements.data());
    return array.write_rows(state.port, position, port.shape, elements.data());
  }

  Result<Elements> read(const StatePort& port, int64_t positions) override {
    Elements elements(port.bytes_of(positions));
    MOTE_RETURN_IF_ERROR(arrays_.at(port.port.name).read(port.port, port.sizes_of(positions), elements.data()));
    return elements;
  }
  Status write(const StatePort& port, int64_t positions, const Elements& elements) override {
    return arrays_.at(port.port.name).write(port.port, port.sizes_of(positions), elements.data());
  }

 private:
  std::map<std::string, NdArray> arrays_;
};

// Inputs and outputs of a function, which calls fill and read.
struct CoreaiFunction {
  Handle handle;
  std::vector<NdArray> inputs, outputs;
  std::vector<NdArray> carried;  // of states that are inputs, what becomes of them

  static Result<CoreaiFunction> open(const mote_coreai_runtime* runtime, void* model, const Reference& function) {
    Said said;
    CoreaiFunction opened{
        Handle(runtime->open_function(model, function.function.c_str(), said.error()), {runtime}), {}, {}, {}};
    if (opened.handle == nullptr) return said.status("load function " + function.function);
    const auto add = [&](const Port& port, mote_coreai_role role, std::vector<NdArray>* arrays) -> Status {
      MOTE_ASSIGN(NdArray array, NdArray::make(runtime, opened.handle.get(), role, port));
      arrays->push_back(std::move(array));
      return {};
    };
    for (const Port& port : function.inputs) MOTE_RETURN_IF_ERROR(add(port, MOTE_COREAI_INPUT, &opened.inputs));
    for (const Port& port : function.outputs) MOTE_RETURN_IF_ERROR(add(port, MOTE_COREAI_OUTPUT, &opened.outputs));
    for (const StatePort& state : function.states) {
      if (!state.is_carried()) continue;
      MOTE_RETURN_IF_ERROR(add(function.carried_output(state), MOTE_COREAI_OUTPUT, &opened.carried));
    }
    return opened;
  }
};

class Model final : public assets::Asset {
 public:
  static Result<std::shared_ptr<assets::Asset>> open(const mote_coreai_runtime* runtime, const std::string& folder,
                                                     std::span<const Reference> functions, const std::string& units) {
    Said said;
    auto model = std::make_shared<Model>();
    model->runtime_ = runtime;
    model->handle_ = Handle(runtime->open_model(folder.c_str(), units.c_str(), said.error()), Release{runtime});
    if (model->handle_ == nullptr) return said.status("open the asset");
    for (const Reference& function : functions) {
      MOTE_ASSIGN(CoreaiFunction opened, CoreaiFunction::open(runtime, model->handle_.get(), function));
      model->functions_.emplace(function.function, std::move(opened));
    }
    return std::shared_ptr<assets::Asset>(std::move(model));
  }

  // Each state by a function that has it: one that has none of that name gives an error, and so have all.
  Result<std::unique_ptr<assets::AssetStates>> make_states(std::span<const StatePort> ports) override {
    auto states = std::make_unique<States>();
    for (const StatePort& port : ports) {
      Status status(Code::kInternal, "Core AI has no state " + port.port.name);
      for (auto& [name, function] : functions_) {
        status = states->add(runtime_, function.handle.get(), port);
        if (status.ok()) break;
      }
      MOTE_RETURN_IF_ERROR(status);
    }
    return std::unique_ptr<assets::AssetStates>(std::move(states));
  }

  Status predict(const Reference& function, std::span<const Elements> inputs, std::span<Elements> outputs,
                 assets::AssetStates* states) override {
    const CoreaiFunction& called = functions_.at(function.function);
    std::vector<mote_coreai_argument> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Port& port = function.inputs[i];
      MOTE_RETURN_IF_ERROR(called.inputs[i].write(port, port.shape, inputs[i].data()));
      arguments.push_back({MOTE_COREAI_INPUT, port.name.c_str(), called.inputs[i].handle()});
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      arguments.push_back({MOTE_COREAI_OUTPUT, function.outputs[i].name.c_str(), called.outputs[i].handle()});
    auto carried = called.carried.begin();
    for (const StatePort& port : function.states) {
      const auto role = port.is_carried() ? MOTE_COREAI_INPUT : MOTE_COREAI_STATE;
      arguments.push_back({role, port.port.name.c_str(), static_cast<States*>(states)->handle(port)});
      if (port.is_carried()) arguments.push_back({MOTE_COREAI_OUTPUT, port.output.c_str(), (carried++)->handle()});
    }
    Said said;
    const auto count = static_cast<int32_t>(arguments.size());
    if (runtime_->run(called.handle.get(), arguments.data(), count, said.error()) == 0) return said.status("compute");
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Port& port = function.outputs[i];
      MOTE_RETURN_IF_ERROR(called.outputs[i].read(port, port.shape, outputs[i].data()));
    }
    return called.carried.empty() ? Status() : carry(function, inputs, static_cast<const States&>(*states));
  }

 private:
  Status carry(const Reference& function, std::span<const Elements> inputs, const States& states) const {
    int32_t position = 0;
    std::memcpy(&position, inputs[*function.input("position_ids")].data(), sizeof position);
    auto made = functions_.at(function.function).carried.begin();
    for (const StatePort& state : function.states) {
      if (!state.is_carried()) continue;
      const Port port = function.carried_output(state);
      const bool fits = !state.is_cache() || (position >= 0 && position + port.shape[2] <= state.port.shape[2]);
      MOTE_REQUIRE(fits, Code::kInternal, "position %d: %s ends before that", position, state.port.name.c_str());
      MOTE_RETURN_IF_ERROR(states.take(state, port, *made++, position));
    }
    return {};
  }

  const mote_coreai_runtime* runtime_ = nullptr;
  Handle handle_{nullptr, Release{nullptr}};
  std::map<std::string, CoreaiFunction> functions_;
};

class Library final : public assets::AssetLibrary {
 public:
  Status check_device() override {
    const mote_coreai_runtime* runtime = runtime_in_use;
    MOTE_REQUIRE(runtime != nullptr, Code::kUnsupportedBackend,
                 "Core AI is not in this build: it is where Swift compiles it, from iOS 27 and macOS 27 on");
    MOTE_REQUIRE(runtime->is_there() != 0, Code::kUnsupportedBackend, "Core AI is there from iOS 27 and macOS 27 on");
    return {};
  }
  std::string identity() override { return device_name() + "; " + assets::system_build(); }
  std::string device_name() override { return "Core AI on " + assets::apple_device(); }
  Result<assets::Units> units() override { return assets::apple_units("MOTE_COREAI_UNITS"); }

  Result<std::shared_ptr<assets::Asset>> open(const std::string& folder, const std::string&,
                                              std::span<const Reference> functions, const std::string& units) override {
    MOTE_RETURN_IF_ERROR(check_device());
    return Model::open(runtime_in_use, folder, functions, units);
  }
};

class CoreaiBackend final : public assets::AssetBackend {
 public:
  CoreaiBackend() : AssetBackend(kKind) {}

 protected:
  std::shared_ptr<assets::AssetLibrary> library() const override {
    static const auto made = std::make_shared<Library>();
    return made;
  }
};

const CoreaiBackend coreai_backend;
const BackendRegistration coreai_registration(&coreai_backend);

}  // namespace
}  // namespace mote::coreai

extern "C" void mote_coreai_use(const mote_coreai_runtime* runtime) { mote::coreai::runtime_in_use = runtime; }
