#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "runner/cli/handles.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/parsing.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AdviseFlags {
  std::string file;
  int prompt_tokens = 256;
  int depth = 256;
  bool json = false;
  OptionFlags options;
};

Json to_json(const AdviseFlags& flags, const mote_advice& advice) {
  return {{"file", flags.file},
          {"threads", advice.num_threads},
          {"context_length", advice.context_length},
          {"prompt_tokens", flags.prompt_tokens},
          {"prefill_tokens_per_second", advice.prefill_tokens_per_second},
          {"depth", flags.depth},
          {"decode_tokens_per_second", advice.decode_tokens_per_second},
          {"file_bytes", advice.file_bytes},
          {"state_bytes", advice.state_bytes},
          {"working_bytes", advice.working_bytes},
          {"device_bytes", advice.device_bytes}};
}

void print(const AdviseFlags& flags, const mote_advice& advice) {
  std::printf(
      "prefill   %s tokens/s, a prompt of %d\n"
      "decode    %s tokens/s, behind %d tokens\n"
      "memory    %s of the file, which the system can drop; %s for %lld positions; %s to work with\n",
      number_text(advice.prefill_tokens_per_second).c_str(), flags.prompt_tokens,
      number_text(advice.decode_tokens_per_second).c_str(), flags.depth, bytes_text(advice.file_bytes).c_str(),
      bytes_text(advice.state_bytes).c_str(), static_cast<long long>(advice.context_length),
      bytes_text(advice.working_bytes).c_str());
  if (advice.device_bytes == 0) return;
  const uint64_t needed = advice.file_bytes + advice.state_bytes + advice.working_bytes;
  std::printf("device    %s of memory%s, %d threads\n", bytes_text(advice.device_bytes).c_str(),
              needed > advice.device_bytes ? ": less than all of this" : "", advice.num_threads);
}

int advise(const AdviseFlags& flags) {
  const Options options = flags.options.options();
  auto advice = sized<mote_advice>();
  check([&](mote_error* error) {
    return mote_advise(flags.file.c_str(), options.get(), flags.prompt_tokens, flags.depth, &advice, error);
  });
  if (flags.json)
    std::printf("%s\n", to_json(flags, advice).dump(2).c_str());
  else
    print(flags, advice);
  return 0;
}

}  // namespace

void add_advise(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<AdviseFlags>();
  CLI::App& verb = *app.add_subcommand("advise", "Predict speed and memory of a file on this device");
  verb.footer(
      "The beginning of a file is enough, up to the end of its program: some hundred kilobytes. Its instructions run\n"
      "on the CPU for some seconds, on weights that stand in for its own.\n"
      "Examples:\n  mote-runner advise model.mote\n  mote-runner advise model.mote.part --json\n"
      "  mote-runner advise model.mote -d 4000 --kv-dtype int8\n");
  verb.add_option("file", flags->file, "The .mote file, or its beginning")->required();
  verb.add_option("-p,--prompt-tokens", flags->prompt_tokens, "Length of the prompt")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-d,--depth", flags->depth, "Tokens in the context before the one that is decoded")
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_flag("--json", flags->json, "Print the figures as JSON");
  flags->options.add_to(verb, MOTE_SCOPE_SESSION, {"overflow", "num_keep", "adapters"});
  verb.callback([flags, &action] { action = [flags] { return advise(*flags); }; });
}

}  // namespace mote::cli
