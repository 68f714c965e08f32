// The verb `run`.
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <span>

#include "base/atomic_file.h"
#include "runner/cli/chat/conversation_file.h"
#include "runner/cli/draft_model.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/kernels.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/run/answers.h"
#include "runner/cli/run/prompts.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/template_variables.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  mote run model.mote \"Why is the sky blue?\"\n"
    "  mote run model.mote \"Summarise this.\" --file notes.txt --system \"You are brief.\"\n"
    "  mote run model.mote --raw \"Once upon a time\" --temperature 0.8 --seed 1 -n 64\n"
    "  mote run model.mote \"A person as JSON\" --json-schema person.json\n"
    "  cat questions.txt | mote run model.mote - --json\n";

struct RunFlags {
  std::string file;
  PromptFlags prompts;
  bool raw = false;
  std::optional<std::string> system;
  std::string tools;
  std::vector<std::string> variables;
  OptionFlags options;
  std::string draft_model;
  bool json = false;
  bool quiet = false;
  bool show_statistics = true;
  bool kernels = false;
  std::string profile;
  std::string load_session;
  std::string save_session;
};

// A session from which another run goes on: all of the text that was written, also its last token, which nothing has
// computed yet.
void save_session(const Session& session, const std::string& path, const Answer& answer) {
  const mote_finish_reason reason = answer.statistics.finish_reason;
  const bool is_text = reason == MOTE_FINISH_LENGTH || reason == MOTE_FINISH_TIME;
  if (is_text && answer.last_id >= 0 && answer.statistics.position < answer.statistics.context_length) {
    check([&](mote_error* error) { return mote_session_append(session.get(), &answer.last_id, 1, error); });
  }
  check([&](mote_error* error) { return mote_session_save(session.get(), path.c_str(), error); });
}

// A Chrome trace of the run. The file is opened before anything is generated, so that a bad path costs nothing.
class Profile {
 public:
  Profile(const Session& session, const std::string& path) : session_(session) {
    if (path.empty()) return;
    Result<AtomicFile> file = AtomicFile::create(path, AtomicFile::Access::kShared);
    require(file.status());
    file_.emplace(*std::move(file));
    check([&](mote_error* error) { return mote_session_start_profile(session_.get(), error); });
  }

  void write() {
    if (!file_.has_value()) return;
    const std::string trace = take_string(
        [&](char** text, mote_error* error) { return mote_session_stop_profile(session_.get(), text, error); });
    require(file_->write(std::as_bytes(std::span(trace))));
    require(file_->commit());
  }

 private:
  static void require(const Status& status) {
    if (!status.ok()) throw InputError("--profile " + status.message());
  }

  const Session& session_;
  std::optional<AtomicFile> file_;
};

class Runner {
 public:
  explicit Runner(const RunFlags& flags)
      : flags_(flags), options_(flags.options.options()), model_(open_model(flags.file, options_)) {
    const mote_model_info info = info_of(model_);
    if (info.has_tokenizer == 0) {
      throw InputError(flags.file +
                       " has no tokenizer, so it cannot take a prompt as text; use Python's Session with token ids");
    }
    asks_ = !flags.raw && flags.load_session.empty() && info.has_chat_template != 0;
    const bool wants_template = flags.system.has_value() || !flags.tools.empty() || !flags.variables.empty();
    if (!asks_ && wants_template) {
      const std::string why = flags.raw                     ? "--raw continues text as it is"
                              : !flags.load_session.empty() ? "--load-session goes on with a text"
                                                            : flags.file + " has no chat template";
      throw InputError(why + ", so --system, --tools and --set have no place");
    }
    if (flags.system.has_value()) conversation_.system = *flags.system;
    if (!flags.tools.empty()) conversation_.tools = read_tools(flags.tools);
    conversation_.variables = template_variables(flags.variables);
    prompts_ =
        is_continuation() && flags.prompts.words.empty() && flags.prompts.prompts.empty() && flags.prompts.files.empty()
            ? std::vector<std::string>{""}
            : read_prompts(flags.prompts);
    if (prompts_.size() > 1 && (is_continuation() || !flags.save_session.empty()))
      throw InputError("--load-session and --save-session take one prompt, but there are " +
                       std::to_string(prompts_.size()));
    session_ = open_session(model_, options_);
    if (!flags.draft_model.empty()) set_draft_model(session_, flags.draft_model);
    if (is_continuation())
      check([&](mote_error* error) { return mote_session_restore(session_.get(), flags.load_session.c_str(), error); });
  }

