// The verb `chat`.
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

#include "runner/cli/chat/chat_loop.h"
#include "runner/cli/chat/model_responder.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/system.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/template_variables.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

constexpr int kStandardInput = 0;

struct ChatFlags {
  std::string file;
  std::optional<std::string> question;
  std::optional<std::string> system;
  std::string tools;
  std::vector<std::string> variables;
  std::string load;
  std::optional<std::string> history;
  bool no_thinking = false;
  bool no_history = false;
  bool statistics = false;
  ReplyFlags reply;
  OptionFlags session;  // and of the model
};

// What is given on the command line goes before what the file has.
ChatState first_state(const ChatFlags& flags, const GivenOptions& given) {
  ChatState state;
  GivenOptions options;
  if (!flags.load.empty()) {
    SavedConversation saved = load_conversation(flags.load);
    state.conversation = std::move(saved.conversation);
    options = std::move(saved.options);
  }
  for (const auto& [name, values] : given) options[name] = values;
  state.settings.assign(options);
  if (flags.system.has_value()) state.conversation.system = *flags.system;
  if (!flags.tools.empty()) state.conversation.tools = read_tools(flags.tools);
  const Json variables = template_variables(flags.variables);
  for (const auto& [name, value] : variables.items()) state.conversation.variables[name] = value;
  if (flags.no_thinking) state.conversation.variables["enable_thinking"] = false;
  return state;
}

std::unique_ptr<Input> open_input(const ChatFlags& flags, bool is_interactive) {
  if (!is_interactive) return make_plain_input(kStandardInput, false);
  History history(flags.no_history ? "" : flags.history.value_or(default_history_path()));
  std::unique_ptr<Input> editor = make_line_editor(std::move(history), ChatLoop::command_names());
  return editor != nullptr ? std::move(editor) : make_plain_input(kStandardInput, true);
}

int run(const ChatFlags& flags, const GivenOptions& given) {
  ChatState state = first_state(flags, given);
  ModelResponder responder(flags.file, flags.session.options());
  responder.validate(state.settings);
  const bool is_interactive = !flags.question.has_value() && is_input_terminal();
  Screen screen(stdout, stderr);
  if (is_interactive) {
    screen.note(flags.file + ", context of " + std::to_string(responder.context_length()) +
                " tokens. /help lists commands, Ctrl-C stops a reply, " + kEndKey + " leaves");
    if (const std::string choice = choice_text(describe(responder.model())); !choice.empty()) screen.note(choice);
  }
  const std::unique_ptr<Input> input = open_input(flags, is_interactive);
  const Interrupts interrupts(flags.question.has_value() ? Interrupts::Second::kEndsTheProcess
                                                         : Interrupts::Second::kIsNoted);
  ChatLoop chat(responder, *input, screen, std::move(state), {is_interactive, flags.statistics});
  return flags.question.has_value() ? chat.ask(*flags.question) : chat.run();
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& verb = *app.add_subcommand("chat", "Talk over several turns with the file's chat template");
  verb.footer("In the chat:\n" + ChatLoop::command_help() +
              "\nExamples:\n"
              "  mote chat model.mote \"Why is the sky blue?\"\n"
              "  mote chat model.mote --system \"You are a pirate.\" --temperature 0.8\n"
              "  printf 'Hello\\nAnd again\\n' | mote chat model.mote --greedy\n");
  verb.add_option("model", flags->file, "The .mote file")->required();
  verb.add_option("question", flags->question, "Answer this and leave; without it, talk");
  verb.add_option("--system", flags->system, "System message");
  verb.add_option("--tools", flags->tools, "JSON file with the list of the tools that the model may call");
  verb.add_option("--load", flags->load, "Go on with a conversation that /save wrote, or a JSON list of messages");
  verb.add_option("--set", flags->variables, "A variable of the template, NAME=VALUE (JSON or text); repeatable");
  verb.add_flag("--no-thinking", flags->no_thinking,
                "The same as --set enable_thinking=false: no reasoning, where the model can do without");
  flags->reply.add_to(verb);
  flags->session.add_to(verb, MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL, {"name"});
  CLI::Option* history = verb.add_option("--history", flags->history,
                                         "File that keeps what is entered (default: " + default_history_path() + ")");
  verb.add_flag("--no-history", flags->no_history, "Keep nothing of what is entered")->excludes(history);
  verb.add_flag("--stats", flags->statistics, "Print a line of statistics on standard error after each reply");
  verb.callback([flags, &action] { action = [flags] { return run(*flags, flags->reply.given()); }; });
}

}  // namespace mote::cli
