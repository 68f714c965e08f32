#include "runner/capi/handles.h"

using mote::Status;
using mote::capi::guarded;
using mote::capi::share;

mote_error_code mote_tokenizer_check(const char* json, size_t json_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    return mote::check_tokenizer_json({json, json_bytes});
  });
}

mote_error_code mote_tokenize(const mote_model* handle, const char* text, size_t text_bytes, int32_t add_special,
                              int32_t parse_special, int32_t* ids, size_t capacity, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    if (text_bytes > 0) MOTE_REQUIRE_POINTER(text);
    if (capacity > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::Tokenizer* tokenizer, model->model->require_tokenizer());
    const mote::EncodeOptions options{add_special != 0, parse_special != 0};
    MOTE_ASSIGN(const std::vector<int32_t> encoded,
                tokenizer->encode({text_bytes > 0 ? text : "", text_bytes}, options));
    *count = encoded.size();
    std::copy_n(encoded.begin(), std::min(capacity, encoded.size()), ids);
    return {};
  });
}

mote_error_code mote_detokenize(const mote_model* handle, const int32_t* ids, size_t count, int32_t skip_special,
                                char** text, size_t* text_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(text);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::Tokenizer* tokenizer, model->model->require_tokenizer());
    const std::string decoded = tokenizer->decode(std::span<const int32_t>(ids, count), skip_special != 0);
    return mote::capi::give_string(decoded, text, text_bytes);
  });
}
