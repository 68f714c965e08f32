// libQnnHtp.so for tests. With MOTE_TEST_QNN_LIBRARY it passes calls on to the library of that path, or, where that is
// `interpreter`, computes float32 itself; without, it takes every graph, and what graphs give is zeros.
// MOTE_TEST_QNN_FAULT=execute:hang:3 makes the third call of graph_execute hang, and so does mote_test_arm of
// faulty_library.h; calls are those of kCalls, faults error, hang, death, and of execute nan and wrong from then on.
#include "tests/backends/qnn/faulty_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/backends/qnn/interpreter.h"

namespace mote::qnn {
namespace {

constexpr ErrorHandle kFails = 6001;

const Functions* real = nullptr;
int something = 0;  // that handles point to

struct Fault {
  std::string call, kind;
  int64_t number = 0;
};

Fault read_fault() {
  const char* text = std::getenv("MOTE_TEST_QNN_FAULT");
  std::array<char, 16> call{}, kind{};
  int number = 0;
  if (text == nullptr || std::sscanf(text, "%15[^:]:%15[^:]:%d", call.data(), kind.data(), &number) != 3) return {};
  return {call.data(), kind.data(), number};
}

struct State {
  std::mutex mutex;
  Fault fault = read_fault();
  std::map<std::string, int64_t> counts;
  int64_t num_struck = 0;
  int64_t num_armed = 0;  // a call that hangs does so until the next one
};
State& state() {
  static State& made = *new State;
  return made;
}

// What is to go wrong with this call; empty: nothing.
std::string strike(const char* call) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  const int64_t number = ++s.counts[call];
  const Fault fault = s.fault;
  const bool is_it = fault.kind == "wrong" ? number >= fault.number : number == fault.number;
  if (fault.call != call || !is_it) return {};
  ++s.num_struck;
  if (fault.kind == "death") _exit(9);
  if (fault.kind != "hang") return fault.kind;
  const int64_t armed = s.num_armed;
  while (s.num_armed == armed) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  return fault.kind;
}

// Elements that are computed from here on: float16.
void spoil(const QnnTensor& tensor, const std::string& kind) {
  auto* halves = static_cast<uint16_t*>(tensor.v1.buffer.data);
  for (uint32_t i = 0; i < tensor.v1.buffer.size / 2; ++i)
    halves[i] = kind == "nan" ? uint16_t{0x7e00} : static_cast<uint16_t>(halves[i] ^ 0x8000u);
}

ErrorHandle make(Handle* made) {
  *made = &something;
  return kSuccess;
}

// Contexts of the interpreter. What is kept of one is its number, for the last few of this process.
using Graphs = std::map<std::string, test::InterpretedGraph>;
struct Context {
  std::shared_ptr<Graphs> graphs = std::make_shared<Graphs>();
  uint64_t number = 0;
};
std::deque<Context>& kept_contexts() {
  static std::deque<Context>& made = *new std::deque<Context>;
  return made;
}
bool interprets = false;

ErrorHandle find_context(const void* binary, uint64_t size, Handle* made) {
  uint64_t number = 0;
  if (size != sizeof(number)) return kFails;
  std::memcpy(&number, binary, sizeof(number));
  for (const Context& kept : kept_contexts()) {
    if (kept.number != number) continue;
    *made = new Context(kept);
    return kSuccess;
  }
  return kFails;
}

ErrorHandle keep_context(Handle context, void* to, uint64_t, uint64_t* written) {
  static uint64_t last = 0;
  auto& own = *static_cast<Context*>(context);
  own.number = ++last;
  kept_contexts().push_back(own);
  if (kept_contexts().size() > 4) kept_contexts().pop_front();
  std::memcpy(to, &own.number, sizeof(own.number));
  *written = sizeof(own.number);
  return kSuccess;
}

ErrorHandle find_graph(Handle context, const char* name, Handle* graph) {
  Graphs& graphs = *static_cast<Context*>(context)->graphs;
  const auto found = graphs.find(name);
  if (found == graphs.end()) return kFails;
  *graph = &found->second;
  return kSuccess;
}

ErrorHandle execute(Handle graph, const QnnTensor* inputs, uint32_t num_inputs, QnnTensor* outputs,
                    uint32_t num_outputs, Handle profile, Handle signal) {
  const std::string kind = strike("execute");
  if (kind == "error" || kind == "hang") return kFails;
  ErrorHandle error = kSuccess;
  if (interprets) {
    auto* own = static_cast<test::InterpretedGraph*>(graph);
    error = own->execute(inputs, num_inputs, outputs, num_outputs) ? kSuccess : kFails;
  } else if (real != nullptr) {
    error = real->graph_execute(graph, inputs, num_inputs, outputs, num_outputs, profile, signal);
  } else {
    for (uint32_t i = 0; i < num_outputs; ++i) std::memset(outputs[i].v1.buffer.data, 0, outputs[i].v1.buffer.size);
  }
  for (uint32_t i = 0; i < num_outputs && !kind.empty(); ++i) spoil(outputs[i], kind);
  return error;
}

ErrorHandle finalize(Handle graph, Handle profile, Handle signal) {
  if (!strike("compile").empty()) return kFails;
  return real != nullptr ? real->graph_finalize(graph, profile, signal) : kSuccess;
}

ErrorHandle read(Handle backend, Handle device, const Config** configs, const void* binary, uint64_t size,
                 Handle* context, Handle profile) {
  if (!strike("read").empty()) return kFails;
  if (interprets) return find_context(binary, size, context);
  if (real == nullptr) return make(context);
  return real->context_create_from_binary(backend, device, configs, binary, size, context, profile);
}

Functions functions_alone() {
  Functions f{};
  f.backend_create = [](Handle, const Config**, Handle* made) { return make(made); };
  f.backend_get_build_id = [](const char** id) {
    *id = "of zeros";
    return kSuccess;
  };
  f.log_create = [](LogCallback, uint32_t, Handle* made) { return make(made); };
  f.device_create = [](Handle, const Config**, Handle* made) { return make(made); };
  f.context_create = [](Handle, Handle, const Config**, Handle* made) { return make(made); };
  f.context_get_binary_size = [](Handle, uint64_t* size) {
    *size = 1;
    return kSuccess;
  };
  f.context_get_binary = [](Handle, void* to, uint64_t, uint64_t* written) {
    *static_cast<char*>(to) = 0;
    *written = 1;
    return kSuccess;
  };
  f.context_free = [](Handle, Handle) { return kSuccess; };
  f.graph_create = [](Handle, const char*, const Config**, Handle* made) { return make(made); };
  f.graph_add_node = [](Handle, OpConfig) { return kSuccess; };
  f.graph_retrieve = [](Handle, const char*, Handle* made) { return make(made); };
  f.tensor_create_graph_tensor = [](Handle, QnnTensor*) { return kSuccess; };
  return f;
}

Functions functions_of_interpreter() {
  Functions f = functions_alone();
  f.context_create = [](Handle, Handle, const Config**, Handle* made) {
    if (!strike("context").empty()) return kFails;
    *made = new Context;
    return kSuccess;
  };
  f.context_get_binary_size = [](Handle, uint64_t* size) {
    *size = sizeof(uint64_t);
    return strike("size").empty() ? kSuccess : kFails;
  };
  f.context_get_binary = [](Handle context, void* to, uint64_t size, uint64_t* written) {
    return strike("keep").empty() ? keep_context(context, to, size, written) : kFails;
  };
  f.context_free = [](Handle context, Handle) {
    delete static_cast<Context*>(context);
    return kSuccess;
  };
  f.graph_create = [](Handle context, const char* name, const Config**, Handle* made) {
    *made = &(*static_cast<Context*>(context)->graphs)[name];
    return strike("graph").empty() ? kSuccess : kFails;
  };
  f.graph_retrieve = [](Handle context, const char* name, Handle* made) {
    return strike("find").empty() ? find_graph(context, name, made) : kFails;
  };
  f.graph_add_node = [](Handle graph, OpConfig op) {
    static_cast<test::InterpretedGraph*>(graph)->add_node(op);
    return strike("node").empty() ? kSuccess : kFails;
  };
  f.tensor_create_graph_tensor = [](Handle graph, QnnTensor* tensor) {
    static_cast<test::InterpretedGraph*>(graph)->add_tensor(tensor);
    return strike("tensor").empty() ? kSuccess : kFails;
  };
  return f;
}

Provider provider_of(const char* path) {
  Provider made{6, "faulty", {2, 40, 0}, {1, 0, 0}, {}};
  interprets = path != nullptr && std::strcmp(path, "interpreter") == 0;
  if (path == nullptr || interprets) {
    made.functions = interprets ? functions_of_interpreter() : functions_alone();
  } else {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const auto get =
        library == nullptr ? nullptr : reinterpret_cast<GetProviders>(dlsym(library, "QnnInterface_getProviders"));
    const Provider** providers = nullptr;
    uint32_t count = 0;
    if (get == nullptr || get(&providers, &count) != kSuccess || count == 0) std::abort();
    made = *providers[0];
    static const Functions kept = made.functions;
    real = &kept;
  }
  made.functions.graph_execute = execute;
  made.functions.graph_finalize = finalize;
  made.functions.context_create_from_binary = read;
  return made;
}

}  // namespace
}  // namespace mote::qnn

extern "C" __attribute__((visibility("default"))) mote::qnn::ErrorHandle QnnInterface_getProviders(
    const mote::qnn::Provider*** providers, uint32_t* count) {
  static const mote::qnn::Provider provider = mote::qnn::provider_of(std::getenv("MOTE_TEST_QNN_LIBRARY"));
  static const mote::qnn::Provider* list[] = {&provider};
  *providers = list;
  *count = 1;
  return mote::qnn::kSuccess;
}

extern "C" __attribute__((visibility("default"))) void mote_test_arm(const char* call, const char* kind,
                                                                     int64_t number) {
  mote::qnn::State& s = mote::qnn::state();
  const std::lock_guard lock(s.mutex);
  s.fault = {call, kind, number};
  s.counts.clear();
  s.num_struck = 0;
  ++s.num_armed;
}

extern "C" __attribute__((visibility("default"))) int64_t mote_test_count(const char* call) {
  mote::qnn::State& s = mote::qnn::state();
  const std::lock_guard lock(s.mutex);
  return *call == '\0' ? s.num_struck : s.counts[call];
}
