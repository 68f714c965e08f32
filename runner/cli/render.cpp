#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/path.h"
#include "runner/cli/handles.h"
#include "runner/cli/system.h"
#include "runner/cli/template_variables.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;
using Prompt = std::unique_ptr<mote_prompt, Closer<mote_prompt_close>>;

struct RenderFlags {
  std::string file;
  std::string messages;
  std::string tools;
  std::string documents;
  std::vector<std::string> variables;
  std::string continue_field;
  bool no_generation_prompt = false;
  bool ids = false;
  bool json = false;
};

std::string read_file_or_input(const std::string& path) {
  if (path == "-") return read_standard_input();
  std::ifstream stream(to_path(path), std::ios::binary);
  if (!stream) throw InputError(path + ": cannot be opened");
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Prompt render(const Model& model, const RenderFlags& flags) {
  const std::string messages = read_file_or_input(flags.messages);
  const std::string tools = flags.tools.empty() ? "" : read_file_or_input(flags.tools);
  const std::string documents = flags.documents.empty() ? "" : read_file_or_input(flags.documents);
  const std::string variables = template_variables(flags.variables).dump();
  auto conversation = sized<mote_conversation>();
  conversation.messages = messages.c_str();
  conversation.tools = tools.empty() ? nullptr : tools.c_str();
  conversation.documents = documents.empty() ? nullptr : documents.c_str();
  conversation.variables = variables.c_str();
  conversation.continue_final_message = flags.continue_field.empty() ? nullptr : flags.continue_field.c_str();
  conversation.add_generation_prompt = !flags.no_generation_prompt && flags.continue_field.empty();
  mote_prompt* prompt = nullptr;
  check([&](mote_error* error) { return mote_model_render(model.get(), &conversation, &prompt, error); });
  return Prompt(prompt);
}

int run_render(const RenderFlags& flags) {
  const Model model = open_model(flags.file);
  const Prompt prompt = render(model, flags);
  const char* text = nullptr;
  size_t text_bytes = 0;
  check([&](mote_error* error) { return mote_prompt_text(prompt.get(), &text, &text_bytes, error); });
  if (flags.json) {
    Json shown{{"text", std::string(text, text_bytes)}};
    if (flags.ids) shown["ids"] = prompt_ids(model, prompt.get());
    std::printf("%s\n", shown.dump().c_str());
  } else if (flags.ids) {
    const std::vector<int32_t> ids = prompt_ids(model, prompt.get());
    for (size_t i = 0; i < ids.size(); ++i) std::printf("%s%d", i == 0 ? "" : " ", ids[i]);
    std::printf("\n");
  } else {
    std::fwrite(text, 1, text_bytes, stdout);
  }
  return 0;
}

}  // namespace

void add_render(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RenderFlags>();
  CLI::App& verb = *app.add_subcommand("render", "Show the prompt that the file's chat template makes of messages");
  verb.footer(
      "Example:\n  mote-runner render model.mote messages.json --tools tools.json --set enable_thinking=false --ids\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_option("messages", flags->messages, "JSON file with the list of messages; -: standard input")->required();
  verb.add_option("--tools", flags->tools, "JSON file with the list of tools");
  verb.add_option("--documents", flags->documents, "JSON file with the list of documents");
  verb.add_option("--set", flags->variables, "A variable of the template, NAME=VALUE (JSON or text); repeatable");
  verb.add_option("--continue", flags->continue_field, "End in this field of the last message, such as content");
  verb.add_flag("--no-generation-prompt", flags->no_generation_prompt, "Do not open the assistant's turn");
  verb.add_flag("--ids", flags->ids, "Print token ids; special tokens that messages spell are text");
  verb.add_flag("--json", flags->json, "Print a JSON object");
  verb.callback([flags, &action] { action = [flags] { return run_render(*flags); }; });
}

}  // namespace mote::cli
