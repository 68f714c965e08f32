#include "runner/cli/chat/chat_loop.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/closest.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/template_variables.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {

namespace {

constexpr size_t kShownCharacters = 60;

// The beginning of a text, in one line.
std::string beginning(const std::string& text) {
  std::string shown = text;
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  if (shown.size() <= kShownCharacters) return shown;
  size_t end = kShownCharacters;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
  return shown.substr(0, end) + "...";
}

bool is_empty(const Json& message) { return message.size() == 2 && message.value("content", "").empty(); }

}  // namespace

std::span<const ChatLoop::Row> ChatLoop::rows() {
  static constexpr std::array<Row, 13> kRows = {{
      {"help", "", "shows this", &ChatLoop::help},
      {"exit", "", "leaves, as Ctrl-D does; /quit is the same", &ChatLoop::leave},
      {"quit", "", "", &ChatLoop::leave},
      {"reset", "", "forgets the conversation, not the system message", &ChatLoop::reset},
      {"undo", "", "takes back your last message and its reply", &ChatLoop::undo},
      {"retry", "", "gives another reply to your last message", &ChatLoop::retry},
      {"system", "[TEXT]", "changes the system message, without TEXT shows it; \"\": none", &ChatLoop::system},
      {"set", "[NAME VALUE]", "changes an option of replies, default: back to the model's; without a name lists all",
       &ChatLoop::set},
      {"save", "FILE", "writes the conversation to a JSON file", &ChatLoop::save},
      {"load", "FILE", "goes on with a saved conversation", &ChatLoop::load},
      {"stats", "", "shows tokens and speed of the last reply", &ChatLoop::stats},
      {"backend", "[NAME]", "goes on in another of the file's backends, such as cpu; without NAME shows it",
       &ChatLoop::backend},
      {"result", "TEXT", "answers the tool call that waits", &ChatLoop::result},
  }};
  return kRows;
}

std::vector<std::string> ChatLoop::command_names() {
  std::vector<std::string> names;
  for (const Row& row : rows()) names.push_back(std::string("/") + row.name);
  return names;
}

std::string ChatLoop::command_help() {
  std::string text;
  for (const Row& row : rows()) {
    if (*row.help == '\0') continue;
    std::string name = std::string("  /") + row.name + " " + row.argument;
    name.resize(std::max<size_t>(name.size() + 1, 22), ' ');
    text += name + row.help + "\n";
  }
  return text +
         "A line that ends in \\ goes on in the next; lines between \"\"\" and \"\"\" are one message.\n"
         "Ctrl-C stops a reply, what came of it stays; at the prompt it clears the line.";
}

ChatLoop::ChatLoop(Responder& responder, Input& input, Screen& screen, ChatState state, const ChatOptions& options)
    : responder_(responder), entries_(input), screen_(screen), state_(std::move(state)), options_(options) {}

int ChatLoop::run() {
  while (!has_left_ && !screen_.is_gone()) {
    Interrupts::clear();
    const Entry entry = entries_.read();
    if (entry.event == InputEvent::kEnd) break;
    if (entry.event == InputEvent::kInterrupt) {
      if (!options_.is_interactive) return kExitInterrupted;
      continue;
    }
    Interrupts::clear();
    const Command command = entry.is_block ? Command{} : parse_command(entry.text);
    if (!command.name.empty()) {
      obey(command);
    } else if (!trimmed(entry.text).empty()) {
      say(entry.text);
    }
  }
  return has_failed_ && !options_.is_interactive ? kExitBadInput : 0;
}

int ChatLoop::ask(const std::string& text) {
  if (trimmed(text).empty()) throw InputError("the question is empty: give some text");
  say(text);
  return has_failed_ ? kExitBadInput : Interrupts::happened() ? kExitInterrupted : 0;
}

void ChatLoop::say(const std::string& text) {
  const ChatState before = state_;
  state_.conversation.add_user(text);
  num_retries_ = 0;
  answer(before);
}

void ChatLoop::answer(const ChatState& before) {
  const auto show = [this](const mote_chat_event& event) { screen_.show(event); };
  Settings settings = state_.settings;
  settings.advance_seed(num_retries_);
  finish(responder_.respond(state_.conversation, settings, show), before);
}

// What came of a reply counts; a reply of which nothing came leaves the conversation as it was before.
void ChatLoop::finish(Reply reply, const ChatState& before) {
  const bool has_message = !reply.message.is_null() && (reply.is_whole || !is_empty(reply.message));
  screen_.end_reply(reply.is_stopped);
  if (has_message) {
    state_.conversation.add_reply(std::move(reply.message));
  } else {
    state_ = before;
  }
  if (!reply.error.empty()) {
    screen_.warn(reply.error + ". /reset starts anew, /undo goes back one message");
    has_failed_ = true;
  }
  if (reply.statistics.generated_tokens > 0) {
    statistics_ = reply.statistics;
    has_statistics_ = true;
  }
  const std::string cut_off = cut_off_text(reply.statistics);
  if (!cut_off.empty()) screen_.note(cut_off);
  if (!cut_off.empty() && reply.statistics.position >= reply.statistics.context_length)
    screen_.note("/undo and /reset make room, --overflow shift forgets the oldest");
  if (options_.shows_statistics && has_message) show_statistics();
  show_open_call();
}

