#include "runner/cli/run/prompts.h"

#include <algorithm>

#include "runner/cli/handles.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/system.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

std::string read_typed() {
  const std::string advice = std::string("type the prompt, ") + kEndKey + " ends it";
  if (is_input_terminal()) std::fprintf(stderr, "%s\n", dim(advice, stderr).c_str());
  return read_standard_input();
}

}  // namespace

std::vector<std::string> read_prompts(const PromptFlags& flags) {
  std::vector<std::string> prompts = flags.words;
  prompts.insert(prompts.end(), flags.prompts.begin(), flags.prompts.end());
  if (prompts.empty() && flags.files.empty()) prompts.emplace_back("-");
  const auto inputs = std::ranges::count(prompts, "-") + std::ranges::count(flags.files, "-");
  if (inputs > 1)
    throw InputError("standard input (-) can be read once, but it was named " + std::to_string(inputs) + " times");
  std::string attached;
  for (const std::string& path : flags.files)
    attached += (attached.empty() ? "" : "\n\n") + (path == "-" ? read_typed() : read_file("--file", path));
  if (prompts.empty()) return {attached};
  for (std::string& prompt : prompts) {
    if (prompt == "-") prompt = read_typed();
    if (!attached.empty()) prompt += (prompt.empty() ? "" : "\n\n") + attached;
  }
  return prompts;
}

}  // namespace mote::cli
