#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <tuple>

#include "runner/cli/handles.h"
#include "runner/cli/kernels.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::string ops;
  std::string backend;
  bool json = false;
  bool kernels = false;
};

std::string integer(const Json& value) { return std::to_string(value.get<int64_t>()); }
std::string size(const Json& value) { return bytes_text(value.get<uint64_t>()); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void heading(const std::string& text) { std::printf("\n%s\n", bold(text, stdout).c_str()); }

// "4 mote.linear, aten.add"
std::string ops_text(const Json& ops) {
  std::string text;
  for (const auto& [op, count] : ops.items())
    text += (text.empty() ? "" : ", ") + (count == 1 ? "" : integer(count) + " ") + op;
  return text;
}

// Which target this device takes, and why it takes no other.
template <typename Row>
void print_choice(const Json& about, Row row) {
  if (!about["target"].is_null())
    row("runs here on", about["target"]);
  else
    row("runs here on", "nothing; inspect shows what the file holds");
  for (const auto& [name, reason] : about["targets"].items()) {
    if (!reason.is_null()) row(("not on " + name).c_str(), reason);
  }
}

void print_summary(const Json& about) {
  const Json& provenance = about["provenance"];
  const auto row = [&](const char* name, const std::string& value) {
    std::printf("  %-16s %s\n", name, value.c_str());
  };
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
  row("tokenizer", about["tokenizer"].is_null() ? "none"
                                                : about["tokenizer"]["kind"].get<std::string>() + ", " +
                                                      integer(about["tokenizer"]["num_ids"]) + " ids");
  row("chat template", about["chat_template"].get<std::string>().empty() ? "none" : "yes");
  row("generation", about["generation_config"].dump());
  row("golden samples", integer(about["num_golden_samples"]));
  const std::string license = provenance["license"];
  row("licence", license.empty() ? "none in the checkpoint" : license.substr(0, license.find('\n')) + " ...");
  if (has_backends(about) || about["target"].is_null()) print_choice(about, row);
}

void print_methods(const Json& about) {
  heading("Methods");
  Table table({"method", "instructions", "arena per token", "arena fixed"});
  for (const Json& method : about["methods"]) {
    table.add({method["label"], integer(method["num_instructions"]), size(method["arena_per_token_bytes"]),
               size(method["arena_fixed_bytes"])});
  }
  table.print(stdout);
}

// The CPU, then the backends.
std::vector<std::string> who_runs(const Json& about) {
  std::vector<std::string> names = {"cpu"};
  for (const Json& method : about["methods"]) {
    for (const auto& [name, count] : method["runs_on"].items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// Instructions without views, which nothing runs.
void print_division(const Json& about) {
  heading("Methods, and how many instructions run where");
  const std::vector<std::string> runners = who_runs(about);
  std::vector<std::string> titles = {"method", "target"};
  titles.insert(titles.end(), runners.begin(), runners.end());
  for (const char* title : {"delegates", "crossings a step", "arena per token", "arena fixed"}) titles.push_back(title);
  Table table(titles);
  for (const Json& method : about["methods"]) {
    std::vector<std::string> row = {method["label"], method["target"]};
    for (const std::string& runner : runners) {
      row.push_back(method["runs_on"].contains(runner) ? integer(method["runs_on"][runner]) : "-");
    }
    for (const char* key : {"num_delegates", "num_crossings"}) row.push_back(integer(method[key]));
    for (const char* key : {"arena_per_token_bytes", "arena_fixed_bytes"}) row.push_back(size(method[key]));
    table.add(row);
  }
  table.print(stdout);
}

// Delegates that were made of the same ops share a row.
void print_delegates(const Json& about) {
  std::vector<std::tuple<std::string, int64_t, uint64_t>> groups;  // what is in it, how many, bytes
  for (const Json& delegate : about["delegates"]) {
    const std::string label = delegate["backend"].get<std::string>() + ": " + ops_text(delegate["ops"]);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return std::get<0>(each) == label; });
    if (group == groups.end()) group = groups.insert(groups.end(), {label, 0, 0});
    ++std::get<1>(*group);
    std::get<2>(*group) += delegate["bytes"].get<uint64_t>();
  }
  if (groups.empty()) return;
  heading("Delegates");
  Table table({"what a delegate runs", "count", "size"});
  for (const auto& [label, count, bytes] : groups) table.add({label, std::to_string(count), bytes_text(bytes)});
  table.print(stdout);
}

void print_ops(const Json& about, const std::string& target) {
  std::vector<std::string> names = {"op"};
  Json counts = Json::object();
  for (const Json& method : about["methods"]) {
    if (method["target"] != target) continue;
    names.push_back(method["label"]);
    for (const auto& [op, count] : method["ops"].items()) counts[op][method["label"].get<std::string>()] = count;
  }
  Table ops(names);
  for (const auto& [op, by_method] : counts.items()) {
    std::vector<std::string> row = {op};
    for (size_t i = 1; i < names.size(); ++i)
      row.push_back(by_method.contains(names[i]) ? integer(by_method[names[i]]) : "-");
    ops.add(row);
  }
  ops.print(stdout);
}

void print_weights(const Json& about) {
  heading("Weights");
  const Json& weights = about["weights"];
  Table table({"format", "tensors", "size"});
  for (const Json& format : weights["formats"])
    table.add({format["format"], integer(format["count"]), size(format["bytes"])});
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
    text += (text.empty() ? "%" : ", %") + integer(output["value"]) + ": " + output["dtype"].get<std::string>() + " [" +
            shape + "]";
  }
  return text;
}

void print_instructions(const Json& about, const Json& method) {
  size_t width = 0;
  if (has_backends(about)) {
    for (const std::string& runner : who_runs(about)) width = std::max(width, runner.size());
  }
  size_t index = 0;
  for (const Json& instruction : method["instructions"]) {
    std::string runner = instruction["runs_on"].is_null() ? "view" : instruction["runs_on"].get<std::string>();
    runner.resize(std::max(width, runner.size()), ' ');
    std::string notes = instruction["origin"];
    if (instruction.contains("delegate"))
      notes += "  (" + ops_text(about["delegates"][instruction["delegate"].get<size_t>()]["ops"]) + ")";
    std::printf("%4zu  %s%s = %s%s  %s\n", index++, width == 0 ? "" : (runner + "  ").c_str(),
                outputs_text(instruction["outputs"]).c_str(), bold(instruction["op"], stdout).c_str(),
                instruction["inputs"].dump().c_str(), dim(notes, stdout).c_str());
  }
}

// The method of that name or label in every target.
void print_method(const Json& about, const std::string& name) {
  std::vector<const Json*> found;
  std::vector<std::string> known;
  for (const Json& method : about["methods"]) {
    if (method["name"] == name || method["label"] == name) found.push_back(&method);
    if (std::find(known.begin(), known.end(), method["name"]) == known.end()) known.push_back(method["name"]);
  }
  if (found.empty()) throw InputError("--ops " + name + ": the file has no such method (has: " + joined(known) + ")");
  for (const Json* method : found) {
    if (found.size() > 1)
      heading((*method)["target"].get<std::string>() + ": " + (*method)["label"].get<std::string>());
    print_instructions(about, *method);
  }
}

// Leaves the methods of one target.
void keep_target(Json& about, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [target, reason] : about["targets"].items()) known.push_back(target);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw InputError("--backend " + name + ": the file has no such target (has: " + joined(known) + ")");
  }
  Json kept = Json::array();
  for (const Json& method : about["methods"]) {
    if (method["target"] == name) kept.push_back(method);
  }
  about["methods"] = kept;
}

