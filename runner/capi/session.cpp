#include "runner/capi/conversation.h"
#include "runner/generation/speculation/draft_model.h"
#include "runner/session/golden.h"
#include "runner/session/trace.h"

using mote::Code;
using mote::Status;
using mote::capi::change;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::share;
using mote::capi::Shared;

namespace {

void copy_logits(std::span<const float> from, float* to) {
  if (to != nullptr) std::copy(from.begin(), from.end(), to);
}

// Where the methods of a target stand among all of the file.
std::vector<int32_t> places_of_methods(const mote::Bound& bound) {
  const auto& all = *bound.program().methods();
  std::vector<int32_t> places;
  for (uint32_t i = 0; i < bound.num_methods(); ++i) {
    uint32_t place = 0;
    while (all.Get(place) != &bound.method(i)) ++place;
    places.push_back(static_cast<int32_t>(place));
  }
  return places;
}

mote_value value_of(const mote::ComputedValue& from, const std::vector<int32_t>& places) {
  const mote::Tensor& tensor = *from.tensor;
  mote_value value{};
  value.struct_size = sizeof value;
  value.method = places[from.method];
  value.instruction = static_cast<int32_t>(from.instruction);
  value.output = static_cast<int32_t>(from.output);
  value.dtype = dtype_name(tensor.dtype);
  value.shape = tensor.sizes.data();
  value.rank = static_cast<size_t>(tensor.rank);
  value.data = tensor.data;
  value.bytes = static_cast<size_t>(tensor.num_elements() * dtype_bytes(tensor.dtype));
  return value;
}

}  // namespace

mote_error_code mote_prefix_cache_open(uint64_t max_bytes, mote_prefix_cache** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    return give(out, std::make_shared<mote::PrefixCache>(max_bytes));
  });
}

void mote_prefix_cache_close(mote_prefix_cache* cache) { mote::capi::close(cache); }

mote_error_code mote_prefix_cache_clear(mote_prefix_cache* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto prefix_cache, share(handle));
    prefix_cache->cache->clear();
    return {};
  });
}

mote_error_code mote_prefix_cache_get_info(const mote_prefix_cache* handle, mote_prefix_cache_info* info,
                                           mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto prefix_cache, share(handle));
    MOTE_REQUIRE_POINTER(info);
    const mote::PrefixCache::Statistics statistics = prefix_cache->cache->statistics();
    const mote_prefix_cache_info result{
        0, statistics.bytes, statistics.snapshots, statistics.hits, statistics.misses, statistics.reused_tokens};
    return mote::capi::write_struct(result, info);
  });
}

mote_error_code mote_session_open(mote_model* handle, const mote_options* requested, mote_session** out,
                                  mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::SessionOptions options, given.session());
    MOTE_ASSIGN(std::shared_ptr<mote::Session> session, mote::Session::open(model->model, options));
    return give(out, std::move(session));
  });
}

void mote_session_close(mote_session* session) { mote::capi::close(session); }

mote_error_code mote_session_prefill(mote_session* handle, const int32_t* ids, size_t count, float* logits,
                                     mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const auto result, session->session->prefill({ids, count}));
    copy_logits(result, logits);
    return {};
  });
}

mote_error_code mote_session_append(mote_session* handle, const int32_t* ids, size_t count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    return session->session->append({ids, count});
  });
}

mote_error_code mote_session_tokenize(mote_session* handle, const char* text, size_t text_bytes, int32_t parse_special,
                                      int32_t* ids, size_t capacity, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    if (text_bytes > 0) MOTE_REQUIRE_POINTER(text);
    if (capacity > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const std::vector<int32_t> encoded,
                session->session->encode({text_bytes > 0 ? text : "", text_bytes}, parse_special != 0));
    *count = encoded.size();
    std::copy_n(encoded.begin(), std::min(capacity, encoded.size()), ids);
    return {};
  });
}

