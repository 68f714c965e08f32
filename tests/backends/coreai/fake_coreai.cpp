// Core AI, for tests: an asset is a file for the CPU (tests/backends/assets/fake_library.h) with what its functions
// take. The backend runs it by functions in C that are here, or by those of the library that MOTE_COREAI_RUNTIME names:
// what Swift makes of backends/coreai/runtime.swift and apple/CoreAI.swift, which calls what is `fake_coreai_` here.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "backends/assets/strided.h"
#include "backends/coreai/runtime.h"
#include "tests/backends/assets/fake_library.h"

#define MOTE_FOR_SWIFT extern "C" __attribute__((visibility("default")))

namespace mote::test {
namespace {

using assets::Elements;
using assets::Port;
using assets::Reference;

constexpr std::string_view kFiles[] = {"main.mlirb"};
constexpr assets::AssetKind kKind{"coreai", "Core AI", ".aimodel", kFiles, true};

// Memory of an array that a call gets.
struct Given {
  void* elements = nullptr;
  std::vector<int64_t> strides;
};

struct FakeFunction {
  Reference reference;
  std::map<int32_t, std::vector<Port>> ports;  // by their roles
  std::map<std::string, Given> given;

  explicit FakeFunction(Reference of) : reference(std::move(of)) {
    ports[MOTE_COREAI_INPUT] = reference.inputs;
    ports[MOTE_COREAI_OUTPUT] = reference.outputs;
    for (const assets::StatePort& state : reference.states) {
      ports[state.is_carried() ? MOTE_COREAI_INPUT : MOTE_COREAI_STATE].push_back(state.port);
      if (state.is_carried()) ports[MOTE_COREAI_OUTPUT].push_back(reference.carried_output(state));
    }
  }
};

struct FakeModel {
  std::string folder;
  std::vector<FakeFunction> functions;
  std::shared_ptr<assets::Asset> asset;

