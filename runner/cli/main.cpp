// mote-runner: everything that needs only a .mote file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "runner/cli/handles.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"
#include "runner/cli/version.h"

namespace mote::cli {
namespace {

constexpr const char* kDescription = "Runs language models from .mote files.";
constexpr const char* kExamples =
    "Examples:\n"
    "  mote-runner run model.mote \"def fibonacci(n):\" --max-new-tokens 64\n"
    "  cat notes.txt | mote-runner run model.mote - --temperature 0.7 --seed 1\n"
    "  mote-runner chat model.mote --system \"You are a pirate.\"\n"
    "  mote-runner bench model.mote -p 128,512 -n 64 --json\n"
    "  mote-runner inspect model.mote\n"
    "  mote-runner verify model.mote\n";

int fail(const char* message) {
  std::fprintf(stderr, "%s %s\n", red("error:", stderr).c_str(), message);
  return kExitBadInput;
}

int run_main(int argc, char** argv) {
  CLI::App app(kDescription, "mote-runner");
  app.footer(kExamples);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  Action action;
  add_run(app, action);
  add_chat(app, action);
  add_bench(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_render(app, action);
  add_tokenize(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_verb = argc > 1 && argv[1][0] != '-';
    if (is_verb && app.get_subcommands().empty()) {
      return fail(
          (std::string("there is no verb '") + argv[1] + "': it must be a subcommand that --help lists").c_str());
    }
    return app.exit(error) == 0 ? 0 : kExitBadInput;
  }
  try {
    return action();
  } catch (const InputError& error) { return fail(error.what()); }
}

}  // namespace
}  // namespace mote::cli

int main(int argc, char** argv) {
  try {
    return mote::cli::run_main(argc, argv);
  } catch (const std::exception& exception) { return mote::cli::fail(exception.what()); }
}