mote_error_code mote_session_append_text(mote_session* handle, const char* text, size_t text_bytes,
                                         int32_t parse_special, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (text_bytes > 0) MOTE_REQUIRE_POINTER(text);
    MOTE_ASSIGN(const std::vector<int32_t> ids,
                session->session->encode({text_bytes > 0 ? text : "", text_bytes}, parse_special != 0));
    return session->session->append(ids);
  });
}

mote_error_code mote_session_set_tokens(mote_session* handle, const int32_t* ids, size_t count, int64_t* kept,
                                        mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const int64_t result, session->session->set_tokens({ids, count}));
    if (kept != nullptr) *kept = result;
    return {};
  });
}

mote_error_code mote_session_rewind_to_prefix(mote_session* handle, const int32_t* ids, size_t count, int64_t* kept,
                                              mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const int64_t result, session->session->rewind_to_prefix({ids, count}));
    if (kept != nullptr) *kept = result;
    return {};
  });
}

mote_error_code mote_session_append_messages(mote_session* handle, const mote_conversation* conversation, int64_t* kept,
                                             mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    MOTE_REQUIRE_POINTER(conversation);
    const mote::Model& model = session->session->model();
    MOTE_ASSIGN(const mote::Tokenizer* tokenizer, model.require_tokenizer());
    MOTE_ASSIGN(const mote::Prompt prompt, mote::capi::render_with_own(model, *conversation));
    MOTE_ASSIGN(const std::vector<int32_t> ids, encode_prompt(*tokenizer, prompt));
    MOTE_ASSIGN(const int64_t result, session->session->set_tokens(ids));
    if (kept != nullptr) *kept = result;
    return {};
  });
}

mote_error_code mote_session_logits(mote_session* handle, float* logits, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(logits);
    MOTE_ASSIGN(const auto result, session->session->logits());
    copy_logits(result, logits);
    return {};
  });
}

mote_error_code mote_session_decode(mote_session* handle, int32_t id, float* logits, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    MOTE_ASSIGN(const auto result, session->session->decode(id));
    copy_logits(result, logits);
    return {};
  });
}

mote_error_code mote_session_score(mote_session* handle, const int32_t* ids, size_t count, float* logprobs,
                                   mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    if (count > 1) MOTE_REQUIRE_POINTER(logprobs);
    return session->session->score({ids, count}, logprobs);
  });
}

mote_error_code mote_session_verify(mote_session* handle, const int32_t* ids, size_t count, float* logits,
                                    mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_REQUIRE_POINTER(logits);
    return session->session->verify({ids, count}, logits);
  });
}

mote_error_code mote_session_get_info(const mote_session* handle, mote_session_info* info, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(info);
    const mote::Session& found = *session->session;
    mote_session_info result{};
    result.context_length = static_cast<int32_t>(found.context_length());
    result.num_threads = found.num_threads();
    result.position = found.position();
    result.state_bytes = found.state_bytes();
    result.arena_bytes = found.arena_bytes();
    result.held_state_bytes = found.held_state_bytes();
    result.forgotten_tokens = found.forgotten_tokens();
    return mote::capi::write_struct(result, info);
  });
}

int64_t mote_session_position(const mote_session* handle) {
  const auto session = Shared<mote_session>::find(handle);
  return session ? session->session->position() : -1;
}

mote_error_code mote_session_rewind(mote_session* handle, int64_t position, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    return session->session->rewind(position);
  });
}

mote_error_code mote_session_move_to(mote_session* handle, const char* backend, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    MOTE_REQUIRE_POINTER(backend);
    return session->session->move_to(backend);
  });
}

mote_error_code mote_session_get_backend(const mote_session* handle, char** backend, char** moved_because,
                                         mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(backend);
    MOTE_RETURN_IF_ERROR(mote::capi::give_string(session->session->backend(), backend));
    if (moved_because == nullptr) return {};
    const Status status = mote::capi::give_string(session->session->moved_because(), moved_because);
    if (!status.ok()) mote_string_free(std::exchange(*backend, nullptr));
    return status;
  });
}

