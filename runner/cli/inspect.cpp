#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <tuple>

#include "base/atomic_file.h"
#include "runner/cli/fitted_table.h"
#include "runner/cli/graph.h"
#include "runner/cli/handles.h"
#include "runner/cli/instructions.h"
#include "runner/cli/kernels.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::string ops;
  std::string graph;  // a path; "-": standard output
  std::string graph_format;
  std::string method;
  std::string backend;
  bool json = false;
  bool kernels = false;
  bool parts = false;
};

std::string size(const Json& value) { return bytes_text(value.get<uint64_t>()); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void heading(const std::string& text) { std::printf("\n%s\n", bold(text, stdout).c_str()); }

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
  for (const auto& [name, found] : about["findings"].items()) row(("on " + name).c_str(), found);
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
  FittedTable table({"method", "instructions", "arena per token", "arena fixed"});
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
  heading("Methods: instructions by what runs them, crossings a step, activations");
  const std::vector<std::string> runners = who_runs(about);
  std::vector<std::string> titles = {"method"};
  if (about["targets"].size() > 1) titles.push_back("target");
  titles.insert(titles.end(), runners.begin(), runners.end());
  for (const char* title : {"delegates", "crossings a step", "arena per token", "arena fixed"}) titles.push_back(title);
  FittedTable table(titles);
  for (const Json& method : about["methods"]) {
    std::vector<std::string> row = {method["label"]};
    if (about["targets"].size() > 1) row.push_back(method["target"]);
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
  FittedTable table({"what a delegate runs", "count", "size"});
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
  FittedTable ops(names);
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
  FittedTable table({"format", "tensors", "size"});
  for (const Json& format : weights["formats"])
    table.add({format["format"], integer(format["count"]), size(format["bytes"])});
  table.add({"all", integer(weights["count"]), size(weights["bytes"])});
  table.print(stdout);
}

// "model.layers.0..5.self_attn": names that differ in one place.
std::string range_text(const std::string& first, const std::string& last) {
  size_t same = 0;
  while (same < std::min(first.size(), last.size()) && first[same] == last[same]) ++same;
  same = same == 0 ? 0 : first.rfind('.', same - 1) + 1;  // whole parts, and npos + 1 is 0
  const size_t first_end = std::min(first.find('.', same), first.size());
  const size_t last_end = std::min(last.find('.', same), last.size());
  if (first.substr(first_end) != last.substr(last_end)) return first + " ... " + last;
  return first.substr(0, first_end) + ".." + last.substr(same);
}

// States that are alike share a row.
void print_states(const Json& about) {
  heading("States, and bytes a position of a cache in each type");
  FittedTable table({"state", "count", "heads", "head_dim", "window", "fp32", "fp16", "int8", "int4"});
  std::vector<std::pair<Json, std::vector<std::string>>> groups;
  for (Json state : about["states"]) {
    const std::string name = state["name"];
    state.erase("name");
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == state; });
    if (group == groups.end()) group = groups.emplace(groups.end(), state, std::vector<std::string>());
    group->second.push_back(name);
  }
  for (const auto& [state, names] : groups) {
    const std::string label = names.size() == 1 ? names[0] : range_text(names.front(), names.back());
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
  FittedTable table({"segment", "offset", "size", "crc32"});
  for (const Json& segment : about["segments"]) {
    const std::string kind = segment["kind"];
    const std::string place = segment.contains("file") ? " in " + segment["file"].get<std::string>() : "";
    table.add({kind + place, integer(segment["offset"]), size(segment["bytes"]), segment["crc32"]});
  }
  table.print(stdout);
}

void print_instructions(const Json& about, const Json& method) {
  size_t width = 0;
  if (has_backends(about)) {
    for (const std::string& runner : who_runs(about)) width = std::max(width, runner.size());
  }
  size_t index = 0;
  for (const Json& instruction : method["instructions"]) print_instruction(about, instruction, index++, width);
}

// Leaves the methods of that name or label, of every target.
void keep_method(Json& about, const std::string& flag, const std::string& name) {
  Json kept = Json::array();
  std::vector<std::string> known;
  for (const Json& method : about["methods"]) {
    if (method["name"] == name || method["label"] == name) kept.push_back(method);
    const auto own = method["name"].get<std::string>();
    if (std::find(known.begin(), known.end(), own) == known.end()) known.push_back(own);
  }
  if (kept.empty()) throw InputError(flag + " " + name + ": the file has no such method (has: " + joined(known) + ")");
  about["methods"] = kept;
}