  int32_t find(const std::string& name) {
    std::ifstream file(folder + "/" + name + ".json", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Result<Reference> reference = parse_reference({name, std::as_bytes(std::span(text)), {}}, kKind);
    if (!reference.ok()) return -1;
    functions.emplace_back(*std::move(reference));
    return static_cast<int32_t>(functions.size() - 1);
  }
};

const Port* port_of(FakeFunction& function, int32_t role, const std::string& name) {
  const std::vector<Port>& ports = function.ports[role];
  const auto found = std::ranges::find(ports, name, &Port::name);
  return found == ports.end() ? nullptr : &*found;
}

Elements elements_of(const FakeFunction& function, const Port& port) {
  Elements elements(port.num_bytes());
  const Given& from = function.given.at(port.name);
  assets::gather(from.elements, port.shape, from.strides, dtype_bytes(port.dtype), elements.data());
  return elements;
}

void give_back(const FakeFunction& function, const Port& port, const Elements& elements) {
  const Given& to = function.given.at(port.name);
  assets::scatter(elements.data(), port.shape, to.strides, dtype_bytes(port.dtype), to.elements);
}

// The rows of a cache that begin at a position.
Elements rows_from(const Elements& cache, const Port& port, const Port& rows, int64_t position) {
  Elements found;
  const int64_t row = port.shape[3] * dtype_bytes(port.dtype);
  for (int64_t head = 0; head < port.shape[1]; ++head) {
    const auto first = cache.begin() + (head * port.shape[2] + position) * row;
    found.insert(found.end(), first, first + rows.shape[2] * row);
  }
  return found;
}

// From what was given and nothing else.
Status compute(FakeModel& model, FakeFunction& function) {
  const Reference& reference = function.reference;
  if (model.asset == nullptr) {
    MOTE_ASSIGN(model.asset, open_fake(model.folder + "/main.mlirb", std::span(&reference, 1)));
  }
  MOTE_ASSIGN(const auto states, model.asset->make_states(reference.states));
  std::vector<Elements> inputs, outputs;
  for (const Port& port : reference.inputs) inputs.push_back(elements_of(function, port));
  for (const Port& port : reference.outputs) outputs.emplace_back(port.num_bytes());
  for (const assets::StatePort& port : reference.states)
    MOTE_RETURN_IF_ERROR(states->write(port, reference.context_length, elements_of(function, port.port)));
  int32_t position = 0;
  if (!reference.states.empty())
    std::memcpy(&position, inputs[*reference.input("position_ids")].data(), sizeof position);
  MOTE_RETURN_IF_ERROR(model.asset->predict(reference, inputs, outputs, states.get()));
  for (size_t i = 0; i < outputs.size(); ++i) give_back(function, reference.outputs[i], outputs[i]);
  for (const assets::StatePort& port : reference.states) {
    MOTE_ASSIGN(const Elements elements, states->read(port, reference.context_length));
    if (port.is_carried()) {
      const Port rows = reference.carried_output(port);
      give_back(function, rows, port.is_cache() ? rows_from(elements, port.port, rows, position) : elements);
    } else {
      give_back(function, port.port, elements);
    }
  }
  return {};
}

int32_t say(const Status& status, char* error, int32_t size) {
  if (!status.ok()) std::snprintf(error, static_cast<size_t>(size), "%s", status.message().c_str());
  return status.ok() ? 1 : 0;
}

}  // namespace
}  // namespace mote::test

using mote::test::FakeModel;

MOTE_FOR_SWIFT void* fake_coreai_open(const char* folder, const char* units, char* error, int32_t size) {
  const char* wanted = std::getenv("MOTE_COREAI_UNITS");
  mote::Status status;
  if (std::string_view(wanted == nullptr ? "all" : wanted) != units)
    status = mote::Status(mote::Code::kInternal, std::string("other units: ") + units);
  if (!mote::test::say(status, error, size)) return nullptr;
  return new FakeModel{folder, {}, nullptr};
}

MOTE_FOR_SWIFT void fake_coreai_close(void* model) { delete static_cast<FakeModel*>(model); }

MOTE_FOR_SWIFT int32_t fake_coreai_function(void* model, const char* name) {
  return static_cast<FakeModel*>(model)->find(name);
}

// shape: for 8 sizes. Returns: the rank; -1: there is none
MOTE_FOR_SWIFT int32_t fake_coreai_describe(void* model, int32_t function, int32_t role, const char* name,
                                            int32_t* dtype, int64_t* shape) {
  auto& known = static_cast<FakeModel*>(model)->functions[static_cast<size_t>(function)];
  const mote::assets::Port* port = mote::test::port_of(known, role, name);
  if (port == nullptr) return -1;
  *dtype = port->dtype == mote::DType::kInt32     ? MOTE_COREAI_INT32
           : port->dtype == mote::DType::kFloat16 ? MOTE_COREAI_FLOAT16
                                                  : MOTE_COREAI_FLOAT32;
  std::ranges::copy(port->shape, shape);
  return static_cast<int32_t>(port->shape.size());
}

MOTE_FOR_SWIFT void fake_coreai_give(void* model, int32_t function, int32_t role, const char* name, void* elements,
                                     const int64_t* strides) {
  auto& known = static_cast<FakeModel*>(model)->functions[static_cast<size_t>(function)];
  const size_t rank = mote::test::port_of(known, role, name)->shape.size();
  known.given[name] = {elements, {strides, strides + rank}};
}

MOTE_FOR_SWIFT int32_t fake_coreai_compute(void* model, int32_t function, char* error, int32_t size) {
  auto& opened = *static_cast<FakeModel*>(model);
  return mote::test::say(mote::test::compute(opened, opened.functions[static_cast<size_t>(function)]), error, size);
}

namespace mote::test {
namespace {

// What is behind a handle of the functions in C.
struct Held {
  virtual ~Held() = default;
};
struct HeldModel final : Held {
  explicit HeldModel(void* opened) : model(opened) {}
  ~HeldModel() override { fake_coreai_close(model); }
  void* model;
};
struct HeldFunction final : Held {
  HeldFunction(void* opened, int32_t number) : model(opened), index(number) {}
  void* model;
  int32_t index;
};
// Rows are longer than they need.
struct HeldArray final : Held {
  std::vector<int64_t> shape, strides;
  std::vector<std::byte> bytes;
};

Held* held(void* handle) { return static_cast<Held*>(handle); }

void* open_model(const char* folder, const char* units, const mote_coreai_error* error) {
  void* model = fake_coreai_open(folder, units, error->text, error->size);
  return model == nullptr ? nullptr : static_cast<Held*>(new HeldModel(model));
}

void* open_function(void* model, const char* name, const mote_coreai_error*) {
  void* of = static_cast<HeldModel*>(held(model))->model;
  const int32_t index = fake_coreai_function(of, name);
  return index < 0 ? nullptr : static_cast<Held*>(new HeldFunction(of, index));
}

void* make_array(void* handle, int32_t role, const char* name, int32_t dtype, const mote_coreai_error*) {
  const auto& function = *static_cast<HeldFunction*>(held(handle));
  int32_t found = 0;
  int64_t shape[8] = {};
  const int32_t rank = fake_coreai_describe(function.model, function.index, role, name, &found, shape);
  if (rank < 0 || found != dtype) return nullptr;
  auto* array = new HeldArray;
  array->shape.assign(shape, shape + rank);
  array->strides.assign(array->shape.size(), 1);
  int64_t size = 1;
  for (size_t axis = array->shape.size(); axis-- > 0;) {
    array->strides[axis] = size;
    size *= array->shape[axis];
    if (axis + 1 == array->shape.size() && axis > 0) size += 3;
  }
  array->bytes.assign(static_cast<size_t>(size) * 4, std::byte{0xee});
  return static_cast<Held*>(array);
}

int32_t visit(void* handle, mote_coreai_visitor visitor, void* context) {
  auto& array = *static_cast<HeldArray*>(held(handle));
  visitor(context, array.bytes.data(), array.shape.data(), array.strides.data(),
          static_cast<int32_t>(array.shape.size()));
  return 1;
}

int32_t run(void* handle, const mote_coreai_argument* arguments, int32_t count, const mote_coreai_error* error) {
  const auto& function = *static_cast<HeldFunction*>(held(handle));
  for (const mote_coreai_argument& each : std::span(arguments, static_cast<size_t>(count))) {
    auto& array = *static_cast<HeldArray*>(held(each.array));
    fake_coreai_give(function.model, function.index, each.role, each.name, array.bytes.data(), array.strides.data());
  }
  return fake_coreai_compute(function.model, function.index, error->text, error->size);
}

constexpr mote_coreai_runtime kInC = {[] { return int32_t{1}; },
                                      open_model,
                                      open_function,
                                      make_array,
                                      visit,
                                      run,
                                      [](void* handle) { delete held(handle); }};

// The library's functions, or those that are here.
const mote_coreai_runtime* chosen() {
  const char* path = std::getenv("MOTE_COREAI_RUNTIME");
  if (path == nullptr) return &kInC;
  void* library = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  void* function = library == nullptr ? nullptr : ::dlsym(library, "mote_coreai_runtime_of_swift");
  if (function == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(1);
  }
  return reinterpret_cast<const mote_coreai_runtime* (*)()>(function)();
}

[[maybe_unused]] const bool is_used = (mote_coreai_use(chosen()), true);

}  // namespace
}  // namespace mote::test
