#include "runner/cli/chat/model_responder.h"

#include <utility>

#include "runner/cli/draft_model.h"
#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

void set_field(mote_chat* chat, mote_chat_field field, const Json& value) {
  const std::string text = value.is_null() ? "" : dump(value);
  check([&](mote_error* error) { return mote_chat_set(chat, field, text.data(), text.size(), error); });
}

ReplyStatistics statistics_of(mote_chat_turn* turn) {
  auto of_chat = sized<mote_chat_statistics>();
  auto of_generation = sized<mote_statistics>();
  check([&](mote_error* error) { return mote_chat_turn_statistics(turn, &of_chat, &of_generation, error); });
  ReplyStatistics result;
  result.prompt_tokens = of_chat.prompt_tokens;
  result.kept_tokens = of_chat.kept_tokens;
  result.forgotten_tokens = of_chat.forgotten_tokens;
  result.generated_tokens = of_generation.generated_tokens;
  result.prefill_seconds = of_generation.prefill_seconds;
  result.decode_seconds = of_generation.decode_seconds;
  result.time_to_first_token_seconds = of_generation.time_to_first_token_seconds;
  result.position = of_chat.position;
  result.context_length = of_chat.context_length;
  result.speculation = speculation_text(of_generation);
  return result;
}

}  // namespace

ModelResponder::ModelResponder(const std::string& path, const Options& options)
    : path_(path), model_(open_model(path, options)) {
  const mote_model_info info = info_of(model_);
  if (info.has_chat_template == 0) {
    throw InputError(path + ": has no chat template: use 'run' for models that only continue text");
  }
  if (info.has_tokenizer == 0) throw InputError(path + ": has no tokenizer, so it cannot take text");
  chat_template_ = take_string([&](char** text, size_t* text_bytes, mote_error* error) {
    return mote_model_chat_template(model_.get(), text, text_bytes, error);
  });
  session_ = open_session(model_, options);
}

void ModelResponder::use_draft_model(const std::string& path) {
  if (path == draft_model_) return;
  set_draft_model(session_, path);
  draft_model_ = path;
}

Reply ModelResponder::respond(const Conversation& conversation, const Settings& settings, const Show& show) {
  Reply reply;
  Turn turn;
  try {
    use_draft_model(settings.draft_model());
    turn = begin(conversation, settings);
    run(turn, show, reply);
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

ModelResponder::Turn ModelResponder::begin(const Conversation& conversation, const Settings& settings) const {
  mote_chat* handle = nullptr;
  check([&](mote_error* error) { return mote_chat_open(model_.get(), &handle, error); });
  const std::unique_ptr<mote_chat, Closer<mote_chat_close>> chat(handle);
  set_field(handle, MOTE_CHAT_MESSAGES, conversation.all_messages());
  set_field(handle, MOTE_CHAT_TOOLS, conversation.tools);
  set_field(handle, MOTE_CHAT_VARIABLES, conversation.variables);
  mote_chat_turn* turn = nullptr;
  auto error = sized<mote_error>();
  const mote_error_code code = mote_chat_reply(handle, session_.get(), settings.options().get(), &turn, &error);
  if (code == MOTE_ERROR_TEMPLATE)
    throw InputError(path_ + ": its chat template refuses the conversation: " + error.message);
  if (code != MOTE_OK) throw InputError(error.message);
  return Turn(turn);
}

void ModelResponder::run(const Turn& turn, const Show& show, Reply& reply) const {
  const CancelOnInterrupt cancel(session_.get());
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

void ModelResponder::validate(const Settings& settings) {
  const Options options = settings.options();
  check([&](mote_error* error) { return mote_options_check(options.get(), model_.get(), error); });
  use_draft_model(settings.draft_model());
}

bool ModelResponder::reads_variable(const std::string& name) const {
  for (size_t at = chat_template_.find(name); at != std::string::npos; at = chat_template_.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !is_word_character(chat_template_[at - 1]);
    if (begins && (end == chat_template_.size() || !is_word_character(chat_template_[end]))) return true;
  }
  return false;
}

int64_t ModelResponder::context_length() const {
  auto info = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session_.get(), &info, error); });
  return info.context_length;
}

}  // namespace mote::cli