void print_methods_listed(const Json& about) {
  for (const Json& method : about["methods"]) {
    if (about["methods"].size() > 1)
      heading(method["target"].get<std::string>() + ": " + method["label"].get<std::string>());
    print_instructions(about, method);
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

std::string format_of(const InspectFlags& flags) {
  if (!flags.graph_format.empty()) return flags.graph_format;
  const size_t dot = flags.graph.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : flags.graph.substr(dot + 1);
  if (ending == "gv") return "dot";
  if (ending == "json" || ending == "dot" || ending == "onnx") return ending;
  if (flags.graph == "-") return "json";
  throw InputError("--graph " + flags.graph + ": must end in .json, .dot, .gv or .onnx, or give --graph-format");
}

// What was chosen on this machine; nothing where it cannot run the file.
Json kernel_choices(const Json& about, const std::string& file) {
  if (about["target"].is_null()) return Json::array();
  const Model model = open_model(file);  // which asks every op for its kernels
  const std::string all =
      take_string([](char** text, mote_error* error) { return mote_describe_kernels(text, error); });
  return Json::parse(all)["choices"];
}

// DOT and ONNX hold one method: of the target that runs here, else of the first.
void keep_one_method(Json& about, const InspectFlags& flags) {
  if (flags.method.empty()) keep_method(about, "--method", "decode");
  if (flags.backend.empty())
    keep_target(about, about["target"].is_null() ? about["methods"][0]["target"] : about["target"]);
  about["methods"] = Json::array({about["methods"][0]});
}

void write_output(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  const auto require = [](const Status& status) {
    if (!status.ok()) throw InputError(status.message());
  };
  Result<AtomicFile> file = AtomicFile::create(path, AtomicFile::Access::kShared);
  require(file.status());
  require(file->write(std::as_bytes(std::span(text))));
  require(file->commit());
}

void write_graph(Json& about, const InspectFlags& flags) {
  const std::string format = format_of(flags);
  if (!flags.method.empty()) keep_method(about, "--method", flags.method);
  if (format != "json") keep_one_method(about, flags);
  const Graphs graphs(about, kernel_choices(about, flags.file));
  write_output(flags.graph, format == "json"  ? model_explorer_text(graphs)
                            : format == "dot" ? dot_text(graphs.all()[0])
                                              : onnx_bytes(graphs.all()[0]));
}

int inspect(const InspectFlags& flags) {
  if (flags.kernels) {
    print_kernels(flags.file);
    return 0;
  }
  Json about = Json::parse(
      take_string([&](char** text, mote_error* error) { return mote_describe_file(flags.file.c_str(), text, error); }));
  if (!flags.backend.empty()) keep_target(about, flags.backend);
  if (!flags.graph.empty()) {
    write_graph(about, flags);
  } else if (!flags.ops.empty()) {
    keep_method(about, "--ops", flags.ops);
    print_methods_listed(about);
  } else if (flags.parts) {
    for (const std::string part : about["parts"]) std::printf("%s\n", part.c_str());
  } else if (flags.json)
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
      "Examples:\n  mote-runner inspect model.mote\n  mote-runner inspect model.mote --ops decode --backend xnnpack\n"
      "  mote-runner inspect model.mote --graph model.json         for Model Explorer, all methods\n"
      "  mote-runner inspect model.mote --graph decode.onnx        for Netron\n"
      "  mote-runner inspect model.mote --graph - --graph-format dot --method prefill | dot -Tsvg > prefill.svg\n");
  verb.add_option("file", flags->file, "The .mote file")->required();
  verb.add_flag("--json", flags->json, "Print everything as one JSON object");
  verb.add_option("--ops", flags->ops,
                  "List the instructions of a method, what runs each, and its weights: prefill, decode or verify");
  CLI::Option* graph = verb.add_option("--graph", flags->graph,
                                       "Write the methods as a graph: .json for Model Explorer, .dot for Graphviz, "
                                       ".onnx for Netron; -: standard output");
  verb.add_option("--graph-format", flags->graph_format, "What --graph writes, whatever the file is called")
      ->check(CLI::IsMember({"json", "dot", "onnx"}))
      ->needs(graph);
  verb.add_option("--method", flags->method, "Of --graph: this method only (default: all; of .dot and .onnx: decode)")
      ->needs(graph);
  verb.add_option("--backend", flags->backend,
                  "Only the methods of one way to run the file: cpu, xnnpack, ... (default: all)");
  verb.add_flag("--parts", flags->parts,
                "List the parts of Mote that the file needs, for a build with no others (MOTE_FOR)");
  verb.add_flag("--kernels", flags->kernels, "List the kernels that are chosen for the file on this machine");
  verb.callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace mote::cli
