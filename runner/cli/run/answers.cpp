#include "runner/cli/run/answers.h"

#include <vector>

#include "runner/cli/chat/model_reply.h"
#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

// The ids of a text that the session goes on with.
std::vector<int32_t> prompt_ids(const Session& session, const std::string& text) {
  return all_ids(most_ids(text.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
    check([&](mote_error* error) {
      return mote_session_tokenize(session.get(), text.data(), text.size(), 1, ids, capacity, count, error);
    });
  });
}

void add_context(const Session& session, ReplyStatistics& statistics) {
  auto info = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session.get(), &info, error); });
  statistics.position = info.position;
  statistics.context_length = info.context_length;
}

std::string text_of(const Json& message, const char* field) {
  const auto found = message.find(field);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Answer continue_text(const Session& session, const std::string& prompt, const Options& options, Screen* screen) {
  const std::vector<int32_t> ids = prompt_ids(session, prompt);
  if (ids.empty() && mote_session_position(session.get()) == 0)
    throw InputError("the prompt is empty: give some text, or pipe it in");
  mote_generation* handle = nullptr;
  check([&](mote_error* error) {
    return mote_generation_begin(session.get(), ids.data(), ids.size(), options.get(), &handle, error);
  });
  const Generation generation(handle);
  const CancelOnInterrupt cancel(session.get());
  Answer answer;
  auto piece = sized<mote_piece>();
  do {
    check([&](mote_error* error) { return mote_generation_next(generation.get(), &piece, error); });
    if (piece.id >= 0) answer.last_id = piece.id;
    const std::string_view text(piece.text, piece.text_bytes);
    answer.text += text;
    if (screen == nullptr) continue;
    screen->show_text(text);
    if (screen->is_gone()) mote_generation_cancel(generation.get());
  } while (piece.finished == 0);
  auto statistics = sized<mote_statistics>();
  check([&](mote_error* error) { return mote_generation_statistics(generation.get(), &statistics, error); });
  answer.statistics = reply_statistics(statistics);
  answer.statistics.finish_reason = piece.finish_reason;
  add_context(session, answer.statistics);
  return answer;
}

Answer answer_question(const Model& model, const std::string& path, const Session& session, Conversation conversation,
                       const std::string& question, const Options& options, Screen* screen) {
  if (question.empty()) throw InputError("the question is empty: give some text, or pipe it in");
  conversation.add_user(question);
  const auto show = [&](const mote_chat_event& event) {
    if (screen == nullptr) return;
    screen->show(event);
    if (screen->is_gone()) mote_session_cancel(session.get());
  };
  const Reply reply = reply_of_model(model, path, session, conversation, options, show);
  if (!reply.error.empty()) throw InputError(reply.error);
  Answer answer;
  answer.text = text_of(reply.message, "content");
  answer.reasoning = text_of(reply.message, "reasoning_content");
  if (reply.message.contains("tool_calls")) answer.tool_calls = reply.message["tool_calls"];
  answer.statistics = reply.statistics;
  return answer;
}

std::string answer_json(const std::string& prompt, const Answer& answer) {
  const ReplyStatistics& s = answer.statistics;
  const char* reason = mote_finish_reason_name(s.finish_reason);
  Json json{{"prompt", prompt}, {"text", answer.text}};
  if (!answer.reasoning.empty()) json["reasoning"] = answer.reasoning;
  if (!answer.tool_calls.is_null()) json["tool_calls"] = answer.tool_calls;
  json["finish_reason"] = reason == nullptr ? Json(nullptr) : Json(reason);
  json["prompt_tokens"] = s.prompt_tokens;
  json["kept_tokens"] = s.kept_tokens;
  json["generated_tokens"] = s.generated_tokens;
  json["prefill_seconds"] = s.prefill_seconds;
  json["decode_seconds"] = s.decode_seconds;
  json["time_to_first_token_seconds"] = s.time_to_first_token_seconds;
  json["peak_rss_bytes"] = s.peak_rss_bytes;
  json["peak_private_bytes"] = s.peak_private_bytes;
  return dump(json);
}

}  // namespace mote::cli
