// mote-runner: everything that needs only a .mote file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>

#include "runner/cli/handles.h"
#include "runner/cli/output.h"
#include "runner/cli/parsing.h"
#include "runner/cli/system.h"
#include "runner/cli/verbs.h"
#include "runner/cli/version.h"

namespace mote::cli {
namespace {

constexpr const char* kDescription = "Runs language models from .mote files.";
constexpr const char* kExamples =
    "Examples:\n"
    "  mote-runner run model.mote \"Why is the sky blue?\"\n"
    "  cat story.txt | mote-runner run model.mote - --raw --temperature 0.7 --seed 1\n"
    "  mote-runner chat model.mote --system \"You are a pirate.\"\n"
    "  mote-runner bench model.mote -p 128,512 -n 64 --json\n"
    "  mote-runner inspect model.mote\n"
    "  mote-runner verify model.mote\n";

int run_main(const std::vector<std::string>& words) {
  CLI::App app(kDescription, "mote-runner");
  app.allow_windows_style_options(false);  // "/name" is a path everywhere
  app.footer(kExamples);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  Action action;
  add_run(app, action);
  add_chat(app, action);
  add_embed(app, action);
  add_advise(app, action);
  add_bench(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_render(app, action);
  add_tokenize(app, action);
  if (const std::optional<int> status = parse(app, words); status.has_value()) return *status;
  try {
    return action();
  } catch (const InputError& error) { return fail(error.what()); }
}

}  // namespace
}  // namespace mote::cli

int main(int argc, char** argv) {
  mote::cli::prepare_terminal();
  mote::cli::end_with_closed_pipes();
  try {
    return mote::cli::finish_output(mote::cli::run_main(mote::cli::command_line(argc, argv)));
  } catch (const std::exception& exception) { return mote::cli::fail(exception.what()); }
}
