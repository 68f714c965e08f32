#include "runner/session/adapters/adapter.h"
#include "runner/capi/handles.h"
#include "runner/generation/options/read_value.h"

using mote::AdapterMix;
using mote::Code;
using mote::MixedAdapter;
using mote::Status;
using mote::capi::change;
using mote::capi::give;
using mote::capi::give_string;
using mote::capi::guarded;
using mote::capi::share;

mote_error_code mote_adapter_open(const mote_model* handle, const char* path, float* weight, mote_adapter** out,
                                  mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(path);
    MixedAdapter mixed;
    if (weight == nullptr) {
      MOTE_ASSIGN(mixed.adapter, mote::shared_adapter(*model->model, path));
    } else {
      MOTE_ASSIGN(mixed, mote::load_mixed(*model->model, path));
      *weight = mixed.weight;
    }
    return give(out, model->model, std::move(mixed.adapter));
  });
}

void mote_adapter_close(mote_adapter* adapter) { mote::capi::close(adapter); }

mote_error_code mote_adapter_describe(const mote_adapter* handle, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_ASSIGN(const auto adapter, share(handle));
    const mote::Adapter& about = *adapter->adapter;
    return give_string("{\"name\": " + mote::json_of(about.name()) + ", \"path\": " + mote::json_of(about.path()) +
                           ", \"bytes\": " + std::to_string(about.memory_bytes()) + "}",
                       json);
  });
}

mote_error_code mote_session_set_adapters(mote_session* handle, const mote_adapter* const* adapters,
                                          const float* weights, size_t count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(adapters);
    AdapterMix mix;
    for (size_t i = 0; i < count; ++i) {
      MOTE_ASSIGN(const auto adapter, share(adapters[i]));
      mix.push_back({adapter->adapter, weights == nullptr ? 1.0f : weights[i]});
    }
    return session->session->set_adapters(std::move(mix));
  });
}
