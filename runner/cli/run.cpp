#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "runner/cli/draft_model.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/kernels.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  mote-runner run model.mote \"def fibonacci(n):\" --max-new-tokens 64 --greedy\n"
    "  mote-runner run model.mote \"Once upon a time\" --temperature 0.8 --top-p 0.95 --seed 1\n"
    "  mote-runner run model.mote \"A person as JSON: \" --json-schema person.json\n"
    "  cat prompt.txt | mote-runner run model.mote - --stop '###'\n";

struct RunFlags {
  std::string file;
  std::optional<std::string> prompt;
  OptionFlags options;
  std::string draft_model;
  bool quiet = false;
  bool show_statistics = true;
  bool kernels = false;
  std::string profile;
  std::string load_session;
  std::string save_session;
};

// Without a prompt a loaded session just goes on.
std::string read_prompt(const RunFlags& flags) {
  if (!flags.prompt.has_value() && !flags.load_session.empty()) return "";
  const std::string prompt = flags.prompt.value_or("-");
  if (prompt != "-") return prompt;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// The ids of a text that the session goes on with.
std::vector<int32_t> prompt_ids(const Session& session, const std::string& text) {
  return all_ids(most_ids(text.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
    check([&](mote_error* error) {
      return mote_session_tokenize(session.get(), text.data(), text.size(), 1, ids, capacity, count, error);
    });
  });
}

void print_statistics(const Model& model, const Generation& generation) {
  auto statistics = sized<mote_statistics>();
  check([&](mote_error* error) { return mote_generation_statistics(generation.get(), &statistics, error); });
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0.0 ? number_text(static_cast<double>(tokens) / seconds) + " tok/s" : std::string("-");
  };
  const char* name = mote_finish_reason_name(statistics.finish_reason);
  std::string reason = name == nullptr                               ? "stopped"
                       : statistics.finish_reason == MOTE_FINISH_EOS ? "end of sequence"
                                                                     : name;
  std::replace(reason.begin(), reason.end(), '_', ' ');
  const std::string line = "prompt " + std::to_string(statistics.prompt_tokens) + " tokens, " +
                           rate(statistics.prompt_tokens, statistics.prefill_seconds) + " | generated " +
                           std::to_string(statistics.generated_tokens) + " tokens, " +
                           rate(statistics.generated_tokens - 1, statistics.decode_seconds) + " | first token after " +
                           duration_text(statistics.time_to_first_token_seconds) + " | peak memory " +
                           bytes_text(statistics.peak_rss_bytes) + ", private " +
                           bytes_text(statistics.peak_private_bytes) + speculation_text(statistics) + " | " + reason;
  for (const std::string& each : {line, choice_text(describe(model))}) {
    if (!each.empty()) std::fprintf(stderr, "%s\n", dim(each, stderr).c_str());
  }
}

// Writes pieces as they come. Returns the reason for the end.
int32_t stream(const Generation& generation, int32_t& last_id) {
  auto piece = sized<mote_piece>();
  do {
    check([&](mote_error* error) { return mote_generation_next(generation.get(), &piece, error); });
    if (piece.id >= 0) last_id = piece.id;
    const bool written = std::fwrite(piece.text, 1, piece.text_bytes, stdout) == piece.text_bytes;
    if (!written || std::fflush(stdout) != 0) return MOTE_FINISH_CANCELLED;  // whoever read the text has gone
  } while (piece.finished == 0);
  std::fputc('\n', stdout);
  std::fflush(stdout);  // before the statistics, where both go to one place
  return piece.finish_reason;
}

// A session from which another run goes on: all of the text that was written, also its last token, which nothing has
// computed yet.
void save_session(const Session& session, const std::string& path, int32_t reason, int32_t last_id) {
  const bool is_text = reason == MOTE_FINISH_LENGTH || reason == MOTE_FINISH_TIME;
  auto info = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session.get(), &info, error); });
  if (is_text && last_id >= 0 && info.position < info.context_length) {
    check([&](mote_error* error) { return mote_session_append(session.get(), &last_id, 1, error); });
  }
  check([&](mote_error* error) { return mote_session_save(session.get(), path.c_str(), error); });
}

