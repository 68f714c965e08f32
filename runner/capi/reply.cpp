#include "base/json.h"
#include "runner/capi/handles.h"

using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::Object;
using mote::capi::share;
using mote::capi::text_or_empty;

namespace {

Status open(const mote_reply_options* options, std::string_view own_template, mote_reply** out) {
  mote_reply_options given{};
  if (options != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(options, given));
  mote::ReplyOptions chosen;
  chosen.format = text_or_empty(given.format);
  chosen.chat_template =
      given.chat_template == nullptr ? own_template : text_or_empty(given.chat_template, given.chat_template_bytes);
  chosen.prompt = text_or_empty(given.prompt, given.prompt_bytes);
  chosen.tools = text_or_empty(given.tools, given.tools_bytes);
  MOTE_ASSIGN(auto parser, mote::ReplyParser::make(chosen));
  return give(out, std::move(parser));
}

void append(std::vector<mote::ReplyEvent> events, Object<mote_reply>& reply) {
  for (mote::ReplyEvent& event : events) reply.events.push_back(std::move(event));
}

}  // namespace

mote_error_code mote_reply_formats(char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    std::string names;
    for (const std::string_view name : mote::reply_format_names())
      names += (names.empty() ? "[" : ", ") + mote::json_string(name);
    return mote::capi::give_string(names + "]", json);
  });
}

mote_error_code mote_reply_open(const mote_reply_options* options, mote_reply** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_REQUIRE_POINTER(options);
    return open(options, {}, out);
  });
}

mote_error_code mote_model_reply_open(const mote_model* handle, const mote_reply_options* options, mote_reply** out,
                                      mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    return open(options, model->model->chat_template(), out);
  });
}

void mote_reply_close(mote_reply* reply) { mote::capi::close(reply); }

mote_error_code mote_reply_format(const mote_reply* handle, const char** name, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto reply, enter(handle));
    MOTE_REQUIRE_POINTER(name);
    *name = reply->parser->format_name().data();
    return {};
  });
}

mote_error_code mote_reply_push(mote_reply* handle, const char* text, size_t text_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto reply, enter(handle));
    if (text_bytes > 0) MOTE_REQUIRE_POINTER(text);
    std::vector<mote::ReplyEvent> events;
    MOTE_RETURN_IF_ERROR(reply->parser->push({text_bytes > 0 ? text : "", text_bytes}, events));
    append(std::move(events), *reply);
    return {};
  });
}

mote_error_code mote_reply_finish(mote_reply* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto reply, enter(handle));
    std::vector<mote::ReplyEvent> events;
    reply->parser->finish(events);
    append(std::move(events), *reply);
    return {};
  });
}

mote_error_code mote_reply_next_event(mote_reply* handle, mote_reply_event* event, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto reply, enter(handle));
    MOTE_REQUIRE_POINTER(event);
    mote_reply_event result{};
    const bool has_event = !reply->events.empty();
    reply->taken = has_event ? std::move(reply->events.front()) : mote::ReplyEvent{};
    if (has_event) {
      reply->events.pop_front();
      result.kind = static_cast<mote_reply_event_kind>(reply->taken.kind);
    }
    result.call_index = static_cast<int32_t>(reply->taken.index);
    result.text = reply->taken.text.c_str();
    result.text_bytes = reply->taken.text.size();
    result.id = reply->taken.id.c_str();
    return mote::capi::write_struct(result, event);
  });
}

mote_error_code mote_reply_message(const mote_reply* handle, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_ASSIGN(const auto reply, enter(handle));
    return mote::capi::give_string(reply->parser->message(), json);
  });
}
