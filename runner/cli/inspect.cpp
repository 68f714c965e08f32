#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "runner/cli/handles.h"
#include "runner/cli/kernels.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  std::string file;
  std::string ops;
  bool json = false;
  bool kernels = false;
};

std::string integer(const Json& value) { return std::to_string(value.get<int64_t>()); }
std::string size(const Json& value) { return bytes_text(value.get<uint64_t>()); }

void heading(const std::string& text) { std::printf("\n%s\n", bold(text, stdout).c_str()); }

void print_summary(const Json& about) {
  const Json& provenance = about["provenance"];
  const auto row = [&](const char* name, const std::string& value) { std::printf("  %-16s %s\n", name, value.c_str()); };
  std::printf("%s\n", bold(about["file"].get<std::string>(), stdout).c_str());
  row("size", size(about["file_bytes"]));
  row("model", provenance["model_id"].get<std::string>() + " (" + provenance["model_type"].get<std::string>() + ")");
  if (!provenance["revision"].get<std::string>().empty()) row("revision", provenance["revision"]);
  row("recipe", provenance["recipe"]);
  row("made with", "mote " + provenance["exporter_version"].get<std::string>() + ", torch " +
                       provenance["torch_version"].get<std::string>() + ", transformers " +
                       provenance["transformers_version"].get<std::string>());
  row("vocabulary", integer(about["vocab_size"]));
  row("context", "up to " + integer(about["max_position_embeddings"]) + " positions");
  row("eos tokens", about["eos_token_ids"].dump());
  row("tokenizer", about["tokenizer"].is_null() ? "none" : about["tokenizer"]["kind"].get<std::string>() + ", " +
                                                               integer(about["tokenizer"]["num_ids"]) + " ids");
  row("chat template", about["chat_template"].get<std::string>().empty() ? "none" : "yes");
  row("generation", about["generation_config"].dump());
  row("golden samples", integer(about["num_golden_samples"]));
  const std::string license = provenance["license"];
  row("licence", license.empty() ? "none in the checkpoint" : license.substr(0, license.find('\n')) + " ...");
}

void print_methods(const Json& about) {
  heading("Methods");
  Table table({"method", "instructions", "arena per token", "arena fixed"});
  for (const Json& method : about["methods"]) {
    table.add({method["name"], integer(method["num_instructions"]), size(method["arena_per_token_bytes"]),
               size(method["arena_fixed_bytes"])});
  }
  table.print(stdout);
  heading("Ops");
  std::vector<std::string> names = {"op"};
  Json counts = Json::object();
  for (const Json& method : about["methods"]) {
    names.push_back(method["name"]);
    for (const auto& [op, count] : method["ops"].items()) counts[op][method["name"].get<std::string>()] = count;
  }
  Table ops(names);
  for (const auto& [op, by_method] : counts.items()) {
    std::vector<std::string> row = {op};
    for (size_t i = 1; i < names.size(); ++i) row.push_back(by_method.contains(names[i]) ? integer(by_method[names[i]]) : "-");
    ops.add(row);
  }
  ops.print(stdout);
}

void print_weights(const Json& about) {
  heading("Weights");
  const Json& weights = about["weights"];
  Table table({"format", "tensors", "size"});
  for (const Json& format : weights["formats"]) table.add({format["format"], integer(format["count"]), size(format["bytes"])});
  table.add({"all", integer(weights["count"]), size(weights["bytes"])});
  table.print(stdout);
}

// States that are alike share a row.
void print_states(const Json& about) {
  heading("States");
  Table table({"state", "count", "heads", "head_dim", "window", "bytes a position, fp32", "fp16", "int8", "int4"});
  std::vector<std::pair<Json, std::vector<std::string>>> groups;
  for (Json state : about["states"]) {
    const std::string name = state["name"];
    state.erase("name");
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == state; });
    if (group == groups.end()) group = groups.emplace(groups.end(), state, std::vector<std::string>());
    group->second.push_back(name);
  }
  for (const auto& [state, names] : groups) {
    const std::string label = names.size() == 1 ? names[0] : names.front() + " ... " + names.back();
    std::vector<std::string> row = {label, std::to_string(names.size())};
    if (state["kind"] == "kv_cache") {
      for (const char* key : {"num_heads", "head_dim", "window"}) row.push_back(integer(state[key]));
      for (const auto& [type, bytes] : state["bytes_per_position"].items()) row.push_back(integer(bytes));
    } else {
      row.push_back(state["shape"].dump());
    }
    table.add(row);
  }
  table.print(stdout);
}

void print_segments(const Json& about) {
  heading("Segments");
  Table table({"segment", "offset", "size", "crc32"});
  for (const Json& segment : about["segments"]) {
    table.add({segment["kind"], integer(segment["offset"]), size(segment["bytes"]), segment["crc32"]});
  }
  table.print(stdout);
}

std::string outputs_text(const Json& outputs) {
  std::string text;
  for (const Json& output : outputs) {
    std::string shape;
    for (const Json& size : output["shape"]) shape += (shape.empty() ? "" : ", ") + size.get<std::string>();
    text += (text.empty() ? "%" : ", %") + integer(output["value"]) + ": " + output["dtype"].get<std::string>() + " [" + shape + "]";
  }
  return text;
}

void print_instructions(const Json& about, const std::string& name) {
  std::string known;
  for (const Json& method : about["methods"]) {
    known += (known.empty() ? "" : ", ") + method["name"].get<std::string>();
    if (method["name"] != name) continue;
    size_t index = 0;
    for (const Json& instruction : method["instructions"]) {
      std::printf("%4zu  %s = %s%s  %s\n", index++, outputs_text(instruction["outputs"]).c_str(),
                  bold(instruction["op"], stdout).c_str(), instruction["inputs"].dump().c_str(),
                  dim(instruction["origin"], stdout).c_str());
    }
    return;
  }
  throw InputError("--ops " + name + ": the file has no such method (has: " + known + ")");
}

int inspect(const InspectFlags& flags) {
  if (flags.kernels) {
    print_kernels(flags.file);
    return 0;
  }
  const Model model = open_model(flags.file);
  const Json about = Json::parse(
      take_string([&](char** text, mote_error* error) { return mote_model_describe(model.get(), text, error); }));
  if (!flags.ops.empty()) {
    print_instructions(about, flags.ops);
  } else if (flags.json) {
    std::printf("%s\n", about.dump(2).c_str());
  } else {
    print_summary(about);
    print_methods(about);
    print_weights(about);
    print_states(about);
    print_segments(about);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App& verb = *app.add_subcommand("inspect", "Show methods, ops, weights, states and provenance of a file");
  verb.footer("Examples:\n  mote-runner inspect model.mote\n  mote-runner inspect model.mote --ops decode\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_flag("--json", flags->json, "Print everything as one JSON object");
  verb.add_option("--ops", flags->ops, "List the instructions of a method: prefill, decode or verify");
  verb.add_flag("--kernels", flags->kernels, "List the kernels that are chosen for the file on this machine");
  verb.callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace mote::cli
