#include "runner/capi/handles.h"
#include "runner/capi/options.h"

using mote::ChatField;
using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::Object;
using mote::capi::share;
using mote::capi::Shared;

namespace {

mote_finish_reason number_of(const std::optional<mote::FinishReason>& reason) {
  return reason.has_value() ? static_cast<mote_finish_reason>(*reason) : MOTE_FINISH_NONE;
}

// `prepare` changes the chat before the turn begins; what it changed stays only if that begins.
template <typename Prepare>
mote_error_code begin_turn(mote_chat* handle, mote_session* session_handle, const mote_options* requested,
                           mote_chat_turn** out, mote_error* error, const Prepare& prepare) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto chat, enter(handle));
    MOTE_ASSIGN(auto session, mote::capi::change(session_handle));
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::GenerationOptions options, given.reply(session->session->model()));
    MOTE_ASSIGN(auto kept, share(session_handle));
    mote::Conversation conversation = chat->conversation;
    MOTE_RETURN_IF_ERROR(prepare(conversation));
    MOTE_ASSIGN(auto turn, mote::ChatTurn::begin(conversation, mote::capi::place_of(*session), options));
    chat->conversation = std::move(conversation);
    return give(out, mote::capi::TextSession(std::move(kept), std::move(session), "chat turn"), std::move(turn));
  });
}

Status write_event(mote::ChatEvent event, Object<mote_chat_turn>& turn, mote_chat_event* to) {
  turn.event = std::move(event);
  turn.top_logprobs.clear();
  for (const mote::TokenLogprob& entry : turn.event.top_logprobs)
    turn.top_logprobs.push_back({entry.id, entry.logprob});
  mote_chat_event result{};
  result.kind = static_cast<mote_chat_event_kind>(turn.event.kind);
  result.call_index = static_cast<int32_t>(turn.event.call_index);
  result.num_pending = static_cast<int32_t>(turn.turn->num_pending());
  result.text = turn.event.text.c_str();
  result.text_bytes = turn.event.text.size();
  result.call_id = turn.event.call_id.c_str();
  result.token_id = turn.event.token_id;
  result.logprob = turn.event.logprob;
  result.top_logprobs = turn.top_logprobs.data();
  result.num_top_logprobs = turn.top_logprobs.size();
  result.finish_reason = number_of(turn.event.finish_reason);
  return mote::capi::write_struct(result, to);
}

std::string_view text_of(const char* text, size_t text_bytes) {
  return text_bytes > 0 ? std::string_view(text, text_bytes) : std::string_view();
}

}  // namespace

mote_error_code mote_chat_open(const mote_model* handle, mote_chat** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_RETURN_IF_ERROR(model->model->require_tokenizer().status());
    return give(out, mote::Conversation(model->model));
  });
}

void mote_chat_close(mote_chat* chat) { mote::capi::close(chat); }

mote_error_code mote_chat_set(mote_chat* handle, mote_chat_field field, const char* text, size_t text_bytes,
                              mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    if (text_bytes > 0) MOTE_REQUIRE_POINTER(text);
    MOTE_REQUIRE(field >= 0 && field < static_cast<int32_t>(mote::kNumChatFields), Code::kInvalidArgument,
                 "field = %d: must be one of MOTE_CHAT_MESSAGES .. MOTE_CHAT_RESPONSE_FORMAT, 0..%d", field,
                 static_cast<int>(mote::kNumChatFields) - 1);
    return chat->conversation.set(static_cast<ChatField>(field), text_of(text, text_bytes));
  });
}

mote_error_code mote_chat_set_is_cancelled(mote_chat* handle, mote_is_cancelled is_cancelled, void* user_data,
                                           mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    std::function<bool()> ask;
    if (is_cancelled != nullptr) ask = [is_cancelled, user_data] { return is_cancelled(user_data) != 0; };
    chat->conversation.set_is_cancelled(std::move(ask));
    return {};
  });
}

mote_error_code mote_chat_append(mote_chat* handle, const char* message, size_t message_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    MOTE_REQUIRE_POINTER(message);
    return chat->conversation.append({message, message_bytes});
  });
}

mote_error_code mote_chat_edit(mote_chat* handle, size_t index, const char* message, size_t message_bytes,
                               mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    MOTE_REQUIRE_POINTER(message);
    return chat->conversation.edit(index, {message, message_bytes});
  });
}