  // Returns the exit status.
  int run() {
    Screen screen(stdout, stderr, asks_);
    Profile profile(session_, flags_.profile);
    const Interrupts interrupts(Interrupts::Second::kEndsTheProcess);
    Answer answer;
    for (const std::string& prompt : prompts_) {
      answer = give(prompt, screen);
      if (screen.is_gone()) break;  // the end of the process says why
      show_end(prompt, answer, screen, &prompt == &prompts_.back());
      if (answer.statistics.finish_reason == MOTE_FINISH_CANCELLED) break;
    }
    profile.write();
    if (!flags_.save_session.empty()) save_session(session_, flags_.save_session, answer);
    if (screen.is_gone()) return kExitOutput;
    return answer.statistics.finish_reason == MOTE_FINISH_CANCELLED ? kExitInterrupted : 0;
  }

 private:
  bool is_continuation() const { return !flags_.load_session.empty(); }

  Answer give(const std::string& prompt, Screen& screen) {
    Screen* shown = flags_.json ? nullptr : &screen;
    if (asks_) return answer_question(model_, flags_.file, session_, conversation_, prompt, options_, shown);
    if (!is_continuation()) check([&](mote_error* error) { return mote_session_reset(session_.get(), error); });
    return continue_text(session_, prompt, options_, shown);
  }

  void show_end(const std::string& prompt, const Answer& answer, Screen& screen, bool is_last) const {
    if (flags_.json) {
      std::printf("%s\n", answer_json(prompt, answer).c_str());
      std::fflush(stdout);
      return;
    }
    screen.end_reply(answer.statistics.finish_reason == MOTE_FINISH_CANCELLED && flags_.quiet);
    if (!is_last) screen.blank_line();
    if (flags_.quiet) return;
    const std::string cut_off = cut_off_text(answer.statistics);
    if (!cut_off.empty()) screen.warn(cut_off);
    if (!flags_.show_statistics) return;
    for (const std::string& line : statistics_lines(answer.statistics)) screen.note(line);
    if (const std::string choice = choice_text(describe(model_)); is_last && !choice.empty()) screen.note(choice);
    if (const std::string moved = moved_text(session_); is_last && !moved.empty()) screen.note(moved);
  }

  const RunFlags& flags_;
  const Options options_;
  const Model model_;
  bool asks_ = false;  // with the chat template
  Conversation conversation_;
  std::vector<std::string> prompts_;
  Session session_;
};

int run(const RunFlags& flags) {
  if (flags.kernels) {
    print_kernels(flags.file);
    return 0;
  }
  if (flags.file.empty()) throw InputError("no .mote file was given: mote run model.mote \"question\"");
  return Runner(flags).run();
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& verb = *app.add_subcommand("run", "Answer a question or continue a text, and stream it");
  verb.footer(kExamples);
  verb.add_option("model", flags->file, "The .mote file");
  verb.add_option("prompt", flags->prompts.words,
                  "Questions, or texts to continue, one answer each; - or nothing reads standard input");
  verb.add_option("-p,--prompt", flags->prompts.prompts, "A further prompt; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_option("-f,--file", flags->prompts.files,
                  "Put the contents of this file behind each prompt; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_flag("--raw", flags->raw, "Continue the text as it is, without the file's chat template");
  verb.add_option("--system", flags->system, "System message");
  verb.add_option("--tools", flags->tools, "JSON file with the list of the tools that the model may call");
  verb.add_option("--set", flags->variables, "A variable of the template, NAME=VALUE (JSON or text); repeatable")
      ->take_all()
      ->allow_extra_args(false);
  flags->options.add_to(verb, MOTE_SCOPE_GENERATION | MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL,
                        {"logprobs", "top_logprobs", "skip_eos", "name"});
  add_draft_model(verb, flags->draft_model);
  verb.add_option("--load-session", flags->load_session,
                  "Go on from a session that --save-session wrote; the prompt comes behind its text, as with --raw");
  verb.add_option("--save-session", flags->save_session, "Write tokens and caches to this file at the end");
  verb.add_option("--profile", flags->profile,
                  "Measure every instruction and write a trace for chrome://tracing to this file")
      ->type_name("trace.json");
  verb.add_flag("--kernels", flags->kernels,
                "Run nothing: list the kernels chosen for the file, without a file all there are");
  verb.add_flag("--json", flags->json, "Print a line of JSON for each prompt: text, reason for the end, statistics");
  CLI::Option* quiet = verb.add_flag("--quiet", flags->quiet, "Print no statistics");
  verb.add_flag("--stats", flags->show_statistics,
                "Print statistics on standard error, and which backend ran (the default)")
      ->excludes(quiet);
  verb.callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace mote::cli
