#include "runner/cli/chat/model_responder.h"

#include <utility>

#include "runner/cli/chat/model_reply.h"
#include "runner/cli/draft_model.h"
#include "runner/cli/target_choice.h"

namespace mote::cli {
namespace {

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
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
  try {
    use_draft_model(settings.draft_model());
    return reply_of_model(model_, path_, session_, conversation, settings.options(), show);
  } catch (const std::exception& error) {
    Reply reply;
    reply.error = error.what();
    return reply;
  }
}

void ModelResponder::validate(const Settings& settings) {
  const Options options = settings.options();
  check([&](mote_error* error) { return mote_options_check(options.get(), model_.get(), error); });
  use_draft_model(settings.draft_model());
}

std::string ModelResponder::move_to(const std::string& backend) {
  if (!backend.empty())
    check([&](mote_error* error) { return mote_session_move_to(session_.get(), backend.c_str(), error); });
  return place_text(session_);
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