void print_everything(const Json& about) {
  print_summary(about);
  if (has_backends(about))
    print_division(about);
  else
    print_methods(about);
  for (const auto& [target, reason] : about["targets"].items()) {
    const bool is_kept = std::any_of(about["methods"].begin(), about["methods"].end(),
                                     [&](const Json& method) { return method["target"] == target; });
    if (!is_kept) continue;
    heading(about["targets"].size() > 1 ? "Ops of the target " + target : "Ops");
    print_ops(about, target);
  }
  print_delegates(about);
  print_weights(about);
  print_states(about);
  print_segments(about);
}

int inspect(const InspectFlags& flags) {
  if (flags.kernels) {
    print_kernels(flags.file);
    return 0;
  }
  Json about = Json::parse(
      take_string([&](char** text, mote_error* error) { return mote_describe_file(flags.file.c_str(), text, error); }));
  if (!flags.backend.empty()) keep_target(about, flags.backend);
  if (!flags.ops.empty())
    print_method(about, flags.ops);
  else if (flags.json)
    std::printf("%s\n", about.dump(2).c_str());
  else
    print_everything(about);
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App& verb = *app.add_subcommand("inspect", "Show methods, ops, weights, states and provenance of a file");
  verb.footer(
      "Examples:\n  mote-runner inspect model.mote\n  mote-runner inspect model.mote --ops decode --backend xnnpack\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_flag("--json", flags->json, "Print everything as one JSON object");
  verb.add_option("--ops", flags->ops,
                  "List the instructions of a method, and what runs each: prefill, decode or verify");
  verb.add_option("--backend", flags->backend,
                  "Only the methods of one way to run the file: cpu, xnnpack, ... (default: all)");
  verb.add_flag("--kernels", flags->kernels, "List the kernels that are chosen for the file on this machine");
  verb.callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace mote::cli
