#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "runner/cli/interrupts.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

struct VerifyFlags {
  std::string file;
  bool json = false;
  OptionFlags options;
};

std::string shortened(const std::string& text) {
  const std::string line = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return line.size() <= 40 ? line : line.substr(0, 36) + "...\"";
}

std::string error_text(const Json& error) {
  char text[32];
  if (error.is_null()) return "not a number";
  std::snprintf(text, sizeof text, "%.1e", error.get<double>());
  return text;
}

void print_report(const Json& report) {
  Table table({"golden sample", "prompt", "tokens", "agree", "largest error", "allowed", "result"});
  for (const Json& sample : report["samples"]) {
    std::string result = sample["passed"].get<bool>() ? "ok" : "DIFFERS";
    if (!sample["tokenizer_agrees"].get<bool>()) result += " (tokenizer)";
    table.add({shortened(sample["text"]), sample["prompt_tokens"].dump(), sample["tokens"].dump(),
               sample["matched_tokens"].dump(), error_text(sample["max_relative_error"]),
               error_text(sample["tolerance"]), result});
  }
  table.print(stdout);
}

Json replay_texts(const Model& model, const Options& options) {
  const Session session = open_session(model, options);
  const Interrupts interrupts(Interrupts::Second::kEndsTheProcess);
  const CancelOnInterrupt cancel(session.get());
  const std::string report = take_string(
      [&](char** text, mote_error* error) { return mote_session_check_golden(session.get(), text, error); });
  require_unmoved(session);
  return Json::parse(report);
}

Json replay_embeddings(const Model& model, const Options& options) {
  mote_embedder* opened = nullptr;
  check([&](mote_error* error) { return mote_embedder_open(model.get(), options.get(), &opened, error); });
  const Embedder embedder(opened);
  return Json::parse(take_string(
      [&](char** text, mote_error* error) { return mote_embedder_check_golden(embedder.get(), text, error); }));
}

// The samples of all that the file can do.
Json replay(const Model& model, const Options& options) {
  Json report = {{"passed", true}, {"samples", Json::array()}};
  const auto add = [&](const Json& part) {
    report["passed"] = report["passed"].get<bool>() && part["passed"].get<bool>();
    for (const Json& sample : part["samples"]) report["samples"].push_back(sample);
  };
  const Json about = describe(model);
  const auto has_method = [&](const char* name) {
    return std::ranges::any_of(about["methods"], [&](const Json& method) { return method["name"] == name; });
  };
  if (has_method("decode")) add(replay_texts(model, options));
  if (has_method("embed")) add(replay_embeddings(model, options));
  return report;
}

int verify(const VerifyFlags& flags) {
  const Options options = flags.options.options();
  const Model model = open_model(flags.file, options);
  mote_error damage = sized<mote_error>();
  const bool intact = mote_model_check_segments(model.get(), &damage) == MOTE_OK;
  Json report = {{"passed", false}, {"samples", Json::array()}};
  if (intact) report = replay(model, options);
  report["checksums"] = intact ? "ok" : damage.message;
  const bool passed = intact && report["passed"].get<bool>();
  report["passed"] = passed;
  std::string choice;
  if (intact) {
    const Json about = describe(model);
    report["target"] = about["target"];
    choice = choice_text(about);
  }
  if (flags.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return passed ? 0 : kExitMismatch;
  }
  std::printf("checksums  %s\n", report["checksums"].get<std::string>().c_str());
  if (!choice.empty()) std::printf("%s\n", choice.c_str());
  if (!report["samples"].empty())
    print_report(report);
  else if (intact)
    std::printf("The file has no golden samples.\n");
  std::printf("%s\n", passed ? green("verified", stdout).c_str() : red("does not verify", stdout).c_str());
  return passed ? 0 : kExitMismatch;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App& verb =
      *app.add_subcommand("verify", "Check a file's checksums and that this machine computes what PyTorch computed");
  verb.footer(
      "Exit status: 0 verified, 1 something differs, 2 the file cannot be used.\n"
      "Example:\n  mote-runner verify model.mote\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_flag("--json", flags->json, "Print the report as JSON");
  flags->options.add_to(verb, MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL, {"name"});
  verb.callback([flags, &action] { action = [flags] { return verify(*flags); }; });
}

}  // namespace mote::cli
