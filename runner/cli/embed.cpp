#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/path.h"
#include "runner/cli/handles.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/parsing.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EmbedFlags {
  std::string file;
  std::vector<std::string> texts;
  std::string prompt_name;
  std::string prompt;
  std::string npy;
  int32_t dimensions = 0;
  bool no_normalize = false;
  bool no_truncate = false;
  bool json = false;
  OptionFlags options;
};

struct Vectors {
  size_t width = 0;
  std::vector<float> values;  // [texts, width]
  std::vector<int64_t> num_tokens;
};

std::vector<std::string> texts_of(const EmbedFlags& flags) {
  if (flags.texts != std::vector<std::string>{"-"}) return flags.texts;
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  if (lines.empty()) throw InputError("standard input has no lines: give one text a line");
  return lines;
}

Vectors embed(const EmbedFlags& flags, const std::vector<std::string>& texts) {
  const Options options = flags.options.options();
  const Model model = open_model(flags.file, options);
  mote_embedder* opened = nullptr;
  check([&](mote_error* error) { return mote_embedder_open(model.get(), options.get(), &opened, error); });
  const Embedder embedder(opened);
  auto how = sized<mote_embed_options>();
  how.dimensions = flags.dimensions;
  how.prompt_name = flags.prompt_name.empty() ? nullptr : flags.prompt_name.c_str();
  how.prompt = flags.prompt.empty() ? nullptr : flags.prompt.c_str();
  how.prompt_bytes = flags.prompt.size();
  how.keep_length = flags.no_normalize ? 1 : 0;
  how.refuse_long = flags.no_truncate ? 1 : 0;
  std::vector<mote_embed_input> inputs;
  for (const std::string& text : texts) inputs.push_back({text.data(), text.size(), nullptr, 0});
  Vectors result;
  check([&](mote_error* error) { return mote_embedder_dimensions(embedder.get(), &how, &result.width, error); });
  result.values.resize(texts.size() * result.width);
  result.num_tokens.resize(texts.size());
  check([&](mote_error* error) {
    return mote_embedder_embed(embedder.get(), inputs.data(), inputs.size(), &how, result.values.data(),
                               result.num_tokens.data(), error);
  });
  return result;
}

// numpy's format, version 1.0.
void write_npy(const std::string& path, const Vectors& vectors) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(vectors.num_tokens.size()) + ", " + std::to_string(vectors.width) + "), }";
  header.resize((10 + header.size()) / 64 * 64 + 64 - 11, ' ');
  header += '\n';
  std::ofstream file(to_path(path), std::ios::binary);
  file << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size() & 0xFF) << static_cast<char>(header.size() >> 8)
       << header;
  file.write(reinterpret_cast<const char*>(vectors.values.data()),
             static_cast<std::streamsize>(vectors.values.size() * sizeof(float)));
  if (!file.flush()) throw InputError(path + ": cannot be written");
}

int run_embed(const EmbedFlags& flags) {
  const std::vector<std::string> texts = texts_of(flags);
  const Vectors vectors = embed(flags, texts);
  if (!flags.npy.empty()) write_npy(flags.npy, vectors);
  Json shown = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    const float* row = vectors.values.data() + i * vectors.width;
    if (flags.json)
      shown.push_back(
          {{"embedding", std::vector<float>(row, row + vectors.width)}, {"num_tokens", vectors.num_tokens[i]}});
    if (flags.json || !flags.npy.empty()) continue;
    for (size_t j = 0; j < vectors.width; ++j) std::printf("%s%.8g", j == 0 ? "" : " ", static_cast<double>(row[j]));
    std::printf("\n");
  }
  if (flags.json) std::printf("%s\n", shown.dump().c_str());
  return 0;
}

}  // namespace

void add_embed(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<EmbedFlags>();
  CLI::App& verb = *app.add_subcommand("embed", "Print the vectors of texts, of a file that gives embeddings");
  verb.footer(
      "Examples:\n"
      "  mote-runner embed model.mote \"Why is the sky blue?\" --prompt-name query\n"
      "  mote-runner embed model.mote - --npy vectors.npy < texts.txt\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_option("texts", flags->texts, "The texts; -: the lines of standard input")->required();
  verb.add_option("--prompt-name", flags->prompt_name, "Which of the file's prompts goes before each text");
  verb.add_option("--prompt", flags->prompt, "What goes before each text");
  verb.add_option("--dimensions", flags->dimensions, "The first so many of each vector; 0: all")->check(at_least(0));
  verb.add_flag("--no-normalize", flags->no_normalize, "Do not divide vectors by their length");
  verb.add_flag("--no-truncate", flags->no_truncate, "Refuse texts that are too long instead of cutting off their end");
  verb.add_flag("--json", flags->json, "Print a JSON list of objects: embedding, num_tokens");
  verb.add_option("--npy", flags->npy, "Write float32 [texts, dimensions] to this file of numpy's format");
  flags->options.add_to(verb, MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL,
                        {"name", "overflow", "num_keep", "rewind_tokens", "rewind_mb"});
  verb.callback([flags, &action] { action = [flags] { return run_embed(*flags); }; });
}

}  // namespace mote::cli
