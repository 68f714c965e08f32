// libQnnHtp.so for tests. With MOTE_TEST_QNN_LIBRARY it passes calls on to the library of that path; without, it takes
// every graph, and what graphs give is zeros. MOTE_TEST_QNN_FAULT=execute:hang:3 makes the third call of graph_execute
// hang; calls are compile, read and execute, faults error, hang, death, and of execute nan and wrong from then on.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/qnn/api.h"

namespace mote::qnn {
namespace {

constexpr ErrorHandle kFails = 6001;

const Functions* real = nullptr;
int something = 0;  // that handles point to

struct Fault {
  std::string call, kind;
  int number = 0;
};

Fault read_fault() {
  const char* text = std::getenv("MOTE_TEST_QNN_FAULT");
  std::array<char, 16> call{}, kind{};
  Fault fault;
  if (text == nullptr || std::sscanf(text, "%15[^:]:%15[^:]:%d", call.data(), kind.data(), &fault.number) != 3)
    return {};
  fault.call = call.data();
  fault.kind = kind.data();
  return fault;
}

// What is to go wrong with this call; empty: nothing.
std::string strike(const char* call) {
  static const Fault fault = read_fault();
  static std::atomic<int> count{0};
  if (fault.call != call) return {};
  const int number = ++count;
  const bool lasts = fault.kind == "wrong";
  if (lasts ? number < fault.number : number != fault.number) return {};
  if (fault.kind == "death") _exit(9);
  while (fault.kind == "hang") pause();
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

ErrorHandle execute(Handle graph, const QnnTensor* inputs, uint32_t num_inputs, QnnTensor* outputs,
                    uint32_t num_outputs, Handle profile, Handle signal) {
  const std::string kind = strike("execute");
  if (kind == "error") return kFails;
  ErrorHandle error = kSuccess;
  if (real != nullptr) {
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

Provider provider_of(const char* path) {
  Provider made{6, "faulty", {2, 40, 0}, {1, 0, 0}, {}};
  if (path == nullptr) {
    made.functions = functions_alone();
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
