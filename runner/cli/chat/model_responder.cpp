#include "runner/cli/chat/model_responder.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Prompt = std::unique_ptr<mote_prompt, Closer<mote_prompt_close>>;
using ReplyReader = std::unique_ptr<mote_reply, Closer<mote_reply_close>>;

constexpr size_t kMaxPromptTail = 4096;  // what a reply is recognised by

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

std::string tail(const std::string& text) {
  if (text.size() <= kMaxPromptTail) return text;
  size_t begin = text.size() - kMaxPromptTail;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return text.substr(begin);
}

// `format`: nullptr: as the model writes.
ReplyReader open_reply(const Model& model, const std::string& prompt, const Json& tools, const char* format) {
  const std::string tools_text = tools.is_null() ? "" : dump(tools);
  auto options = sized<mote_reply_options>();
  options.prompt = prompt.c_str();
  options.format = format;
  options.tools = tools_text.empty() ? nullptr : tools_text.c_str();
  mote_reply* reply = nullptr;
  check([&](mote_error* error) { return mote_model_reply_open(model.get(), &options, &reply, error); });
  return ReplyReader(reply);
}

void show_events(const ReplyReader& reader, const std::function<void(const mote_reply_event&)>& show) {
  auto event = sized<mote_reply_event>();
  while (true) {
    check([&](mote_error* error) { return mote_reply_next_event(reader.get(), &event, error); });
    if (event.kind == MOTE_REPLY_NONE) return;
    show(event);
  }
}

}  // namespace

struct ModelResponder::Turn {
  Clock::time_point start = Clock::now();
  std::vector<int32_t> ids;
  std::string prompt;
  ReplyReader reader;
  ReplyOptions options;
  Generation generation;
  Reply reply;
};

ModelResponder::ModelResponder(const std::string& path, const SessionFlags& flags)
    : path_(path), flags_(flags), keeps_system_(flags.num_keep < 0), model_(flags.load(path)) {
  const mote_model_info info = info_of(model_);
  if (info.has_chat_template == 0) {
    throw InputError(path + ": has no chat template: use 'run' for models that only continue text");
  }
  if (info.has_tokenizer == 0) throw InputError(path + ": has no tokenizer, so it cannot take text");
  chat_template_ =
      take_string([&](char** text, mote_error* error) { return mote_model_chat_template(model_.get(), text, error); });
  const ReplyReader reader = open_reply(model_, "", Json(), nullptr);
  const char* format = nullptr;
  check([&](mote_error* error) { return mote_reply_format(reader.get(), &format, error); });
  has_marks_ = std::strcmp(format, "text") != 0;
  open_session();
}

void ModelResponder::open_session() {
  session_ = flags_.open(model_);
  draft_model_.clear();
}

void ModelResponder::use_draft_model(const std::string& path) {
  if (path == draft_model_) return;
  set_draft_model(session_, path);
  draft_model_ = path;
}

// The grammar is compiled once for as long as it stays the same.
void ModelResponder::resolve(const Settings& settings, ReplyOptions& options) {
  settings.resolve(model_, options);
  if (!options.grammar.has_value()) return;
  if (options.grammar != grammar_source_) {
    grammar_ = options.grammar->compile(model_);
    grammar_source_ = options.grammar;
  }
  options.options.grammar = grammar_.get();
}

Reply ModelResponder::respond(const Conversation& conversation, const Settings& settings, const Show& show) {
  Turn turn;
  try {
    resolve(settings, turn.options);
    prepare(conversation, turn);
    const CancelOnInterrupt cancel(session_.get());
    if (read_prompt(turn)) generate(turn, show);
    measure(turn);
  } catch (const std::exception& error) { turn.reply.error = error.what(); }
  if (turn.generation != nullptr) {  // what was written stays, also of a reply that failed
    const std::string message =
        take_string([&](char** text, mote_error* error) { return mote_reply_message(turn.reader.get(), text, error); });
    turn.reply.message = Json::parse(message);
  }
  return std::move(turn.reply);
}

void ModelResponder::validate(const Settings& settings) {
  ReplyOptions options;
  resolve(settings, options);
  use_draft_model(options.draft_model);
}

bool ModelResponder::reads_variable(const std::string& name) const {
  for (size_t at = chat_template_.find(name); at != std::string::npos; at = chat_template_.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !is_word_character(chat_template_[at - 1]);
    if (begins && (end == chat_template_.size() || !is_word_character(chat_template_[end]))) return true;
  }
  return false;
}

void ModelResponder::prepare(const Conversation& conversation, Turn& turn) {
  const std::vector<int32_t> ids = render(conversation, true, &turn.prompt);
  if (ids.empty()) throw InputError(path_ + ": its chat template makes an empty prompt of the conversation");
  turn.ids = fitting(conversation, ids);
  turn.reply.statistics.prompt_tokens = static_cast<int64_t>(turn.ids.size());
  use_draft_model(turn.options.draft_model);
  const bool is_constrained = turn.options.grammar.has_value();  // all of it is content
  turn.reader = open_reply(model_, tail(turn.prompt), conversation.tools, is_constrained ? "text" : nullptr);
  turn.options.options.skip_special_tokens = is_constrained || !has_marks_;
  turn.options.options.skip_eos = 1;
}

