#include "runner/cli/chat/model_reply.h"

#include <exception>

#include "runner/cli/draft_model.h"
#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

using Turn = std::unique_ptr<mote_chat_turn, Closer<mote_chat_turn_close>>;

void set_field(mote_chat* chat, mote_chat_field field, const Json& value) {
  const std::string text = value.is_null() ? "" : dump(value);
  check([&](mote_error* error) { return mote_chat_set(chat, field, text.data(), text.size(), error); });
}

Turn begin(const Model& model, const std::string& path, const Session& session, const Conversation& conversation,
           const Options& options) {
  mote_chat* handle = nullptr;
  check([&](mote_error* error) { return mote_chat_open(model.get(), &handle, error); });
  const std::unique_ptr<mote_chat, Closer<mote_chat_close>> chat(handle);
  set_field(handle, MOTE_CHAT_MESSAGES, conversation.all_messages());
  set_field(handle, MOTE_CHAT_TOOLS, conversation.tools);
  set_field(handle, MOTE_CHAT_VARIABLES, conversation.variables);
  mote_chat_turn* turn = nullptr;
  auto error = sized<mote_error>();
  const mote_error_code code = mote_chat_reply(handle, session.get(), options.get(), &turn, &error);
  if (code == MOTE_ERROR_TEMPLATE)
    throw InputError(path + ": its chat template refuses the conversation: " + error.message);
  if (code != MOTE_OK) throw InputError(error.message);
  return Turn(turn);
}

void run(const Turn& turn, const Session& session, const Show& show, Reply& reply) {
  const CancelOnInterrupt cancel(session.get());
  auto event = sized<mote_chat_event>();
  do {
    check([&](mote_error* error) { return mote_chat_turn_next(turn.get(), &event, error); });
    show(event);
    if (Interrupts::happened()) mote_chat_turn_cancel(turn.get());
  } while (event.kind != MOTE_CHAT_DONE);
  reply.statistics.finish_reason = event.finish_reason;
  reply.is_stopped = event.finish_reason == MOTE_FINISH_CANCELLED;
  reply.is_whole = !reply.is_stopped;
}

ReplyStatistics statistics_of(mote_chat_turn* turn) {
  auto of_chat = sized<mote_chat_statistics>();
  auto of_generation = sized<mote_statistics>();
  check([&](mote_error* error) { return mote_chat_turn_statistics(turn, &of_chat, &of_generation, error); });
  ReplyStatistics result = reply_statistics(of_generation);
  result.prompt_tokens = of_chat.prompt_tokens;
  result.kept_tokens = of_chat.kept_tokens;
  result.forgotten_tokens = of_chat.forgotten_tokens;
  result.position = of_chat.position;
  result.context_length = of_chat.context_length;
  return result;
}

}  // namespace

Reply reply_of_model(const Model& model, const std::string& path, const Session& session,
                     const Conversation& conversation, const Options& options, const Show& show) {
  Reply reply;
  Turn turn;
  try {
    turn = begin(model, path, session, conversation, options);
    run(turn, session, show, reply);
  } catch (const std::exception& error) { reply.error = error.what(); }
  if (turn == nullptr) return reply;
  const mote_finish_reason reason = reply.statistics.finish_reason;
  reply.statistics = statistics_of(turn.get());
  reply.statistics.finish_reason = reason;
  // What was written stays, also of a reply that failed.
  reply.message = Json::parse(
      take_string([&](char** text, mote_error* error) { return mote_chat_turn_message(turn.get(), text, error); }));
  return reply;
}

}  // namespace mote::cli
