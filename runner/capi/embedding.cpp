#include "base/parts.h"
#include "runner/capi/handles.h"

using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::share;
using mote::capi::Shared;

namespace {

mote::Result<mote::EmbedOptions> options_of(const mote_embed_options* given) {
  mote_embed_options from{};
  if (given != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(given, from));
  mote::EmbedOptions options;
  options.prompt_name = mote::capi::text_or_empty(from.prompt_name);
  options.prompt = mote::capi::text_or_empty(from.prompt, from.prompt_bytes);
  options.has_prompt = from.prompt != nullptr;
  options.dimensions = from.dimensions;
  options.normalized = from.keep_length == 0;
  options.cut_to_fit = from.refuse_long == 0;
  options.parse_special = from.plain_text == 0;
  return options;
}

mote::Result<std::vector<mote::EmbedInput>> inputs_of(const mote_embed_input* from, size_t count) {
  std::vector<mote::EmbedInput> inputs;
  if (count > 0) MOTE_REQUIRE_POINTER(from);
  for (size_t i = 0; i < count; ++i) {
    const bool is_text = from[i].text != nullptr;
    MOTE_REQUIRE(is_text || from[i].num_ids == 0 || from[i].ids != nullptr, Code::kInvalidArgument,
                 "inputs[%zu]: text and ids are NULL", i);
    inputs.push_back({is_text ? std::string_view(from[i].text, from[i].text_bytes) : std::string_view(),
                      {from[i].ids, is_text ? 0 : from[i].num_ids},
                      is_text});
  }
  return inputs;
}

// What `guarded` does, in builds that have embeddings.
template <typename Body>
mote_error_code of_embeddings(mote_error* error, Body body) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_PART("embeddings", Code::kInvalidArgument);
    return body();
  });
}

}  // namespace

mote_error_code mote_model_embedding_config(const mote_model* handle, char** json, mote_error* error) {
  return of_embeddings(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_ASSIGN(const mote::EmbeddingConfig config, embedding_config(*model->model));
    return mote::capi::give_string(describe(config), json);
  });
}

mote_error_code mote_embedder_open(mote_model* handle, const mote_options* requested, mote_embedder** out,
                                   mote_error* error) {
  return of_embeddings(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::SessionOptions options, given.session());
    MOTE_ASSIGN(std::unique_ptr<mote::Embedder> embedder, mote::Embedder::open(model->model, options));
    return give(out, std::move(embedder));
  });
}

void mote_embedder_close(mote_embedder* embedder) { mote::capi::close(embedder); }

mote_error_code mote_embedder_dimensions(const mote_embedder* handle, const mote_embed_options* given,
                                         size_t* dimensions, mote_error* error) {
  return of_embeddings(error, [&]() -> Status {
    MOTE_ASSIGN(const auto embedder, share(handle));
    MOTE_REQUIRE_POINTER(dimensions);
    MOTE_ASSIGN(const mote::EmbedOptions options, options_of(given));
    MOTE_ASSIGN(const int64_t result, embedder->embedder->dimensions(options));
    *dimensions = static_cast<size_t>(result);
    return {};
  });
}

mote_error_code mote_embedder_embed(mote_embedder* handle, const mote_embed_input* inputs, size_t count,
                                    const mote_embed_options* given, float* vectors, int64_t* num_tokens,
                                    mote_error* error) {
  return of_embeddings(error, [&]() -> Status {
    MOTE_ASSIGN(const auto embedder, enter(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(vectors);
    MOTE_ASSIGN(const mote::EmbedOptions options, options_of(given));
    MOTE_ASSIGN(const std::vector<mote::EmbedInput> texts, inputs_of(inputs, count));
    const std::span<int64_t> counts(num_tokens, num_tokens == nullptr ? 0 : count);
    return embedder->embedder->embed(texts, options, vectors, counts);
  });
}

void mote_embedder_cancel(mote_embedder* handle) {
  if (const auto embedder = Shared<mote_embedder>::find(handle)) embedder->embedder->cancel();
}

mote_error_code mote_embedder_check_golden(mote_embedder* handle, char** report, mote_error* error) {
  return of_embeddings(error, [&]() -> Status {
    MOTE_ASSIGN(const auto embedder, enter(handle));
    MOTE_REQUIRE_POINTER(report);
    MOTE_ASSIGN(const std::string json, embedder->embedder->check_golden());
    return mote::capi::give_string(json, report);
  });
}
