#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "runner/cli/handles.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeFlags {
  std::string file;
  std::string text;
  bool json = false;
  bool no_special = false;
};

std::string token_text(const Model& model, int32_t id) {
  return take_string([&](char** text, size_t* text_bytes, mote_error* error) {
    return mote_detokenize(model.get(), &id, 1, 0, text, text_bytes, error);
  });
}

int run_tokenize(const TokenizeFlags& flags) {
  const Model model = open_model(flags.file);
  const std::vector<int32_t> ids = tokenize(model, flags.text, !flags.no_special, !flags.no_special);
  if (flags.json) {
    Json tokens = Json::array();
    for (const int32_t id : ids) tokens.push_back(token_text(model, id));
    std::printf("%s\n", Json{{"ids", ids}, {"tokens", tokens}}.dump().c_str());
    return 0;
  }
  Table table({"token", "id"});
  for (const int32_t id : ids) table.add({Json(token_text(model, id)).dump(), std::to_string(id)});
  table.print(stdout);
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<TokenizeFlags>();
  CLI::App& verb = *app.add_subcommand("tokenize", "Show the token ids of a text");
  verb.footer("Example:\n  mote-runner tokenize model.mote \"Hello, world\"\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_option("text", flags->text, "The text")->required();
  verb.add_flag("--json", flags->json, "Print ids and tokens as JSON");
  verb.add_flag("--no-special", flags->no_special, "Neither add nor recognise special tokens");
  verb.callback([flags, &action] { action = [flags] { return run_tokenize(*flags); }; });
}

}  // namespace mote::cli