// Opens the session again where another number of first tokens is never to be forgotten.
std::vector<int32_t> ModelResponder::fitting(const Conversation& conversation, const std::vector<int32_t>& ids) {
  if (!flags_.shifts()) return ids;
  const int64_t length = context_length();
  if (keeps_system_) {
    const int64_t keep = std::min(system_tokens(conversation, ids), length / 2);
    if (keep != flags_.num_keep) {
      flags_.num_keep = keep;
      open_session();
    }
  }
  return window_.fit(ids, length, flags_.num_keep);
}

// False: it was stopped.
bool ModelResponder::read_prompt(Turn& turn) {
  ReplyStatistics& statistics = turn.reply.statistics;
  auto error = sized<mote_error>();
  const auto set_tokens = [&] {
    return mote_session_set_tokens(session_.get(), turn.ids.data(), turn.ids.size(), &statistics.kept_tokens, &error);
  };
  int32_t code = set_tokens();
  // A cancel that came too late for the last reply.
  if (code == MOTE_ERROR_CANCELLED && !Interrupts::happened()) code = set_tokens();
  if (code == MOTE_ERROR_CANCELLED) {
    turn.reply.is_stopped = true;
    return false;
  }
  if (code != MOTE_OK && code != MOTE_ERROR_CONTEXT_FULL) {  // a recurrent state may be lost
    check([&](mote_error* failed) { return mote_session_reset(session_.get(), failed); });
    code = set_tokens();
  }
  if (code != MOTE_OK) throw InputError(error.message);
  statistics.prefill_seconds = seconds_since(turn.start);
  return true;
}

void ModelResponder::generate(Turn& turn, const Show& show) {
  mote_generation* handle = nullptr;
  check([&](mote_error* error) {
    return mote_generation_begin(session_.get(), nullptr, 0, &turn.options.options, &handle, error);
  });
  turn.generation.reset(handle);
  const int64_t forgotten = session_info().forgotten_tokens;
  auto piece = sized<mote_piece>();
  bool is_first = true;
  do {
    check([&](mote_error* error) { return mote_generation_next(handle, &piece, error); });
    if (is_first) turn.reply.statistics.time_to_first_token_seconds = seconds_since(turn.start);
    is_first = false;
    check([&](mote_error* error) { return mote_reply_push(turn.reader.get(), piece.text, piece.text_bytes, error); });
    show_events(turn.reader, show);
  } while (piece.finished == 0 && !Interrupts::happened());
  check([&](mote_error* error) { return mote_reply_finish(turn.reader.get(), error); });
  show_events(turn.reader, show);
  window_.forgot(session_info().forgotten_tokens - forgotten);
  turn.reply.is_whole = piece.finished != 0 && piece.finish_reason != MOTE_FINISH_CANCELLED;
  turn.reply.is_stopped = !turn.reply.is_whole;
}

void ModelResponder::measure(Turn& turn) {
  ReplyStatistics& statistics = turn.reply.statistics;
  const mote_session_info info = session_info();
  statistics.position = info.position;
  statistics.context_length = info.context_length;
  statistics.forgotten_tokens = window_.forgotten();
  if (turn.generation == nullptr) return;
  auto of_generation = sized<mote_statistics>();
  check([&](mote_error* error) { return mote_generation_statistics(turn.generation.get(), &of_generation, error); });
  statistics.generated_tokens = of_generation.generated_tokens;
  statistics.decode_seconds = of_generation.decode_seconds;
  statistics.finish_reason = of_generation.finish_reason;
  statistics.speculation = speculation_text(of_generation);
}

std::vector<int32_t> ModelResponder::render(const Conversation& conversation, bool add_generation_prompt,
                                            std::string* text) const {
  const std::string messages = conversation.messages_json();
  const std::string tools = conversation.tools.is_null() ? "" : dump(conversation.tools);
  const std::string variables = dump(conversation.variables);
  auto given = sized<mote_conversation>();
  given.messages = messages.c_str();
  given.tools = tools.empty() ? nullptr : tools.c_str();
  given.variables = variables.c_str();
  given.add_generation_prompt = add_generation_prompt;
  auto error = sized<mote_error>();
  mote_prompt* handle = nullptr;
  const int32_t code = mote_model_render(model_.get(), &given, &handle, &error);
  const Prompt prompt(handle);
  if (code == MOTE_ERROR_TEMPLATE)
    throw InputError(path_ + ": its chat template refuses the conversation: " + error.message);
  if (code != MOTE_OK) throw InputError(error.message);
  if (text != nullptr) {
    const char* bytes = nullptr;
    size_t count = 0;
    check([&](mote_error* failed) { return mote_prompt_text(prompt.get(), &bytes, &count, failed); });
    text->assign(bytes, count);
  }
  return prompt_ids(model_, prompt.get());
}

// How many tokens of the prompt are those of the system message and the tools.
int64_t ModelResponder::system_tokens(const Conversation& conversation, const std::vector<int32_t>& ids) const {
  Conversation opening = conversation;
  opening.messages = Json::array();
  try {
    const std::vector<int32_t> own = render(opening, false, nullptr);
    const size_t count = std::min(own.size(), ids.size());
    return std::mismatch(own.begin(), own.begin() + static_cast<ptrdiff_t>(count), ids.begin()).first - own.begin();
  } catch (const InputError&) {
    return 0;  // the template wants a message
  }
}

mote_session_info ModelResponder::session_info() const {
  auto info = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session_.get(), &info, error); });
  return info;
}

}  // namespace mote::cli