mote_error_code mote_chat_truncate(mote_chat* handle, size_t count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    return chat->conversation.truncate(count);
  });
}

mote_error_code mote_chat_messages(const mote_chat* handle, char** json, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_ASSIGN(const auto chat, enter(handle));
    if (count != nullptr) *count = chat->conversation.num_messages();
    return mote::capi::give_string(chat->conversation.messages(), json);
  });
}

mote_error_code mote_chat_prompt(mote_chat* handle, int32_t* ids, size_t capacity, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    if (capacity > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const auto plan, chat->conversation.plan());
    *count = plan->ids.size();
    std::copy_n(plan->ids.begin(), std::min(capacity, *count), ids);
    return {};
  });
}

mote_error_code mote_chat_reply(mote_chat* chat, mote_session* session, const mote_options* options,
                                mote_chat_turn** out, mote_error* error) {
  return begin_turn(chat, session, options, out, error, [](mote::Conversation&) { return Status(); });
}

mote_error_code mote_chat_send(mote_chat* chat, mote_session* session, const char* message, size_t message_bytes,
                               const mote_options* options, mote_chat_turn** out, mote_error* error) {
  return begin_turn(chat, session, options, out, error, [&](mote::Conversation& conversation) -> Status {
    MOTE_REQUIRE_POINTER(message);
    return conversation.append({message, message_bytes});
  });
}

mote_error_code mote_chat_regenerate(mote_chat* chat, mote_session* session, const mote_options* options,
                                     mote_chat_turn** out, mote_error* error) {
  return begin_turn(chat, session, options, out, error,
                    [](mote::Conversation& conversation) { return conversation.drop_reply(); });
}

mote_error_code mote_chat_continue(mote_chat* chat, mote_session* session, const mote_options* options,
                                   mote_chat_turn** out, mote_error* error) {
  return begin_turn(chat, session, options, out, error,
                    [](mote::Conversation& conversation) { return conversation.continue_reply(); });
}

mote_error_code mote_chat_take_reply(mote_chat* handle, const mote_chat_turn* turn_handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto chat, enter(handle));
    MOTE_ASSIGN(const auto turn, enter(turn_handle));
    return chat->conversation.take_reply(turn->turn->message());
  });
}

mote_error_code mote_chat_turn_next(mote_chat_turn* handle, mote_chat_event* event, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto turn, enter(handle));
    MOTE_REQUIRE_POINTER(event);
    if (!turn->turn->is_over()) MOTE_RETURN_IF_ERROR(turn->session.change());
    auto next = turn->turn->next();
    if (turn->turn->is_over()) turn->session.leave();
    MOTE_RETURN_IF_ERROR(next.status());
    return write_event(*std::move(next), *turn, event);
  });
}

void mote_chat_turn_cancel(mote_chat_turn* handle) {
  if (const auto turn = Shared<mote_chat_turn>::find(handle)) turn->turn->cancel();
}

mote_error_code mote_chat_turn_stop(mote_chat_turn* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto turn, enter(handle));
    if (!turn->turn->is_over()) MOTE_RETURN_IF_ERROR(turn->session.change());
    const Status status = turn->turn->stop();
    turn->session.leave();
    return status;
  });
}

mote_error_code mote_chat_turn_message(const mote_chat_turn* handle, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    *json = nullptr;
    MOTE_ASSIGN(const auto turn, enter(handle));
    return mote::capi::give_string(turn->turn->message(), json);
  });
}

mote_error_code mote_chat_turn_statistics(const mote_chat_turn* handle, mote_chat_statistics* of_chat,
                                          mote_statistics* of_generation, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto turn, enter(handle));
    const mote::ChatStatistics from = turn->turn->statistics();
    if (of_chat != nullptr) {
      MOTE_RETURN_IF_ERROR(
          mote::capi::write_struct(mote_chat_statistics{0, from.prompt_tokens, from.kept_tokens, from.forgotten_tokens,
                                                        from.position, from.context_length},
                                   of_chat));
    }
    if (of_generation == nullptr) return {};
    return mote::capi::write_statistics(from.generation, number_of(turn->turn->finish_reason()), of_generation);
  });
}

void mote_chat_turn_close(mote_chat_turn* turn) { mote::capi::close(turn); }