mote_error_code mote_session_tokens(const mote_session* handle, int32_t* ids, size_t capacity, size_t* count,
                                    mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(count);
    if (capacity > 0) MOTE_REQUIRE_POINTER(ids);
    const std::span<const int32_t> tokens = session->session->tokens();
    std::copy_n(tokens.begin(), std::min(capacity, tokens.size()), ids);
    *count = tokens.size();
    return {};
  });
}

mote_error_code mote_session_reset(mote_session* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    session->session->reset();
    return {};
  });
}

mote_error_code mote_session_fork(const mote_session* handle, mote_session** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_ASSIGN(std::shared_ptr<mote::Session> fork, session->session->fork());
    return give(out, std::move(fork));
  });
}

mote_error_code mote_session_save(const mote_session* handle, const char* path, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(path);
    return session->session->save(path);
  });
}

mote_error_code mote_session_restore(mote_session* handle, const char* path, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    MOTE_REQUIRE_POINTER(path);
    return session->session->restore(path);
  });
}

void mote_session_cancel(mote_session* handle) {
  if (const auto session = Shared<mote_session>::find(handle)) session->session->cancel();
}

void mote_session_forget_cancel(mote_session* handle) {
  if (const auto session = Shared<mote_session>::find(handle)) session->session->forget_cancel();
}

mote_error_code mote_session_set_draft_model(mote_session* handle, mote_model* draft_model, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    std::unique_ptr<mote::DraftModel> draft;
    if (draft_model != nullptr) {
      MOTE_ASSIGN(const auto model, share(draft_model));
      MOTE_ASSIGN(draft, mote::DraftModel::open(*session->session, model->model));
    }
    // A generation that goes on keeps its own.
    auto speculator = std::make_shared<mote::Speculator>();
    speculator->set_draft_source(std::move(draft));
    session->speculator = std::move(speculator);
    return {};
  });
}

mote_error_code mote_session_set_batch(mote_session* handle, mote_batch* batch_handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    std::shared_ptr<mote::Batch> batch;
    if (batch_handle != nullptr) {
      MOTE_ASSIGN(const auto found, share(batch_handle));
      batch = found->batch;
      MOTE_REQUIRE(&batch->model() == &session->session->model(), Code::kInvalidArgument,
                   "the session is of another model than the batch");
    }
    session->batch = std::move(batch);
    return {};
  });
}

mote_error_code mote_session_check_golden(mote_session* handle, char** report, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, change(handle));
    MOTE_REQUIRE_POINTER(report);
    MOTE_ASSIGN(const mote::GoldenReport golden, mote::check_golden(*session->session));
    return mote::capi::give_string(golden.json, report);
  });
}

mote_error_code mote_session_start_profile(mote_session* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    session->session->start_profile();
    return {};
  });
}

mote_error_code mote_session_stop_profile(mote_session* handle, char** trace, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto session, enter(handle));
    MOTE_REQUIRE_POINTER(trace);
    const std::unique_ptr<mote::Profile> profile = session->session->stop_profile();
    MOTE_REQUIRE(profile != nullptr, Code::kInvalidArgument, "no profile was started on this session");
    return mote::capi::give_string(mote::chrome_trace(*session->session, *profile), trace);
  });
}

mote_error_code mote_session_set_value_sink(mote_session* handle, mote_value_sink sink, void* user_data,
                                            mote_release release, mote_error* error) {
  return guarded(error, [&]() -> Status {
    const mote::capi::Borrowed borrowed(user_data, release);
    MOTE_ASSIGN(const auto session, enter(handle));
    mote::ValueSink calling;
    if (sink != nullptr) {
      const mote::Session* own = session->session.get();  // which holds the sink
      calling = [sink, borrowed, own, bound = static_cast<const mote::Bound*>(nullptr),
                 places = std::vector<int32_t>()](const auto& from) mutable {
        if (bound != &own->bound()) places = places_of_methods(own->bound());  // it may have moved
        bound = &own->bound();
        const mote_value value = value_of(from, places);
        return sink(borrowed.get(), &value) == 0;
      };
    }
    session->session->set_value_sink(std::move(calling));
    return {};
  });
}
