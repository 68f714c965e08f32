#include "runner/capi/options.h"

#include "runner/capi/handles.h"
#include "runner/generation/sampling/options.h"

using mote::Code;
using mote::OptionSet;
using mote::Status;
using mote::capi::change_options;
using mote::capi::give;
using mote::capi::give_string;
using mote::capi::guarded;
using mote::capi::share;

mote::Result<OptionSet> mote::capi::options_of(const mote_options* handle) {
  if (handle == nullptr) return OptionSet(kAllScopes);
  MOTE_ASSIGN(const auto options, share(handle));
  const std::lock_guard lock(options->mutex);
  return options->set;
}

mote_error_code mote_describe_options(char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    return give_string(mote::describe_options(), json);
  });
}

mote_error_code mote_options_open(int32_t scopes, mote_options** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_REQUIRE(scopes >= 1 && scopes <= mote::kAllScopes, Code::kInvalidArgument,
                 "scopes = %d: must be a sum of MOTE_SCOPE_*, 1..%d", scopes, mote::kAllScopes);
    return give(out, OptionSet(scopes));
  });
}

void mote_options_close(mote_options* options) { mote::capi::close(options); }

mote_error_code mote_options_set(mote_options* handle, const char* name, const char* value, mote_error* error) {
  return change_options(handle, error, [&](OptionSet& options) -> Status {
    MOTE_REQUIRE_POINTER(name);
    return value == nullptr ? options.unset(name) : options.set(name, value);
  });
}

mote_error_code mote_options_set_json(mote_options* handle, const char* json, size_t json_bytes, mote_error* error) {
  return change_options(handle, error, [&](OptionSet& options) -> Status {
    MOTE_REQUIRE_POINTER(json);
    return options.set_json({json, json_bytes});
  });
}

mote_error_code mote_options_set_grammar(mote_options* handle, const mote_grammar* grammar, mote_error* error) {
  return change_options(handle, error, [&](OptionSet& options) -> Status {
    std::shared_ptr<const mote::constraints::Grammar> given;
    if (grammar != nullptr) {
      MOTE_ASSIGN(const auto found, share(grammar));
      given = found->grammar;
    }
    options.set_grammar(std::move(given));
    return {};
  });
}

mote_error_code mote_options_set_prefix_cache(mote_options* handle, mote_prefix_cache* cache, mote_error* error) {
  return change_options(handle, error, [&](OptionSet& options) -> Status {
    std::shared_ptr<mote::PrefixCache> given;
    if (cache != nullptr) {
      MOTE_ASSIGN(const auto found, share(cache));
      given = found->cache;
    }
    options.set_prefix_cache(std::move(given));
    return {};
  });
}

mote_error_code mote_options_set_progress(mote_options* handle, mote_progress on_progress, void* user_data,
                                          mote_error* error) {
  return change_options(handle, error, [&](OptionSet& options) -> Status {
    if (on_progress == nullptr) {
      options.set_progress({});
      return {};
    }
    options.set_progress([on_progress, user_data](double fraction) {
      return on_progress(user_data, fraction) == 0 ? Status()
                                                   : Status(Code::kCancelled, "opening the model was cancelled");
    });
    return {};
  });
}

mote_error_code mote_options_values(const mote_options* handle, const mote_model* model_handle, char** json,
                                    mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_REQUIRE(handle != nullptr, Code::kInvalidArgument, "options is NULL");
    MOTE_ASSIGN(const OptionSet options, mote::capi::options_of(handle));
    if (model_handle == nullptr) {
      MOTE_ASSIGN(const std::string values, options.show(nullptr));
      return give_string(values, json);
    }
    MOTE_ASSIGN(const auto model, share(model_handle));
    MOTE_ASSIGN(const std::string values, options.show(model->model.get()));
    return give_string(values, json);
  });
}

mote_error_code mote_options_check(const mote_options* handle, const mote_model* model_handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const OptionSet options, mote::capi::options_of(handle));
    MOTE_ASSIGN(const auto model, share(model_handle));
    MOTE_ASSIGN(const mote::GenerationOptions generation, options.generation(*model->model));
    return mote::check_generation(*model->model, generation);
  });
}