void ChatLoop::show_open_call() const {
  const Json open = state_.conversation.open_calls();
  if (!open.empty()) screen_.note(open[0]["function"]["name"].get<std::string>() + " waits for /result TEXT");
}

void ChatLoop::obey(const Command& command) {
  const std::span<const Row> all = rows();
  const auto row = std::find_if(all.begin(), all.end(), [&](const Row& r) { return command.name == r.name; });
  if (row == all.end()) {
    const std::vector<std::string> names = command_names();
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string meant = did_you_mean("/" + command.name, views);
    screen_.warn("there is no command '/" + command.name + "'" +
                 (meant.empty() ? ": /help lists those that there are" : meant));
    return;
  }
  const bool wants_nothing = *row->argument == '\0' && !command.argument.empty();
  const bool wants_something = *row->argument != '\0' && *row->argument != '[' && command.argument.empty();
  if (wants_nothing)
    return screen_.warn("/" + command.name + " takes nothing behind it, but there is '" + beginning(command.argument) +
                        "'");
  if (wants_something) return screen_.warn("/" + command.name + " needs " + row->argument);
  try {
    (this->*row->run)(command.argument);
  } catch (const InputError& error) { screen_.warn(error.what()); }
}

void ChatLoop::help(const std::string&) { screen_.message(command_help()); }

void ChatLoop::leave(const std::string&) { has_left_ = true; }

void ChatLoop::reset(const std::string&) {
  state_.conversation.messages = Json::array();
  if (options_.is_interactive) screen_.note("the conversation is forgotten");
}

void ChatLoop::undo(const std::string&) {
  if (state_.conversation.messages.empty()) return screen_.warn("there is nothing to take back");
  const std::string text = state_.conversation.undo();
  screen_.note(text.empty() ? "there is no message of yours to take back" : "took back: " + beginning(text));
}

void ChatLoop::retry(const std::string&) {
  const ChatState before = state_;
  if (!state_.conversation.prepare_retry()) return screen_.warn("there is no message to reply to");
  ++num_retries_;
  answer(before);
}

void ChatLoop::system(const std::string& text) {
  std::string& message = state_.conversation.system;
  if (text.empty())
    return screen_.message(message.empty() ? dim("no system message", stderr) : without_controls(message));
  message = text == "\"\"" ? "" : text;
}

void ChatLoop::set(const std::string& text) {
  if (text.empty()) return list_settings();
  const size_t end = std::min(text.find_first_of(" \t="), text.size());
  const std::string name = text.substr(0, end);
  const std::string value = end < text.size() ? trimmed(text.substr(end + 1)) : "";
  if (Settings::has(name)) {
    if (value.empty()) return screen_.warn("/set " + name + " needs a value, or default");
    Settings changed = state_.settings;
    changed.set(name, value);
    responder_.validate(changed);
    state_.settings = changed;
    return;
  }
  if (!responder_.reads_variable(name)) { throw InputError(Settings::refusal(name)); }
  if (value.empty()) return screen_.warn("/set " + name + " needs a value, or default");
  if (value == "default") {
    state_.conversation.variables.erase(name);
  } else {
    state_.conversation.variables[name] = template_value(value);
  }
}

void ChatLoop::list_settings() const {
  std::string text;
  const auto add = [&](std::string name, const std::string& value, bool is_given) {
    name.resize(std::max<size_t>(name.size() + 1, 22), ' ');
    text += (text.empty() ? "  " : "\n  ") + name + (is_given ? bold(value, stderr) : dim(value, stderr));
  };
  for (const Settings::Line& line : responder_.lines(state_.settings)) add(line.name, line.value, line.is_given);
  for (const auto& [name, value] : state_.conversation.variables.items()) add(name, dump(value), true);
  screen_.message(text);
}

void ChatLoop::save(const std::string& path) {
  save_conversation(path, state_.conversation, state_.settings.given());
  screen_.note("saved " + std::to_string(state_.conversation.messages.size()) + " messages to " + path);
}

void ChatLoop::load(const std::string& path) {
  SavedConversation saved = load_conversation(path);
  ChatState loaded;
  loaded.conversation = std::move(saved.conversation);
  try {
    loaded.settings.assign(saved.options);
    responder_.validate(loaded.settings);
  } catch (const InputError& error) { throw InputError(path + ": settings: " + error.what()); }
  state_ = std::move(loaded);
  screen_.note("loaded " + std::to_string(state_.conversation.messages.size()) + " messages from " + path);
  show_open_call();
}

void ChatLoop::stats(const std::string&) {
  if (!has_statistics_) return screen_.warn("there was no reply yet");
  show_statistics();
}

void ChatLoop::backend(const std::string& name) { screen_.message("runs on " + responder_.move_to(name)); }

void ChatLoop::show_statistics() const {
  for (const std::string& line : statistics_lines(statistics_)) screen_.note(line);
}

void ChatLoop::result(const std::string& text) {
  const ChatState before = state_;
  if (!state_.conversation.add_result(text)) return screen_.warn("no tool call waits for a result");
  num_retries_ = 0;
  if (state_.conversation.open_calls().empty()) return answer(before);
  show_open_call();
}

}  // namespace mote::cli