// A Chrome trace of the run. The file is opened before anything is generated, so that a bad path costs nothing.
class Profile {
 public:
  Profile(const Session& session, const std::string& path) : session_(session), path_(path) {
    if (path_.empty()) return;
    file_.open(path_, std::ios::binary);
    require_file();
    check([&](mote_error* error) { return mote_session_start_profile(session_.get(), error); });
  }

  void write() {
    if (path_.empty()) return;
    file_ << take_string([&](char** text, mote_error* error) {
      return mote_session_stop_profile(session_.get(), text, error);
    }) << std::flush;
    require_file();
  }

 private:
  void require_file() const {
    if (!file_) throw InputError("--profile " + path_ + ": cannot be written: " + std::strerror(errno));
  }

  const Session& session_;
  const std::string path_;
  std::ofstream file_;
};

int run(const RunFlags& flags) {
  if (flags.kernels) {
    print_kernels(flags.file);
    return 0;
  }
  if (flags.file.empty()) throw InputError("no .mote file was given: mote-runner run model.mote \"prompt\"");
  const Options options = flags.options.options();
  const Model model = open_model(flags.file, options);
  if (info_of(model).has_tokenizer == 0) {
    throw InputError(flags.file +
                     " has no tokenizer, so it cannot take a prompt as text; use llm_runner with token ids");
  }
  const bool is_new = flags.load_session.empty();
  const std::string prompt = read_prompt(flags);
  const Session session = open_session(model, options);
  if (!is_new)
    check([&](mote_error* error) { return mote_session_restore(session.get(), flags.load_session.c_str(), error); });
  if (!flags.draft_model.empty()) set_draft_model(session, flags.draft_model);
  const std::vector<int32_t> ids = prompt_ids(session, prompt);
  if (ids.empty() && is_new) throw InputError("the prompt is empty: give some text, or pipe it in");
  mote_generation* handle = nullptr;
  check([&](mote_error* error) {
    return mote_generation_begin(session.get(), ids.data(), ids.size(), options.get(), &handle, error);
  });
  const Generation generation(handle);
  Profile profile(session, flags.profile);
  const Interrupts interrupts(Interrupts::Second::kEndsTheProcess);
  const CancelOnInterrupt cancel(session.get());
  int32_t last_id = -1;
  const int32_t reason = stream(generation, last_id);
  profile.write();
  if (!flags.save_session.empty()) save_session(session, flags.save_session, reason, last_id);
  if (flags.show_statistics && !flags.quiet) print_statistics(model, generation);
  return reason == MOTE_FINISH_CANCELLED ? kExitInterrupted : 0;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App& verb = *app.add_subcommand("run", "Continue a prompt and stream the text");
  verb.footer(kExamples);
  verb.add_option("file", flags->file, "The .mote file");
  verb.add_option("prompt", flags->prompt, "The text to continue; - or nothing reads standard input");
  flags->options.add_to(verb, MOTE_SCOPE_GENERATION | MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL,
                        {"logprobs", "top_logprobs", "skip_eos", "name"});
  add_draft_model(verb, flags->draft_model);
  verb.add_option("--load-session", flags->load_session,
                  "Go on from a session that --save-session wrote; the prompt comes behind its text");
  verb.add_option("--save-session", flags->save_session, "Write tokens and caches to this file at the end");
  verb.add_option("--profile", flags->profile,
                  "Measure every instruction and write a trace for chrome://tracing to this file")
      ->type_name("trace.json");
  verb.add_flag("--kernels", flags->kernels,
                "Run nothing: list the kernels chosen for the file, without a file all there are");
  CLI::Option* quiet = verb.add_flag("--quiet", flags->quiet, "Print no statistics");
  verb.add_flag("--stats", flags->show_statistics,
                "Print statistics on standard error, and which backend ran (the default)")
      ->excludes(quiet);
  verb.callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace mote::cli
